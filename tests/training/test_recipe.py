from typing import Any

import pytest

from unveil.errors import UnveilError
from unveil.settings import flattened, plain
from unveil.training.recipe import PRESETS, Recipe, preset


@pytest.mark.parametrize("name", list(PRESETS))
def test_every_setting_of_a_preset_is_one(name: str) -> None:
    tree = flattened(plain(Recipe.preset(name)))
    for setting, value in {**preset(name)[0], **preset(name)[1]}.items():
        assert tree[setting] == value


def test_a_preset_is_laid_out_for_a_network() -> None:
    causal, recurrent = Recipe.preset("converged", "sasrec"), Recipe.preset("converged", "gru4rec")
    assert (plain(causal.model)["name"], causal.training.epochs, causal.task.batch_size) == ("sasrec", 60, 64)
    assert (plain(recurrent.model)["name"], recurrent.model.blocks) == ("gru4rec", 1)
    assert Recipe.preset("converged", "sasrec") == Recipe.preset("converged")
    assert Recipe.preset("quick", "bert4rec") == Recipe.preset("quick").changed({"model.name": "bert4rec"})
    networks = [plain(recipe.model)["name"] for recipe in (Recipe(), Recipe.preset("quick"), Recipe.preset("paper"))]
    assert networks == ["sasrec", "sasrec", "bert4rec"]
    with pytest.raises(UnveilError, match="unknown model"):
        Recipe.preset("converged", "sasrek")


def test_presets_differ() -> None:
    assert len({repr(Recipe.preset(name)) for name in PRESETS}) == len(PRESETS)


def test_the_paper_preset_does_what_the_paper_does() -> None:
    recipe = Recipe.preset("paper")
    assert (recipe.task.last_share, recipe.task.always_mask, recipe.model.head) == (0.0, False, "untied")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"estimator.name": "isp"}, r"unknown estimator: found 'isp', expected one of .*ips, itps.*Did"),
        ({"estimator": {"name": None}}, "unknown estimator: found 'None'"),
        (
            {"propensity.name": "logd"},
            r"unknown propensity: found 'logd', expected one of auto,.*Did you mean 'logged'",
        ),
        (
            {"estimator.name": "itps", "estimator.clip": "abc"},
            r"itps\.clip: not a valid value: found 'abc', expected a number",
        ),
        (
            {"estimator.name": "itps", "estimator.clip": "100%"},
            r"estimator\.clip: not a valid value: found '100%', expected a share of the events",
        ),
        (
            {"propensity.name": "joint-temporal", "propensity.blocks": 2.5},
            r"joint-temporal\.blocks: not a valid value: found 2\.5, expected a whole number",
        ),
        (
            {"propensity.name": "popularity-static", "propensity.add": -1.0},
            r"popularity-static\.add: out of range: found -1\.0, expected 0 or more",
        ),
        (
            {"propensity.name": "damped-temporal", "propensity.half_width": -1},
            r"damped-temporal\.half_width: out of range: found -1, expected 0 or more",
        ),
        ({"training.epochs": 0}, r"training\.epochs: out of range: found 0, expected at least 1"),
        ({"training.schedule": "lineer"}, r"training\.schedule: not a valid value: found 'lineer'"),
        ({"model.heads": 3}, "width must be a multiple of heads"),
        ({"model.name": "sasrek"}, r"unknown model: found 'sasrek'.*Did you mean 'sasrec'\?"),
        ({"model": {"name": "gru4rec", "heads": 2}}, r"unknown setting: found 'model\.heads'"),
        ({"model.width": "wide"}, r"model\.width: not a valid value: found 'wide'"),
        ({"model": {"name": "sasrec", "width": "wide"}}, r"model\.width: not a valid value: found 'wide'"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UnveilError, match=message):
        Recipe().changed(changes)


def test_an_unknown_preset_suggests_the_nearest() -> None:
    with pytest.raises(UnveilError, match=r"unknown preset: found 'convergd'.*Did you mean 'converged'\?"):
        preset("convergd")


def test_another_network_keeps_what_both_have() -> None:
    recipe = Recipe().changed({"model.width": 32, "model.heads": 4, "model.norm": "post"})
    causal = recipe.changed({"model.name": "sasrec"})
    assert plain(causal.model) == plain(recipe.model) | {"name": "sasrec"}
    recurrent = causal.changed({"model": {"name": "gru4rec", "length": 7}})
    assert plain(recurrent.model) == {
        "name": "gru4rec",
        "width": 32,
        "blocks": 2,
        "length": 7,
        "dropout": 0.1,
        "head": "tied",
    }
    assert recurrent.changed({"training.epochs": 3}).model == recurrent.model
