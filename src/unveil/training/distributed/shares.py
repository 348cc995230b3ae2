"""Who does what: contiguous shares of a batch's rows, and gradients in buckets.

Shapes: B rows, L columns, M slots.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from unveil.data.batches import Batch

#: Numbers sent at once. A gradient of more goes by itself, without a copy: 16 MiB.
BUCKET = 2**22


def part_of(batch: Batch, rank: int, size: int) -> Batch:
    """Rows ⌊rB/N⌋ up to ⌊(r + 1)B/N⌋ with their slots: the parts of all ranks r < N make up the batch.

    Rows keep their padding, so that a row is computed as it is in the whole batch.
    """
    rows = len(batch.token_BL)
    first, last = rows * rank // size, rows * (rank + 1) // size
    b_M, l_M = batch.where
    start, stop = torch.searchsorted(
        b_M.contiguous(), torch.tensor([first, last])
    ).tolist()  # slots stand in the order of rows
    return Batch(batch.token_BL[first:last], batch.slots.part(start, stop), (b_M[start:stop] - first, l_M[start:stop]))


def buckets(tensors: Sequence[Tensor], most: int = BUCKET) -> Iterator[list[Tensor]]:
    """The tensors in order, in groups of at most `most` numbers, or of one that has more."""
    bucket: list[Tensor] = []
    for tensor in tensors:
        if bucket and sum(each.numel() for each in bucket) + tensor.numel() > most:
            yield bucket
            bucket = []
        bucket.append(tensor)
    if bucket:
        yield bucket
