"""BERT4Rec as one would write it in an afternoon: what the library is measured against.

The same network under the same names, so that the weights of one load into the other; logits at every position, cross-
entropy that ignores all but the masked ones, `nn.Dropout`, rows padded to full length, AdamW as it comes.
"""

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unveil.data.batches import Batch
from unveil.data.interactions import Sequences
from unveil.models.bert4rec import BERT4RecConfig

IGNORE = -100


class PlainBlock(nn.Module):
    def __init__(self, config: BERT4RecConfig) -> None:
        super().__init__()
        D = config.width
        self.heads = config.heads
        self.attention_norm, self.ffn_norm = nn.LayerNorm(D), nn.LayerNorm(D)
        self.query, self.key_value, self.mix = nn.Linear(D, D), nn.Linear(D, 2 * D), nn.Linear(D, D)
        self.widen, self.narrow = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)
        self.attention_dropout, self.dropout = nn.Dropout(config.dropout), nn.Dropout(config.dropout)

    def forward(self, x: Tensor, is_pad: Tensor) -> Tensor:
        x = x + self.dropout(self.attend(self.attention_norm(x), is_pad))
        wide: Tensor = self.dropout(self.narrow(F.gelu(self.widen(self.ffn_norm(x)))))
        return x + wide

    def attend(self, x: Tensor, is_pad: Tensor) -> Tensor:
        B, L, D = x.shape
        key, value = self.key_value(x).chunk(2, dim=-1)
        q, k, v = (y.view(B, L, self.heads, -1).transpose(1, 2) for y in (self.query(x), key, value))
        score = q @ k.transpose(-2, -1) / math.sqrt(D // self.heads)
        score = score.masked_fill(is_pad[:, None, None, :], -1e9)
        mixed: Tensor = self.mix((self.attention_dropout(score.softmax(-1)) @ v).transpose(1, 2).reshape(B, L, D))
        return mixed


class PlainHead(nn.Module):
    def __init__(self, config: BERT4RecConfig, n_items: int) -> None:
        super().__init__()
        self.first_norm, self.norm = nn.LayerNorm(config.width), nn.LayerNorm(config.width)
        self.projection = nn.Linear(config.width, config.width)
        self.bias = nn.Parameter(torch.zeros(n_items))


class PlainBERT4Rec(nn.Module):
    def __init__(self, config: BERT4RecConfig, n_items: int) -> None:
        super().__init__()
        self.n_items = n_items
        self.item = nn.Embedding(n_items + 2, config.width)
        self.position = nn.Embedding(config.length, config.width)
        self.blocks = nn.ModuleList(PlainBlock(config) for _ in range(config.blocks))
        self.output = PlainHead(config, n_items)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, token: Tensor) -> Tensor:
        back = torch.arange(token.shape[1] - 1, -1, -1)
        x = self.dropout(self.item(token) + self.position(back))
        for block in self.blocks:
            x = block(x, token == self.n_items)
        head = self.output
        x = head.norm(F.gelu(head.projection(head.first_norm(x))))
        logits: Tensor = x @ self.item.weight[: self.n_items].T + head.bias
        return logits


def train_steps(model: PlainBERT4Rec, optimiser: torch.optim.Optimizer, batches: Iterator[Batch]) -> Iterator[float]:
    """The mean loss so far, after each batch."""
    model.train()
    total = slots = 0.0
    for batch in batches:
        label = torch.full_like(batch.token_BL, IGNORE)
        label[batch.where] = batch.slots.item_M
        logits = model(batch.token_BL)
        loss = F.cross_entropy(logits.view(-1, model.n_items), label.view(-1), ignore_index=IGNORE)
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
        total, slots = total + loss.item() * len(batch.slots), slots + len(batch.slots)
        yield total / slots


def rank_steps(
    model: PlainBERT4Rec, sequences: Sequences, length: int, top_UK: Tensor, batch_size: int
) -> Iterator[None]:
    """Fill in the top K unseen items of every user, batch by batch."""
    model.eval()
    for start in range(0, sequences.n_users, batch_size):
        users = range(start, min(start + batch_size, sequences.n_users))
        token = torch.full((len(users), length), sequences.n_items)
        for row, user in enumerate(users):
            history = sequences.history(user)[-(length - 1) :]
            token[row, length - 1 - len(history) : length - 1] = torch.from_numpy(history.astype(np.int64))
        token[:, -1] = sequences.n_items + 1
        with torch.no_grad():
            scores = model(token)[:, -1]
        for row, user in enumerate(users):
            scores[row, torch.from_numpy(sequences.history(user).astype(np.int64))] = -torch.inf
        top_UK[users.start : users.stop] = scores.topk(top_UK.shape[1]).indices
        yield
