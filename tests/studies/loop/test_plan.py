from typing import Any

import pytest

from unveil.data.filters import LogSource
from unveil.errors import UnveilError
from unveil.settings import plain
from unveil.studies.loop import LoopStudy
from unveil.training.recipe import Recipe

LOG = LogSource("log.csv")


def recipes(*models: str, **fields: Any) -> list[Recipe]:
    study = LoopStudy(log=LOG, estimators=models, **fields)
    return [recipe for recipe in study.models.values() if recipe is not None]


def name_of(recipe: Recipe) -> str:
    return str(plain(recipe.model)["name"])


def test_settings_of_all_models_of_one_and_of_the_response() -> None:
    settings = ("model.width=16", "itps:model.width=8", "itps:estimator.exponent=0.5", "response.patience=0.4")
    study = LoopStudy(log=LOG, response="geometric", estimators=("naive", "itps", "popularity"), changes=settings)
    naive, itps, rule = study.models.values()
    assert naive is not None
    assert itps is not None
    assert rule is None
    assert (naive.model.width, itps.model.width) == (16, 8)
    assert itps.estimator == {"name": "itps", "exponent": 0.5}
    assert study.response_options == {"name": "geometric", "patience": 0.4}
    assert naive.training.threads == 1


@pytest.mark.parametrize(
    ("models", "settings", "message"),
    [
        (("navie",), (), "unknown model: found 'navie'.*Did you mean 'naive'"),
        ((), (), "there is no model to loop"),
        (("naive", "naive"), (), "a model was named twice"),
        (("naive",), ("itps:model.width=8",), "unknown model: found 'itps', expected one of naive"),
        (("naive",), ("model.wdith=8",), "model.wdith"),
        (("naive",), ("response.patience=1",), "takes no options"),
        (("itps",), ("propensity.name=known-temporal",), "the recommender decides what is shown"),
    ],
)
def test_what_is_refused(models: tuple[str, ...], settings: tuple[str, ...], message: str) -> None:
    with pytest.raises(UnveilError, match=message):
        LoopStudy(log=LOG, estimators=models, changes=settings)


@pytest.mark.parametrize("wrong", [{"rounds": 0}, {"k": 0}, {"replicates": 0}, {"seed": -1}, {"retrain": "now"}])
def test_a_loop_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(UnveilError, match=next(iter(wrong))):
        LoopStudy(log=LOG, **wrong)


@pytest.mark.parametrize(("preset", "network"), [("quick", "sasrec"), ("converged", "sasrec"), ("paper", "bert4rec")])
def test_a_loop_that_names_no_network_has_the_default_of_train(preset: str, network: str) -> None:
    assert [name_of(recipe) for recipe in recipes("naive", "itps", preset=preset)] == [network, network]
    (named,) = recipes("naive", preset=preset, changes=("model.name=gru4rec",))
    assert name_of(named) == "gru4rec"


def test_the_authors_settings_are_their_own_for_each_model() -> None:
    paper = {"preset": "paper", "tuned_for": "beauty", "changes": ("ips:training.epochs=3",)}
    naive, ips = recipes("naive", "ips", "random", **paper)
    assert (naive.model.width, naive.model.length, naive.task.batch_size, naive.training.epochs) == (16, 10, 16, 100)
    assert (ips.model.width, ips.model.blocks, ips.training.epochs) == (64, 2, 3)
    assert ips.estimator == {"name": "ips", "exponent": 0.01}
    naive, ips = recipes("naive", "ips", preset="converged", tuned_for="ml-1m")
    assert naive.model == ips.model
    assert ips.estimator == {"name": "ips", "exponent": 0.5}
    assert name_of(naive) == "bert4rec"
    with pytest.raises(UnveilError, match=r"unknown data set with the authors' settings.*ml-1m"):
        recipes("naive", preset="paper", tuned_for="ml-2m")
