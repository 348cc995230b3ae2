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


@pytest.mark.parametrize(
    "url", ["postgresql:/bob:hunter2@h/x", "postgresql://bob:hun:ter2@h", "postgres//bob:hunter2@h"]
)
def test_passwords_are_never_shown(url: str) -> None:
    for error in (
        UnveilError("no such file", where=url),
        UnveilError("what?", found=url),
        UnveilError(f"{url} is odd"),
    ):
        assert "ter2" not in str(error)
        assert "***@h" in str(error)
