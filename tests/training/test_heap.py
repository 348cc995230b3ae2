"""Memory that was freed and kept goes back to the system: in a process of its own, where nothing else frees any."""

import json
import platform
import subprocess
import sys

import pytest

from unveil.training import heap
from unveil.training.heap import Tidying

#: Every other of many small pieces is freed, so that none of the memory between them is at the heap's end.
FRAGMENTS = """
import json, resource, sys
from pathlib import Path
from unveil.training.heap import give_back

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20

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
    assert before - after > 70  # of 95 MiB that are free


def test_it_acts_once_in_a_while() -> None:
    now = [0.0]
    tidying = Tidying(60.0, lambda: now[0])
    acted = []
    for now[0] in range(0, 181, 20):
        acted.append(tidying.after_step())
    assert acted == [False, False, False, True, False, False, True, False, False, True]


def test_another_allocator_is_left_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap, "_trim", lambda: None)
    assert not heap.give_back()
