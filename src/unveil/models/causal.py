"""Networks that predict the next item at every event: SASRec, a transformer with BERT4Rec's blocks, and GRU4Rec.

Shapes: B batch, L length, D width, M slots, V items. Rows are right-aligned and begin with MASK.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from unveil.data.slots import n_tokens, pad_token
from unveil.models.base import Causal, NetworkConfig, Where, register
from unveil.models.bert4rec import Transformer, TransformerConfig, attention_bias, dropout


@dataclass(frozen=True)
class SASRecConfig(TransformerConfig):
    """The form of BERT4Rec's, under its own name."""

    name: Literal["sasrec"] = "sasrec"


@register
class SASRec(Transformer, Causal):
    """W.-C. Kang and J. McAuley, Self-attentive sequential recommendation, ICDM 2018; with a bias of each item."""

    name = "sasrec"
    Config = SASRecConfig

    def __init__(self, config: SASRecConfig, n_items: int, *, seed: int = 0) -> None:
        super().__init__(config, n_items)
        with torch.random.fork_rng(devices=[]):  # torch layers draw from the global generator when made
            self._add_blocks()
            self.last_norm = nn.LayerNorm(config.width) if config.norm == "pre" else nn.Identity()
            self.table = nn.Embedding(n_items, config.width) if config.head == "untied" else None
            self.bias = nn.Parameter(torch.empty(n_items))
        self.initialise(torch.Generator().manual_seed(seed))

    def forward(self, token_BL: Tensor, where: Where | None = None) -> Tensor:
        h_BLD, L = self.embed(token_BL), token_BL.shape[1]
        later_LL = torch.ones(L, L, dtype=torch.bool, device=token_BL.device).triu(1)
        barred_BLL = later_LL | (token_BL == pad_token(self.n_items))[:, None, :]
        bias_B1LL = attention_bias(barred_BLL[:, None], h_BLD.dtype)
        for block in self.blocks:
            h_BLD = block(h_BLD, bias_B1LL)
        normed: Tensor = self.last_norm(h_BLD if where is None else h_BLD[where])
        return normed


@dataclass(frozen=True)
class GRU4RecConfig(NetworkConfig):
    """Its blocks are layers of recurrent cells."""

    blocks: int = 1
    name: Literal["gru4rec"] = "gru4rec"


@register
class GRU4Rec(Causal):
    """B. Hidasi et al., Session-based recommendations with recurrent neural networks, ICLR 2016; full softmax."""

    name = "gru4rec"
    Config = GRU4RecConfig

    def __init__(self, config: GRU4RecConfig, n_items: int, *, seed: int = 0) -> None:
        super().__init__(config, n_items)
        with torch.random.fork_rng(devices=[]):  # torch layers draw from the global generator when made
            self.item = nn.Embedding(n_tokens(n_items), config.width)
            self.cells = nn.GRU(config.width, config.width, config.blocks, batch_first=True)
            self.last_norm = nn.LayerNorm(config.width)
            self.table = nn.Embedding(n_items, config.width) if config.head == "untied" else None
            self.bias = nn.Parameter(torch.empty(n_items))
        self.initialise(torch.Generator().manual_seed(seed))

    def initialise(self, generator: torch.Generator) -> None:
        """As all networks here, but for the cells: uniform within ± 1/√D, as in torch."""
        super().initialise(generator)
        for parameter in self.cells.parameters():
            nn.init.uniform_(parameter, -(self.config.width**-0.5), self.config.width**-0.5, generator=generator)

    def forward(self, token_BL: Tensor, where: Where | None = None) -> Tensor:
        """h_BLD of every column, or h_MD of the slots `where`; padding is moved behind the events, without effect."""
        B, L = token_BL.shape
        p = self.config.dropout if self.training else 0.0
        padding_B1 = (token_BL == pad_token(self.n_items)).sum(1, keepdim=True)
        column_L = torch.arange(L, device=token_BL.device)
        left_BL = token_BL.gather(1, (column_L + padding_B1) % L)
        h_BLD, _ = self.cells(dropout(self.item(left_BL), p))
        b, column = where if where is not None else torch.meshgrid(torch.arange(B), column_L.cpu(), indexing="ij")
        b, column = b.to(h_BLD.device), column.to(h_BLD.device)
        return dropout(self.last_norm(h_BLD[b, (column - padding_B1[b, 0]) % L]), p)
