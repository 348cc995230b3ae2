from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from unveil.errors import UnveilError
from unveil.settings import changed, parsed, plain, read_toml


@dataclass(frozen=True)
class Inner:
    width: int = 8
    share: float | None = None
    kind: Literal["a", "b"] = "a"


@dataclass(frozen=True)
class Outer:
    inner: Inner = Inner()
    names: dict[str, str] = field(default_factory=dict)
    pair: tuple[float, float] = (0.5, 1.0)
    seed: int = 0
    on: bool = True


def test_dotted_and_nested_names() -> None:
    assert changed(Outer(), {"inner.width": 3, "inner": {"kind": "b"}}) == Outer(Inner(3, None, "b"))
    assert changed(Outer(), {"names": {"user": "who"}}).names == {"user": "who"}
    assert changed(Outer(), {"names.user": "who", "pair": [0.1, 0.2]}).pair == (0.1, 0.2)


def test_there_and_back() -> None:
    settings = changed(Outer(), {"inner.share": 0.5})
    assert changed(Outer(), plain(settings)) == settings


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inner.widht": 3}, r"run\.toml: unknown setting: found 'inner\.widht'.*Did you mean 'inner\.width'\?"),
        (
            {"sead": 3},
            r"found 'sead', expected one of inner, names, pair, seed, on\. Did you mean 'seed'",
        ),
        (
            {"inner.width": "wide"},
            r"run\.toml, inner\.width: not a valid value: found 'wide', expected a whole number\.$",
        ),
        ({"inner.kind": "c"}, r"inner\.kind: not a valid value: found 'c', expected 'a' or 'b'"),
        ({"inner.widht.deep": 3}, r"unknown setting: found 'inner\.widht\.deep', expected one of inner\.width, "),
        ({"inner": 3, "inner.width": 4}, r"this setting has no parts: found 'inner\.width'"),
        ({"names.user.deep": "x"}, r"this setting has no parts: found 'names\.user\.deep'\. Set names\.user itself"),
        ({"inner.width": None}, r"inner\.width: not a valid value: found 'none', expected a whole number\.$"),
        ({"inner.width": 3.5}, r"found 3\.5, expected a whole number\.$"),
        ({"inner.share": "half"}, r"found 'half', expected a number\.$"),
        ({"on": 7}, r"found 7, expected true or false\.$"),
        ({"names.user": 3}, r"names\.user: not a valid value: found 3, expected text\.$"),
        ({"names": 3}, r"names: not a valid value: found 3, expected a group of settings: set its parts by dotted"),
        ({"inner": "x"}, r"inner: not a valid value: found 'x', expected a group of settings: set its parts by dotted"),
        ({"pair": "x"}, r"pair: not a valid value: found 'x', expected a list\.$"),
        ({"pair": [1]}, r"pair\.1: not a valid value: found \[1\], expected one value more\.$"),
        ({"pair": [1, 2, 3]}, r"pair: not a valid value: found \[1, 2, 3\], expected fewer values\.$"),
        ({"iner.width": 3}, r"found 'iner\.width', expected one of inner, .*\. Did you mean 'inner\.width'\?"),
        ({"iner": 3}, r"Did you mean 'inner'\?"),
        ({"width": 3}, r"Did you mean 'inner\.width'\?"),
        ({"seed.deep": 1}, r"this setting has no parts: found 'seed\.deep'\. Set seed itself"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UnveilError, match=message):
        changed(Outer(), changes, where="run.toml")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.b=3", ("a.b", 3)),
        ("a.b = 0.5", ("a.b", 0.5)),
        ("a=true", ("a", True)),
        ("a=itps", ("a", "itps")),
        ("a=none", ("a", None)),
        ("a=[1, 2]", ("a", [1, 2])),
        ("a=b=c", ("a", "b=c")),
        ("a=" + "[" * 5_000, ("a", "[" * 5_000)),
    ],
)
def test_assignments(text: str, expected: tuple[str, Any]) -> None:
    assert parsed(text) == expected


@pytest.mark.parametrize("text", ["a.b", "=3", ""])
def test_what_is_no_assignment(text: str) -> None:
    with pytest.raises(UnveilError, match="expected name=value"):
        parsed(text)


def test_a_number_of_thousands_of_digits(tmp_path: Path) -> None:
    """Python refuses to read it, and TOML passes that on."""
    (tmp_path / "config.toml").write_text(f"seed = {'1' * 5000}")
    with pytest.raises(UnveilError, match=r"config\.toml: not TOML: Exceeds the limit"):
        read_toml(tmp_path / "config.toml", "config")
    assert parsed(f"training.seed={'1' * 5000}") == ("training.seed", "1" * 5000)
