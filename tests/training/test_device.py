"""Freed memory is given back where much of it has come together."""

import json
import platform
import subprocess
import sys

import pytest

from unveil.training import device
from unveil.training.device import HeapTrim, resident

#: Every other of many small pieces is freed, so that none of the memory between them is at the heap's end.
FRAGMENTS = """
import json
from unveil.training.device import malloc_trim, resident
pieces = [bytearray(100_000) for _ in range(2000)]
del pieces[::2]
before = resident()
print(json.dumps([before, malloc_trim(), resident()]))
assert len(pieces) == 1000
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the allocator is not glibc's")
def test_what_is_free_between_pieces_in_use_is_given_back() -> None:
    told = subprocess.run([sys.executable, "-c", FRAGMENTS], check=True, capture_output=True, text=True).stdout
    before, gave, after = json.loads(told)
    assert gave
    assert before - after > 70e6  # of 100 MB that are free


def test_it_trims_when_much_has_come_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """2 GiB are needed after the first step: 3 GiB may be held, more is given back, and the need is found anew."""
    held, trims = iter([2.0, 2.5, 3.0, 3.1, 1.5, 2.4, 2.6, 9.0]), list[bool]()
    monkeypatch.setattr(device, "malloc_trim", lambda: trims.append(True))
    trim, found = HeapTrim(lambda: int(next(held) * 2**30)), list[int]()
    for _ in range(8):
        trim()
        found.append(len(trims))
    assert found == [0, 0, 0, 1, 1, 1, 2, 2]


def test_what_is_resident_is_what_the_system_says() -> None:
    before, kept = resident(), bytearray(b"x") * (64 * 2**20)
    assert not before or resident() - before > 60 * 2**20
    assert len(kept) == 64 * 2**20
