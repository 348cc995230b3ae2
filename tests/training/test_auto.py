"""What the preset auto chooses for a log, and that it leaves alone what somebody set."""

import numpy as np
import pytest

from tests.data.ragged import sequences_of
from unveil.data.interactions import Sequences
from unveil.settings import flattened, plain
from unveil.training import auto
from unveil.training.auto import suited
from unveil.training.fit import task_of
from unveil.training.recipe import PRESETS, Recipe

AUTO = Recipe.preset("auto")


def log_of(users: int, events: int) -> Sequences:
    rng = np.random.default_rng(0)
    return sequences_of([rng.integers(0, 50, events).tolist() for _ in range(users)], 50)


@pytest.mark.parametrize(("users", "events"), [(2000, 6), (300, 150), (3, 2), (1, 1)])
def test_everything_is_decided_and_each_choice_has_its_reason(users: int, events: int) -> None:
    recipe, chosen = suited(AUTO, log_of(users, events))
    assert recipe.auto == ()
    sampling = {"estimator.name", "estimator.negatives"}  # for large catalogues
    assert {choice.name for choice in chosen} == set(AUTO.auto) - sampling == set(PRESETS["auto"]["auto"]) - sampling
    for choice in chosen:
        assert flattened(plain(recipe))[choice.name] == choice.value
        assert choice.reason in str(choice)


def test_what_somebody_set_is_left_alone() -> None:
    recipe, chosen = suited(AUTO.changed({"model.dropout": 0.05, "model.length": 30}), log_of(300, 150))
    assert (recipe.model.dropout, recipe.model.length) == (0.05, 30)
    assert not {"model.dropout", "model.length"} & {choice.name for choice in chosen}


def test_short_histories_have_more_dropout_and_no_longer_rows_than_they_need() -> None:
    short, long = (suited(AUTO, log_of(*size))[0] for size in ((2000, 6), (300, 150)))
    assert short.model.dropout > long.model.dropout
    assert short.model.length < long.model.length


def test_every_event_is_read() -> None:
    train = log_of(20, 150)
    recipe, _ = suited(AUTO, train)
    model = type("Model", (), {"task": "next-item"})()
    assert len(task_of(train, recipe, model).recent) == len(train)


@pytest.mark.parametrize("name", sorted(PRESETS.keys() - {"auto"}))
def test_other_presets_leave_nothing_to_the_log(name: str) -> None:
    recipe = Recipe.preset(name)
    assert suited(recipe, log_of(3, 5)) == (recipe, [])


def test_a_softmax_over_many_items_is_sampled_unless_somebody_said_how_to_train(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(auto, "PAIRS", 1000)
    recipe, _ = suited(AUTO, log_of(20, 150))
    assert recipe.estimator == {"name": "naive-sampled", "negatives": auto.NEGATIVES}
    assert recipe.training.blend
    for name in ("naive", "ips", "naive-sampled"):
        own, _ = suited(AUTO.changed({"estimator.name": name}), log_of(20, 150))
        assert own.estimator == {"name": name}
