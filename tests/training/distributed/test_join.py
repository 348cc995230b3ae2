"""Where workers meet: each team in a corner of its own, whatever others have left there."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from torch._C._distributed_c10d import HashStore

from unveil.errors import UnveilError
from unveil.training.distributed import Place, Strangers, _met, joined
from unveil.training.process_group import SOLO, WorkerLostError


def meet(store: HashStore, size: int, word: str) -> set[bytes]:
    """What all of a team read where only the leader wrote."""

    def one(rank: int) -> bytes:
        corner = _met(store, Place(rank, size, "nowhere"), Strangers())
        if rank == 0:
            corner.set("word", word)
        found: bytes = corner.get("word")
        return found

    with ThreadPoolExecutor(size) as pool:
        return set(pool.map(one, range(size)))


def test_a_team_that_meets_again_does_not_take_what_another_left_for_its_own() -> None:
    store = HashStore()
    store.set("came/1", "one that died before it was told")
    assert [meet(store, 3, word) for word in "abc"] == [{b"a"}, {b"b"}, {b"c"}]


class Doomed(Strangers):
    def dead(self) -> str | None:
        return "worker 2 of 2 died"


def test_a_worker_that_dies_on_its_way_is_not_waited_for() -> None:
    with pytest.raises(WorkerLostError, match="worker 2 of 2 died"):
        _met(HashStore(), Place(0, 2, "nowhere"), Doomed())


def test_one_alone_meets_nobody() -> None:
    with joined(Place(0, 1, "nowhere")) as team:
        assert team is SOLO


def test_a_place_that_cannot_be_reached_is_named() -> None:
    with (
        pytest.raises(UnveilError, match=r"carrier-pigeon://roof: worker 2 cannot join the others"),
        joined(Place(1, 2, "carrier-pigeon://roof"), "cpu"),
    ):
        pass
