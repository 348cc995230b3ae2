"""BERT4Rec: a bidirectional transformer that fills in masked items. The whole network.

Shapes: B batch, L length, D width, H heads, E width of one head, M slots, Q most slots of a row, V items.
Rows of tokens are right-aligned (see `data.tokens`): the most recent event stands in the last column.
Dropout is our own on CPUs, by sixteen random bits an element: torch's takes a third of a small transformer's step.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unveil.data.slots import n_tokens, pad_token
from unveil.errors import AtLeastOne, BelowOne, UnveilError
from unveil.models.base import Backbone, NetworkConfig, Output, Where, register

LEVELS = 1 << 16  # equally likely values of a random number


def realised_keep(p: float) -> float:
    """The probability to keep an element: 1 − p rounded to a multiple of 1/65536, and never 0."""
    return max(1, round((1 - p) * LEVELS)) / LEVELS


def keep_mask(shape: torch.Size, p: float, generator: torch.Generator | None = None) -> Tensor:
    """Zeros with probability p, elsewhere 1/keep, so that the mean is one; by default from torch's own generator."""
    keep = realised_keep(p)
    word = torch.empty((shape.numel() + 3) // 4, dtype=torch.int64).random_(-(1 << 63), None, generator=generator)
    random = word.view(torch.int16)[: shape.numel()]
    mask = torch.empty(shape)
    # Comparing straight into floats is several times faster than multiplying by booleans.
    torch.le(random.view(shape), round(keep * LEVELS) - LEVELS // 2 - 1, out=mask)
    return mask.mul_(1 / keep)


def dropout(x: Tensor, p: float) -> Tensor:
    """x with each element kept with probability 1 − p and scaled to the same mean; p = 0 gives x itself."""
    if p == 0:
        return x
    return x * keep_mask(x.shape, p) if _cheap(x) else F.dropout(x, p)


def add_dropped(residual: Tensor, x: Tensor, p: float) -> Tensor:
    """residual + dropout(x, p), in one pass over memory where possible."""
    if p > 0 and _cheap(x):
        return torch.addcmul(residual, x, keep_mask(x.shape, p))
    return residual + dropout(x, p)


def _cheap(x: Tensor) -> bool:
    return x.device.type == "cpu" and x.dtype == torch.float32


@dataclass(frozen=True)
class TransformerConfig(NetworkConfig):
    """Size of a transformer."""

    heads: AtLeastOne = 2
    attention_dropout: BelowOne | None = None  # None: as `dropout`; 0 allows the fused attention kernel
    norm: Literal["pre", "post"] = "pre"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.heads:
            found = f"{self.width} and {self.heads}"
            raise UnveilError("width must be a multiple of heads", where="model.width, model.heads", found=found)


class Transformer(Backbone):
    """Items and positions, embedded; and blocks of attention."""

    config: TransformerConfig

    def _add_blocks(self) -> None:
        config = self.config
        self.item = nn.Embedding(n_tokens(self.n_items), config.width)
        self.position = nn.Embedding(config.length, config.width)
        self.first_norm = nn.LayerNorm(config.width) if config.norm == "post" else nn.Identity()
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.blocks))

    def embed(self, token_BL: Tensor) -> Tensor:
        """Item + position, positions counted back from the last column: padding on the left changes nothing."""
        length = token_BL.shape[1]
        if length > self.config.length:
            raise ValueError(f"rows of {length} tokens, but the model knows {self.config.length} positions")
        h_BLD = self.item(token_BL) + self.position.weight[:length].flip(0)
        return dropout(self.first_norm(h_BLD), self.config.dropout if self.training else 0.0)


@dataclass(frozen=True)
class BERT4RecConfig(TransformerConfig):
    """Its untied head is a bare linear output without a norm before it."""

    name: Literal["bert4rec"] = "bert4rec"


@register
class BERT4Rec(Transformer):
    """F. Sun et al., BERT4Rec, CIKM 2019; every weight is set from `seed`."""

    name = "bert4rec"
    Config = BERT4RecConfig

    def __init__(self, config: BERT4RecConfig, n_items: int, *, seed: int = 0) -> None:
        super().__init__(config, n_items)
        with torch.random.fork_rng(devices=[]):  # torch layers draw from the global generator when made
            self._add_blocks()
            self.output: nn.Module = TiedHead(config, n_items) if config.head == "tied" else UntiedHead(config, n_items)
        self.initialise(torch.Generator().manual_seed(seed))

    def forward(self, token_BL: Tensor, where: Where | None = None) -> Tensor:
        """h_BLD of every column, or h_MD of the slots `where`: the last block then has queries at these alone."""
        h = self.embed(token_BL)
        is_pad_B11L = (token_BL == pad_token(self.n_items))[:, None, None, :]
        bias_B11L = attention_bias(is_pad_B11L, h.dtype) if is_pad_B11L.any() else None
        slots = None if where is None else SlotIndex.of(where, token_BL.shape)
        last = len(self.blocks) - 1
        for n, block in enumerate(self.blocks):
            h = block(h, bias_B11L, slots if n == last else None)
        return h

    def head(self, h_MD: Tensor) -> Output:
        output: Output = self.output(h_MD, self.item.weight[: self.n_items])
        return output


class SlotIndex(NamedTuple):
    """Indices of slots: `row_M` into the flat B·L columns, `place_M` into a B × Q table of each row's own slots."""

    row_M: Tensor
    place_M: Tensor
    shape: tuple[int, int]  # B, Q

    @classmethod
    def of(cls, where: Where, shape: torch.Size) -> "SlotIndex":
        """The n-th slot of a row stands at place n; the order of the slots is free."""
        b_M, l_M = where
        B, L = shape
        count_B = torch.bincount(b_M, minlength=B)
        order_M = torch.argsort(b_M, stable=True)
        first_M = (count_B.cumsum(0) - count_B)[b_M[order_M]]
        nth_M = torch.empty_like(b_M)
        nth_M[order_M] = torch.arange(len(b_M), device=b_M.device) - first_M
        Q = max(1, int(count_B.max())) if B else 1
        return cls(b_M * L + l_M, b_M * Q + nth_M, (B, Q))

    def pick(self, x_BLD: Tensor) -> Tensor:
        return x_BLD.flatten(0, 1).index_select(0, self.row_M)

    def spread(self, x_MD: Tensor) -> Tensor:
        """Into the table: x_BQD, zeros where a row has fewer than Q slots."""
        B, Q = self.shape
        return x_MD.new_zeros(B * Q, x_MD.shape[1]).index_copy(0, self.place_M, x_MD).view(B, Q, -1)

    def gather(self, x_BQD: Tensor) -> Tensor:
        return x_BQD.flatten(0, 1).index_select(0, self.place_M)


class Block(nn.Module):
    """Attention and feed-forward, each with a residual connection; normed before (pre) or after the sum (post)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        D = config.width
        self.config = config
        self.attention_norm, self.ffn_norm = nn.LayerNorm(D), nn.LayerNorm(D)
        self.query, self.key_value, self.mix = nn.Linear(D, D), nn.Linear(D, 2 * D), nn.Linear(D, D)
        self.widen, self.narrow = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def forward(self, h_BLD: Tensor, bias_B11L: Tensor | None, slots: SlotIndex | None = None) -> Tensor:
        p, pre = self.config.dropout if self.training else 0.0, self.config.norm == "pre"
        x_BLD = self.attention_norm(h_BLD) if pre else h_BLD
        h = h_BLD if slots is None else slots.pick(h_BLD)
        h = add_dropped(h, self.attend(x_BLD, bias_B11L, slots), p)
        h = h if pre else self.attention_norm(h)
        x = self.ffn_norm(h) if pre else h
        h = add_dropped(h, self.narrow(F.gelu(self.widen(x))), p)
        return h if pre else self.ffn_norm(h)

    def attend(self, x_BLD: Tensor, bias_B11L: Tensor | None, slots: SlotIndex | None) -> Tensor:
        """softmax(q kᵀ / √E + bias) v, from every column or only from these slots."""
        q_BQD = self.query(x_BLD) if slots is None else slots.spread(self.query(slots.pick(x_BLD)))
        k_BHLE, v_BHLE = (self._split(x) for x in self.key_value(x_BLD).chunk(2, dim=-1))
        own = self.config.attention_dropout
        p = (self.config.dropout if own is None else own) if self.training else 0.0
        a_BQD = attention(self._split(q_BQD), k_BHLE, v_BHLE, bias_B11L, p).transpose(1, 2).flatten(2)
        mixed: Tensor = self.mix(a_BQD if slots is None else slots.gather(a_BQD))
        return mixed

    def _split(self, x_BLD: Tensor) -> Tensor:
        return x_BLD.view(*x_BLD.shape[:2], self.config.heads, -1).transpose(1, 2)


def attention(q_BHQE: Tensor, k_BHLE: Tensor, v_BHLE: Tensor, bias_B11L: Tensor | None, p: float) -> Tensor:
    """Attention with dropout p on its weights; the fused kernel has no fast dropout on CPUs and serves p = 0."""
    if p == 0:
        return F.scaled_dot_product_attention(q_BHQE, k_BHLE, v_BHLE, attn_mask=bias_B11L)
    score_BHQL = (q_BHQE * q_BHQE.shape[-1] ** -0.5) @ k_BHLE.transpose(-1, -2)
    if bias_B11L is not None:
        score_BHQL += bias_B11L
    return dropout(score_BHQL.softmax(-1), p) @ v_BHLE


def attention_bias(barred: Tensor, dtype: torch.dtype) -> Tensor:
    """Added to attention scores: the most negative finite number (no NaN in rows of padding) where a key is barred."""
    return torch.zeros(barred.shape, dtype=dtype, device=barred.device).masked_fill_(barred, torch.finfo(dtype).min)


class TiedHead(nn.Module):
    """BERT4Rec's own: LayerNorm(GELU(projection)) against the item embedding, plus a bias of each item."""

    def __init__(self, config: BERT4RecConfig, n_items: int) -> None:
        super().__init__()
        # In a post-norm network the last block has normed already.
        self.first_norm = nn.LayerNorm(config.width) if config.norm == "pre" else nn.Identity()
        self.projection, self.norm = nn.Linear(config.width, config.width), nn.LayerNorm(config.width)
        self.bias = nn.Parameter(torch.empty(n_items))

    def forward(self, h_MD: Tensor, item_VD: Tensor) -> Output:
        return Output(self.norm(F.gelu(self.projection(self.first_norm(h_MD)))), item_VD, self.bias)


class UntiedHead(nn.Module):
    """The paper's code: one linear layer of its own, straight from the last block."""

    def __init__(self, config: BERT4RecConfig, n_items: int) -> None:
        super().__init__()
        self.linear = nn.Linear(config.width, n_items)

    def forward(self, h_MD: Tensor, item_VD: Tensor) -> Output:
        return Output(h_MD, self.linear.weight, self.linear.bias)
