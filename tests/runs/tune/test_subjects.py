"""A tuner cannot reach the test cases: by type, by what its objects hold, and by what comes of spoilt ones."""

import gc
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from types import FunctionType, ModuleType
from typing import get_type_hints

import numpy as np
import pytest

from tests.propensity.placed import drawn
from tests.run_folders import small_log
from tests.runs.tune.studies import quickest
from unveil.data.interactions import Interactions, Sequences
from unveil.data.packed import pack
from unveil.data.splits import EvalCases, Split
from unveil.errors import UnveilError
from unveil.estimators.wmf import WMFDistilledRated
from unveil.evaluation.evaluator import ValidationEvaluator, favourites_of
from unveil.evaluation.labelled import LabelledValidation
from unveil.propensity.positions import Position
from unveil.runs.config import Experiment
from unveil.runs.tune.subjects import Training, TrainingContext, training_rows
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World
from unveil.training.fit import prepare
from unveil.training.progress import Silent
from unveil.training.recipe import Recipe
from unveil.training.trainer import Keep

EXPERIMENT = quickest(Path("log.csv"))


def with_propensities(log: Interactions) -> Interactions:
    return replace(log, propensity=np.linspace(0.1, 1.0, len(log)))


def split_of(log: Interactions) -> Split:
    return EXPERIMENT.data.parts(log)


def objective(log: Interactions) -> TrainingContext:
    return TrainingContext.of(Training(EXPERIMENT), log, split_of(log), None)


def held(thing: object) -> Iterator[object]:
    """Everything that can be reached from an object, code apart."""
    seen, left = set[int](), [thing]
    while left:
        found = left.pop()
        if id(found) not in seen and not isinstance(found, type | ModuleType | FunctionType):
            seen.add(id(found))
            yield found
            left += gc.get_referents(found)
            if isinstance(found, np.ndarray) and found.base is not None:
                left.append(found.base)


def test_by_type_there_is_no_way_to_a_test_case() -> None:
    hints = get_type_hints(TrainingContext)
    assert {hints[each.name] for each in fields(TrainingContext)} == {
        Sequences,
        ValidationEvaluator | LabelledValidation,
        Recipe,
        str,
        Interactions | None,
        World | None,
    }


def packed(log: Interactions, folder: Path) -> Interactions:
    """The same on the disk, where the histories of all parts lie in one file."""
    log.to_frame().write_parquet(folder / "log.parquet")
    return pack([folder / "log.parquet"], folder / "packed")


@pytest.mark.parametrize("on_disk", [False, True], ids=["in memory", "packed"])
@pytest.mark.parametrize("log", [small_log(), with_propensities(small_log())], ids=["plain", "logged"])
def test_nothing_that_is_held_knows_a_test_case(log: Interactions, on_disk: bool, tmp_path: Path) -> None:
    log = packed(log, tmp_path) if on_disk else log
    split = split_of(log)
    handed = TrainingContext.of(Training(EXPERIMENT), log, split, None)
    everything = list(held(handed))
    assert isinstance(handed.validation, ValidationEvaluator)
    assert not [each for each in everything if isinstance(each, Split | Experiment)]
    assert [each for each in everything if isinstance(each, EvalCases)] == [handed.validation.evaluator.cases]
    last_U = split.whole.offset_U1[split.test.user_C + 1] - 1
    for each in everything:
        if isinstance(each, Sequences):
            assert (each.length_U[split.test.user_C] <= split.test.seen_C).all()
            assert not np.isin(split.whole.event_N[last_U], each.event_N).any()
        if isinstance(each, Interactions):
            assert (each.item[split.whole.event_N[last_U]] == 0).all()


def test_the_walk_would_find_them() -> None:
    split = split_of(small_log())
    assert [each for each in held([split.test, {"a": split}]) if isinstance(each, EvalCases | Split)]


def test_spoilt_test_cases_change_nothing(tmp_path: Path) -> None:
    log = small_log()
    split = split_of(log)
    rows = split.whole.event_N[split.whole.offset_U1[1:] - 1]
    item = log.item.copy()
    item[rows] = (item[rows] + 1 + np.arange(len(rows))) % len(log.items)
    assert (item != log.item).sum() > 30
    whole, spoilt = (
        objective(each).fit(
            EXPERIMENT.recipe,
            Keep(tmp_path / name),
            Silent(),
        )
        for name, each in (("whole", log), ("spoilt", replace(log, item=item)))
    )
    assert [(e.loss, e.validation) for e in whole.epochs] == [(e.loss, e.validation) for e in spoilt.epochs]


def test_logged_propensities_of_training_events_are_kept() -> None:
    log = with_propensities(small_log())
    train = split_of(log).train
    blank = training_rows(log, train)
    assert blank.propensity is not None
    assert log.propensity is not None
    assert (blank.propensity[train.event_N] == log.propensity[train.event_N]).all()
    others = np.setdiff1d(np.arange(len(log)), train.event_N)
    assert len(others) == 80
    assert (blank.propensity[others] == 1).all()
    assert blank.time is not None
    assert not blank.time[others].any()
    recipe = objective(log).recipe.changed({"estimator.name": "itps", "propensity.name": "logged"})
    weights, again = objective(log).trainer(recipe).weights, objective(log).trainer(recipe).weights
    assert weights is not None
    assert weights == again


def test_positions_are_told_by_the_training_part_alone() -> None:
    """With what was left: the same examination as a training on the whole log finds, and no row of what is held out."""
    log = drawn(np.array([1, 0.4]), np.linspace(0.2, 0.6, 5), 900, 30, np.random.default_rng(0), strength=2.0)
    split = split_of(log)
    handed = objective(log)
    recipe = handed.recipe.changed({"estimator.name": "itps", "propensity.name": "position"})
    found, whole = (ready.propensity for ready in (handed.trainer(recipe), prepare(split.train, recipe, log=log)))
    assert isinstance(found, Position)
    assert isinstance(whole, Position)
    assert found.examination == whole.examination
    assert handed.logged is not None
    held_out = np.setdiff1d(split.whole.event_N, split.train.event_N)
    assert len(held_out) == 60
    assert not np.concatenate([column[held_out] for column in handed.logged.columns().values()]).any()


def test_ratings_are_told_where_they_are_asked_for_and_of_the_training_part_alone() -> None:
    log = replace(small_log(), rating=np.random.default_rng(0).integers(1, 6, 300).astype(np.float32))
    split, rated = split_of(log), EXPERIMENT.changed({"estimator.name": "wmf-distilled-rated"})
    handed = TrainingContext.of(Training(rated), log, split, None)
    found = handed.trainer(handed.recipe).estimator
    whole = prepare(split.train, rated.recipe, log=log).estimator
    assert isinstance(found, WMFDistilledRated)
    assert isinstance(whole, WMFDistilledRated)
    assert (found.b_V == whole.b_V).all()
    assert handed.logged is not None
    assert handed.logged.rating is not None
    assert not handed.logged.rating[np.setdiff1d(np.arange(300), split.train.event_N)].any()
    assert TrainingContext.of(Training(EXPERIMENT), log, split, None).logged is None
    assert TrainingContext.of(Training(EXPERIMENT), log, split, None, tried=["estimator.name"]).logged is not None


def test_replicates_differ_in_their_seed_alone() -> None:
    handed = objective(small_log())
    seeds = [handed.recipe_of({"model.heads": 1}, replicate).training.seed for replicate in range(3)]
    assert seeds == [0, 1, 2]
    assert handed.recipe_of({"model.heads": 1}, 2).changed({"training.seed": 0}) == handed.recipe_of({"model.heads": 1})


def test_replicates_differ_in_what_estimators_and_propensities_draw_too() -> None:
    settings = {"estimator.name": "wmf-distilled", "propensity.name": "joint-temporal", "propensity.seed": 5}
    found = [objective(small_log()).recipe_of(settings, replicate) for replicate in (0, 2)]
    assert [each.estimator.get("seed") for each in found] == [None, 2]
    assert [each.propensity["seed"] for each in found] == [5, 7]


def test_another_length_is_judged_at_that_length(tmp_path: Path) -> None:
    handed = objective(small_log())
    recipe = handed.recipe_of({"model.length": 4})
    fitted = handed.fit(recipe, Keep(tmp_path), Silent())
    alone = TrainingContext.of(
        Training(EXPERIMENT.changed({"model.length": 4})), small_log(), split_of(small_log()), None
    )
    assert fitted.best == alone.fit(recipe, Keep(tmp_path / "alone"), Silent()).best


def test_in_a_world_validation_can_ask_for_the_true_favourite() -> None:
    world = World.builtin(WorldSpec(users=20, items=12, steps=10))
    log = world.log(np.random.default_rng(0))
    split, world = split_of(log), world.aligned_with(log)
    validation = TrainingContext.of(Training(EXPERIMENT, truth=True), log, split, world).validation
    assert isinstance(validation, ValidationEvaluator)
    cases = validation.evaluator.cases
    assert (cases.user_C == split.valid.user_C).all()
    assert (cases.item_C == favourites_of(world, split.valid.user_C, split.valid.step_C)).all()
    assert (cases.item_C != split.valid.item_C).any()
    with pytest.raises(UnveilError, match="in a world only"):
        TrainingContext.of(Training(EXPERIMENT, truth=True), log, split, None)
