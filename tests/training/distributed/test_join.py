"""Where workers meet: who is waited for, and who is not."""

import pytest
from torch._C._distributed_c10d import HashStore

from unveil.errors import UnveilError
from unveil.training.distributed import SINGLE, Place, WorkerLostError, Workers, _wait_for_all, joined


class Doomed(Workers):
    def failure(self) -> str | None:
        return "worker 2 of 2 died"


def test_a_worker_that_dies_before_it_joins_is_not_waited_for() -> None:
    with pytest.raises(WorkerLostError, match="worker 2 of 2 died"):
        _wait_for_all(HashStore(), Place(0, 2, "nowhere"), Doomed())


def test_one_alone_joins_nobody() -> None:
    with joined(Place(0, 1, "nowhere")) as group:
        assert group is SINGLE


def test_a_place_that_cannot_be_reached_is_named() -> None:
    with (
        pytest.raises(UnveilError, match=r"carrier-pigeon://roof: worker 2 cannot join the others"),
        joined(Place(1, 2, "carrier-pigeon://roof"), "cpu"),
    ):
        pass
