"""Registries: found by themselves, one owner a name, and a hint for a mistyped one."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from unveil.errors import UnveilError, UnveilWarning
from unveil.estimators.base import ESTIMATORS
from unveil.registry import Named, Registry
from unveil.training.recipe import Recipe

SHOP = """
from dataclasses import dataclass
from typing import ClassVar
from {shop} import FRUIT

@FRUIT.register
@dataclass(frozen=True)
class Thing:
    part: str
    weight: float = 1.0
    count: int = 1
    ripe: bool = True
    stones: int | None = None
    seed: int = 0
    name: ClassVar[str] = "{name}"
"""


@dataclass(frozen=True)
class Fig:
    name: ClassVar[str] = "fig"


@pytest.fixture
def fruit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry[Named]]:
    """A package of two files and a distribution that offers a class of its own."""
    shop = f"shop_{tmp_path.name}"
    folder = tmp_path / shop
    folder.mkdir()
    (folder / "__init__.py").write_text(
        f"from unveil.registry import Registry\nFRUIT = Registry('fruit', package={shop!r}, group={shop!r})\n"
    )
    for name in ("apple", "pear"):
        (folder / f"{name}.py").write_text(SHOP.format(shop=shop, name=name))
    (tmp_path / "garden.py").write_text(SHOP.format(shop=shop, name="quince"))
    offer = tmp_path / "garden-1.0.dist-info"
    offer.mkdir()
    (offer / "METADATA").write_text("Metadata-Version: 2.1\nName: garden\nVersion: 1.0\n")
    (offer / "entry_points.txt").write_text(f"[{shop}]\nquince = garden:Thing\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield __import__(shop).FRUIT
    for module in [name for name in sys.modules if name.split(".")[0] in (shop, "garden")]:
        del sys.modules[module]


def test_classes_are_found_in_the_package_and_behind_entry_points(fruit: Registry[Named]) -> None:
    assert list(fruit) == ["apple", "pear", "quince"]
    assert len(fruit) == 3
    assert fruit["pear"].name == "pear"


def test_nothing_is_imported_before_the_first_question(fruit: Registry[Named]) -> None:
    assert f"{fruit.package}.apple" not in sys.modules
    assert "apple" in list(fruit)
    assert f"{fruit.package}.apple" in sys.modules


def test_an_unknown_name_is_answered_with_the_nearest(fruit: Registry[Named]) -> None:
    with pytest.raises(UnveilError, match=r"found 'aple', expected one of apple, pear, quince\. Did you mean 'apple'"):
        fruit["aple"]
    with pytest.raises(UnveilError) as told:
        fruit["zzz"]
    assert told.value.hint is None


def test_an_old_name_is_found_with_a_warning_that_names_the_new_one_and_is_in_no_list(fruit: Registry[Named]) -> None:
    fruit.aliases["crab"] = "apple"
    with pytest.warns(UnveilWarning, match="the fruit 'crab' is now called 'apple'"):
        assert fruit["crab"].name == "apple"
    with pytest.warns(UnveilWarning, match="'apple'"):
        assert fruit.current_name("crab") == "apple"
    with pytest.warns(UnveilWarning, match="'apple'"):
        assert fruit.build("crab", {}, "core").name == "apple"
    assert "crab" in fruit
    assert "crab" not in list(fruit)
    assert len(fruit) == 3
    with pytest.raises(UnveilError, match="expected one of apple, pear, quince"):
        fruit["crabs"]
    assert fruit.current_name("pear") == "pear"


def test_an_old_name_never_hides_a_class(fruit: Registry[Named]) -> None:
    fruit.aliases["pear"] = "apple"
    assert fruit["pear"].name == "pear"


def test_a_name_has_one_owner(fruit: Registry[Named]) -> None:
    fruit.register(Fig)
    fruit.register(Fig)

    class Other:
        name: ClassVar[str] = "fig"

    with pytest.raises(ValueError, match="two classes call themselves the fruit 'fig'"):
        fruit.register(Other)


def test_what_it_has_to_be_given_is_no_option(fruit: Registry[Named]) -> None:
    assert fruit.options("apple") == ["weight", "count", "ripe", "stones", "seed"]


def test_values_are_checked_by_kind_before_anything_is_made(fruit: Registry[Named]) -> None:
    fruit.check("apple", {"weight": 2, "ripe": False, "stranger": 1, "seed": 2**63 - 1})
    fruit.check("apple", {"stones": None})
    fruit.check("apple", {"stones": 3})
    with pytest.raises(UnveilError, match=r"apple\.weight: not a valid value: found 'heavy', expected a number"):
        fruit.check("apple", {"ripe": False, "weight": "heavy"})


def test_building_checks_options_by_name_and_kind(fruit: Registry[Named]) -> None:
    apple = fruit.build("apple", {"weight": 2, "ripe": False}, "core")
    assert repr(apple) == "Thing(part='core', weight=2, count=1, ripe=False, stones=None, seed=0)"
    for option, value, told in [
        (
            "wieght",
            1.0,
            "unknown option of the fruit 'apple': found 'wieght', expected one of weight, count, ripe, stones, seed",
        ),
        ("weight", "heavy", "apple.weight: not a valid value: found 'heavy', expected a number"),
        ("weight", True, "apple.weight: not a valid value: found True, expected a number"),
        ("count", 1.5, "apple.count: not a valid value: found 1.5, expected a whole number"),
        ("ripe", 1, "apple.ripe: not a valid value: found 1, expected true or false"),
        ("weight", None, "apple.weight: not a valid value: found 'none', expected a number"),
        ("stones", 1.5, "apple.stones: not a valid value: found 1.5, expected a whole number"),
        ("stones", "many", "apple.stones: not a valid value: found 'many', expected a whole number"),
        ("seed", -1, "apple.seed: out of range: found -1, expected 0 or more"),
        ("seed", 2**63, "apple.seed: out of range"),
        ("part", "core", "unknown option of the fruit 'apple': found 'part'"),
    ]:
        with pytest.raises(UnveilError, match=told):
            fruit.build("apple", {option: value}, "core")


def test_a_recipe_writes_the_new_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ESTIMATORS.aliases, "plain", "naive")
    with pytest.warns(UnveilWarning, match="'naive'"):
        recipe = Recipe().changed({"estimator.name": "plain"})
    assert recipe.estimator == {"name": "naive"}
