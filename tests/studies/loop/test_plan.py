import pytest

from tests.studies.loop.conftest import plan_of
from unveil.errors import UnveilError
from unveil.studies.loop import LoopConfig, LoopPlan


def test_settings_of_all_models_of_one_and_of_the_response() -> None:
    config = LoopConfig(response={"name": "geometric"})
    settings = ["model.width=16", "itps:model.width=8", "itps:estimator.exponent=0.5", "response.patience=0.4"]
    plan = LoopPlan.of(config, ["naive", "itps", "popularity"], "quick", settings)
    naive, itps = plan.models["naive"], plan.models["itps"]
    assert naive is not None
    assert itps is not None
    assert (naive.model.width, itps.model.width) == (16, 8)
    assert itps.estimator == {"name": "itps", "exponent": 0.5}
    assert plan.models["popularity"] is None
    assert plan.networks == ["naive", "itps"]
    assert plan.loop.response == {"name": "geometric", "patience": 0.4}
    assert naive.training.threads == 1


@pytest.mark.parametrize(
    ("models", "settings", "message"),
    [
        (["navie"], [], "unknown model: found 'navie'.*Did you mean 'naive'"),
        ([], [], "there is no model to loop"),
        (["naive", "naive"], [], "a model was named twice"),
        (["naive"], ["itps:model.width=8"], "unknown model: found 'itps', expected one of naive"),
        (["naive"], ["model.wdith=8"], "model.wdith"),
        (["naive"], ["response.patience=1"], "takes no options"),
        (["itps"], ["propensity.name=known-temporal"], "the recommender decides what is shown"),
    ],
)
def test_what_is_refused(models: list[str], settings: list[str], message: str) -> None:
    with pytest.raises(UnveilError, match=message):
        LoopPlan.of(LoopConfig(), models, "quick", settings)


@pytest.mark.parametrize("wrong", [{"rounds": 0}, {"k": 0}, {"replicates": 0}, {"seed": -1}, {"retrain": "now"}])
def test_a_loop_out_of_range(wrong: dict[str, int]) -> None:
    with pytest.raises(UnveilError, match=next(iter(wrong))):
        LoopConfig(**wrong)  # type: ignore[arg-type]


def test_trainings() -> None:
    assert plan_of(rounds=10).trainings == 11
    assert plan_of(rounds=10, retrain="every:4").trainings == 3


def test_the_authors_settings_are_their_own_for_each_model() -> None:
    plan = LoopPlan.of(LoopConfig(), ["naive", "ips", "random"], "paper", ["ips:training.epochs=3"], "beauty")
    naive, ips = plan.models["naive"], plan.models["ips"]
    assert naive is not None
    assert ips is not None
    assert (naive.model.width, naive.model.length, naive.task.batch_size, naive.training.epochs) == (16, 10, 16, 100)
    assert (ips.model.width, ips.model.blocks, ips.training.epochs) == (64, 2, 3)
    assert ips.estimator == {"name": "ips", "exponent": 0.01}
    other = LoopPlan.of(LoopConfig(), ["naive", "ips"], "converged", [], "ml-1m").models
    assert other["naive"] is not None
    assert other["ips"] is not None
    assert other["naive"].model == other["ips"].model
    assert other["ips"].estimator == {"name": "ips", "exponent": 0.5}
    with pytest.raises(UnveilError, match=r"unknown data set with the authors' settings.*ml-1m"):
        LoopPlan.of(LoopConfig(), ["naive"], "paper", [], "ml-2m")
