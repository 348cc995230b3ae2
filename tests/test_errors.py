import pytest

from unveil.errors import UnveilError, check_range, unknown


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


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("rational", "Did you mean 'rational_all' or 'rational_exposed'?"),
        ("rational_a", "Did you mean 'rational_all'?"),
        ("rational_exposd", "Did you mean 'rational_exposed'?"),
        ("wholly else", None),
        ("", None),
    ],
)
def test_names_that_begin_so_are_meant_or_else_the_nearest(typed: str, hint: str | None) -> None:
    assert unknown("choice", typed, ["by_chance", "rational_all", "rational_exposed"]).hint == hint


def test_what_is_near_is_suggested_too_and_each_name_once() -> None:
    assert unknown("setting", "ep", ["lr"], near=["epochs", "epochs"]).hint == "Did you mean 'epochs'?"


def test_what_is_out_of_its_range_is_refused_by_name() -> None:
    check_range(0 <= 1 <= 1, "itps.clip", 1, "between 0 and 1")
    with pytest.raises(UnveilError, match=r"^itps\.clip: out of range: found 2, expected between 0 and 1\.$"):
        check_range(0 <= 2 <= 1, "itps.clip", 2, "between 0 and 1")


def test_long_finds_are_cut() -> None:
    assert len(str(UnveilError("too long", found="x" * 10_000))) < 200


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:/bob:hunter2@h/x",
        "postgresql://bob:hun:ter2@h",
        "postgresql://bob:hun@ter2@h",
        "postgres//bob:hunter2@h",
    ],
)
def test_passwords_are_never_shown(url: str) -> None:
    for error in (
        UnveilError("no such file", where=url),
        UnveilError("what?", found=url),
        UnveilError(f"{url} is odd"),
    ):
        assert "ter2" not in str(error)
        assert "***@h" in str(error)
