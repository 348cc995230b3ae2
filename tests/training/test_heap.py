"""Memory that was freed and kept goes back to the system: in a process of its own, where nothing else frees any."""

import json
import platform
import subprocess
import sys

import pytest

from unveil.training import learner
from unveil.training.learner import Tidying, resident

#: Every other of many small pieces is freed, so that none of the memory between them is at the heap's end.
FRAGMENTS = """
import json
from unveil.training.learner import give_back, resident
pieces = [bytearray(100_000) for _ in range(2000)]
del pieces[::2]
before = resident()
print(json.dumps([before, give_back(), resident()]))
assert len(pieces) == 1000
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the allocator is not glibc's")
def test_what_is_free_between_pieces_in_use_is_given_back() -> None:
    told = subprocess.run([sys.executable, "-c", FRAGMENTS], check=True, capture_output=True, text=True).stdout
    before, gave, after = json.loads(told)
    assert gave
    assert before - after > 70e6  # of 100 MB that are free


def test_it_acts_when_much_has_come_together() -> None:
    """2 GiB are needed after the first step: 3 GiB may be held, more is given back, and the need is found anew."""
    held = iter([2.0, 2.5, 3.0, 3.1, 1.5, 2.4, 2.6, 9.0])
    now = iter(range(8))
    tidying = Tidying(lambda: int(next(held) * 2**30), lambda: float(next(now)))
    assert [tidying.after_step() for _ in range(8)] == [False, False, False, True, False, False, True, False]


def test_it_does_not_look_after_every_step() -> None:
    looks, now = iter(range(9)), iter([0.0, 0.2, 0.9, 1.0, 1.5])
    tidying = Tidying(lambda: next(looks), lambda: next(now))
    for _ in range(5):
        tidying.after_step()
    assert next(looks) == 2


def test_what_is_resident_is_what_the_system_says() -> None:
    before, kept = resident(), bytearray(b"x") * (64 * 2**20)
    assert not before or resident() - before > 60 * 2**20
    assert len(kept) == 64 * 2**20


def test_another_allocator_is_left_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "_trim", lambda: None)
    assert not learner.give_back()
