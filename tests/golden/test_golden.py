"""Small commands of every kind still write the same files with the same numbers: see README.md."""

import pytest

from tests.golden.aliases import Aliases
from tests.golden.commands import CASES
from tests.golden.recording import RECORDED, Check, Recording, differences


@pytest.mark.parametrize("case", CASES)
def test_files_and_numbers_are_those_that_were_recorded(case: str) -> None:
    old = Recording.read(case)
    check = Check.of(case, old)
    assert list(differences(case, old, Recording.of(CASES[case]), check, Aliases.read())) == []
    if check.note:
        pytest.skip(check.note)


def test_every_recording_has_its_case() -> None:
    assert {path.stem for path in RECORDED.glob("*.json")} == set(CASES)
