"""A shelf shared by several: here each has a thread and a side of its own; real processes are in test_group."""

import resource
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from unveil.training.distributed import Shelf, layers, tickets

ROOM = 256  # bytes: four cache lines
SHAPES = st.lists(
    st.tuples(
        st.lists(st.integers(0, 9), min_size=0, max_size=3).map(tuple), st.sampled_from([torch.float32, torch.float64])
    ),
    max_size=6,
)


def shelves(size: int, folder: Path) -> list[Shelf]:
    made = tickets(size, folder, ROOM)
    assert made is not None
    return [Shelf(ticket, ROOM) for ticket in made]


def numbers(rank: int, sizes: Sequence[int]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(rank)
    return [torch.randn(size, generator=generator) for size in sizes]


@given(SHAPES)
def test_layers_hold_every_number_once_and_in_order(shapes: list[tuple[tuple[int, ...], torch.dtype]]) -> None:
    tensors, start = [], 0
    for shape, dtype in shapes:
        count = torch.Size(shape).numel()
        tensors.append(torch.arange(start, start + count).to(dtype).reshape(shape))
        start += count
    made = list(layers(tensors, ROOM))
    assert [int(x) for layer in made for piece in layer for x in piece] == list(range(start))
    for layer in made:
        lines = [-(-piece.numel() * piece.dtype.itemsize // 64) for piece in layer]
        assert sum(lines) <= ROOM // 64


def test_layers_are_views() -> None:
    tensor = torch.zeros(9, 9)
    for layer in layers([tensor], ROOM):
        for piece in layer:
            piece += 1
    assert tensor.eq(1).all()


@pytest.mark.parametrize("size", [2, 3, 5])
def test_all_find_the_same_sum_however_late_some_come(size: int, tmp_path: Path) -> None:
    """Forty sums in a row, of which some take several layers: who is early must not write over what others read."""
    counts = [[1 + turn % 7, 40, 200, 0, 3] for turn in range(40)]

    def work(shelf: Shelf) -> list[list[Tensor]]:
        found = []
        for turn, sizes in enumerate(counts):
            mine = numbers(100 * shelf.rank + turn, sizes)
            if turn % size == shelf.rank:
                time.sleep(0.002)
            shelf.add_up(mine)
            found.append(mine)
        return found

    with ThreadPoolExecutor(size) as pool:
        leader, *others = pool.map(work, shelves(size, tmp_path))
    for turn, sizes in enumerate(counts):
        first, *rest = (numbers(100 * rank + turn, sizes) for rank in range(size))
        for each in rest:
            for total, more in zip(first, each, strict=True):
                total += more
        for found in (leader, *others):
            for total, got in zip(first, found[turn], strict=True):
                assert torch.equal(total, got)


def test_who_is_gone_has_hung_up(tmp_path: Path) -> None:
    made = tickets(2, tmp_path, ROOM)
    assert made is not None
    leader, other = made
    other.lines[0].close()
    with pytest.raises((EOFError, OSError)):
        Shelf(leader, ROOM).add_up([torch.ones(3)])


def test_without_room_there_is_no_shelf(tmp_path: Path) -> None:
    assert tickets(2, tmp_path / "nowhere") is None
    with largest_file(2**16):
        assert tickets(2, tmp_path) is None
    assert not list(tmp_path.iterdir())


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
