import pytest

from unveil.errors import UnveilError


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (UnveilError("the file is empty"), "the file is empty."),
        (UnveilError("no such file", where="log.csv", hint="Try ml-1m."), "log.csv: no such file. Try ml-1m."),
        (UnveilError("not a time", found="x", expected="ISO"), "not a time: found 'x', expected ISO."),
        (UnveilError("too few", found=2, expected="3"), "too few: found 2, expected 3."),
    ],
)
def test_one_sentence_and_one_hint(error: UnveilError, message: str) -> None:
    assert str(error) == message


def test_long_finds_are_cut() -> None:
    assert len(str(UnveilError("too long", found="x" * 10_000))) < 200
