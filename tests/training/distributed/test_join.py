"""Where workers meet: who is waited for, and who is not."""

from datetime import timedelta

import pytest
from torch._C._distributed_c10d import HashStore

from unveil.errors import UnveilError
from unveil.training import distributed
from unveil.training.distributed import SINGLE, Place, WorkerLostError, joined


def test_who_does_not_join_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "TO_JOIN", timedelta(0))
    with pytest.raises(WorkerLostError, match="not all of the 2 workers joined within 0 minutes"):
        distributed._wait_for_all(HashStore(), Place(0, 2, "nowhere"))


def test_one_alone_joins_nobody() -> None:
    with joined(Place(0, 1, "nowhere")) as group:
        assert group is SINGLE


def test_a_place_that_cannot_be_reached_is_named() -> None:
    with (
        pytest.raises(UnveilError, match=r"carrier-pigeon://roof: worker 2 cannot join the others"),
        joined(Place(1, 2, "carrier-pigeon://roof"), "cpu"),
    ):
        pass
