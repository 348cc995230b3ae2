"""SASRec: a causal transformer that predicts the next item at every event, with BERT4Rec's blocks.

Shapes: B batch, L length, D width, M slots, V items. Rows are right-aligned and begin with MASK.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from unveil.data.slots import pad_token
from unveil.models.base import Causal, Where, register
from unveil.models.bert4rec import Transformer, TransformerConfig, attention_bias


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
