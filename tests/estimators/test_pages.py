"""Every registered estimator has its page, with its options as they are, and the pages name what exists."""

import re
from inspect import Parameter, signature
from pathlib import Path

import pytest

from tests.studies.test_theory_docs import found
from unveil.estimators.base import ESTIMATORS

FOLDER = Path(__file__).parents[2] / "docs" / "estimators"
NAMES = [name for name in ESTIMATORS if ESTIMATORS[name].__module__.startswith("unveil.")]


def page(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_every_estimator_has_its_page(name: str) -> None:
    text, cls = page(name), ESTIMATORS[name]
    assert text.startswith(f"# {name}\n")
    for part in ("$$", "**Assumption", "**Use it**", "**It fails**", "**Computed by**"):
        assert part in text
    assert f"`{cls.__module__}.{cls.__qualname__}`" in text
    assert f"[{name}]({name}.md)" in (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_the_options_are_those_it_has_with_their_defaults(name: str) -> None:
    options = {key: each.default for key, each in signature(ESTIMATORS[name]).parameters.items()}
    expected = {key: str(value).lower() for key, value in options.items() if value is not Parameter.empty}
    assert dict(re.findall(r"^\| `(\w+)` \| (\S+) \|", page(name), re.MULTILINE)) == expected


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.md")), ids=lambda path: str(path.stem))
def test_what_a_page_names_exists(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for name in re.findall(r"`(unveil(?:\.\w+)+)`", text):
        assert found(name) is not None
    for file in re.findall(r"`(tests/\S+\.py)`", text):
        assert (FOLDER.parents[1] / file).exists(), file
    for link in re.findall(r"\]\(([\w./-]+\.md)\)", text):
        assert (FOLDER / link).exists(), link
    assert path.stem in {*ESTIMATORS, "README"}
