"""What causal networks share: at each column they have read the tokens up to it, and say what comes next.

Shapes: B batch, L length, D width, M slots asked for, V items.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn

from unveil.data.slots import mask_token, pad_token
from unveil.models.base import Backbone, Output, TaskName


class Causal(Backbone):
    """Its rows begin with MASK, as in `data.next_item`; it is asked like all networks, with MASK at the end."""

    task: ClassVar[TaskName] = "next-item"
    item: nn.Embedding
    table: nn.Embedding | None  # of an untied head
    bias: nn.Parameter

    def scores(self, token_BL: Tensor) -> Tensor:
        """scores_BV for what comes next: the last column has read the whole history."""
        return super().scores(begun(token_BL, self.n_items))

    def head(self, h_MD: Tensor) -> Output:
        """The three factors of the logits: the items' own vectors as answers, or those of an untied table."""
        table_VD = self.item.weight[: self.n_items] if self.table is None else self.table.weight
        return Output(h_MD, table_VD, self.bias)


def begun(token_BL: Tensor, n_items: int) -> Tensor:
    """Rows with their last token, MASK, moved to the beginning: PAD x₁ x₂ MASK becomes PAD MASK x₁ x₂."""
    padding_B = (token_BL == pad_token(n_items)).sum(1)
    column_L = torch.arange(token_BL.shape[1], device=token_BL.device)
    rolled_BL = token_BL.roll(1, dims=1).masked_fill(column_L < padding_B[:, None], pad_token(n_items))
    return rolled_BL.masked_fill(column_L == padding_B[:, None], mask_token(n_items))
