"""Learnt exposure as a propensity: joined by raw ids, and given to IPS and ITPS like any other."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.propensity.seen import impressions
from unveil.data.indexing import Vocabulary
from unveil.data.interactions import Interactions, Sequences
from unveil.data.slots import Slots
from unveil.data.splits import leave_one_out
from unveil.errors import UnveilError
from unveil.estimators.base import ESTIMATORS, Explaining
from unveil.propensity import time_of_day
from unveil.propensity.build import build
from unveil.propensity.time_of_day import ExposureModel
from unveil.propensity.time_of_day_fit import ExposureFit, Learning, fit
from unveil.training.fit import prepare, validation_of
from unveil.training.recipe import Recipe


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("exposure")
    how = ExposureFit(learning=Learning(width=2, epochs=4, batch=256, lr=0.03, penalty=0.1))
    time_of_day.write(fit(impressions(), how).model, place, {})
    return place


@pytest.fixture(scope="module")
def model(folder: Path) -> ExposureModel:
    return time_of_day.load(folder)


def renamed(log: Interactions) -> Interactions:
    """Some of the log's rows, with a user and an item that no impression ever had."""
    some = log.where(np.arange(0, len(log), 3))
    users, items = (
        Vocabulary([f"a{old}" if n == 0 else old for n, old in enumerate(v.ids)]) for v in (some.users, some.items)
    )
    user = users.index([f"a{raw}" if raw == log.users[0] else raw for raw in some.users.raw(some.user)])
    item = items.index([f"a{raw}" if raw == log.items[0] else raw for raw in some.items.raw(some.item)])
    return replace(some, user=user, item=item, users=users, items=items)


def slots_of(log: Interactions) -> Slots:
    whole = Sequences.of(log)
    columns = (whole.user_N, whole.item_N, whole.step_N, whole.event_N)
    return Slots(*(torch.from_numpy(column.astype(np.int64)) for column in columns))


def test_ids_are_joined_by_what_they_are_and_not_by_their_place(folder: Path, model: ExposureModel) -> None:
    log = renamed(impressions())
    slots = slots_of(log)
    theta_M = build("learnt-temporal", {"path": str(folder)}, Sequences.of(log), log=log)(slots)
    assert log.time is not None
    for m in range(0, len(slots), 97):
        row = int(slots.event_M[m])  # type: ignore[index]
        user, item = (
            model.users.index([log.users[int(log.user[row])]]),
            model.items.index([log.items[int(log.item[row])]]),
        )
        day, hour = divmod(int(log.time[row]) // 3_600_000_000, 24)
        own = model.theta(user, item, np.array([day - model.first_day]), np.array([hour]))
        assert float(theta_M[m]) == pytest.approx(float(own[0]), rel=1e-5)


def test_the_static_one_is_the_mean_over_the_days(folder: Path, model: ExposureModel) -> None:
    log = impressions()
    flat = replace(model, W_HK=np.ones_like(model.W_HK))
    user_M, item_M = np.array([1, 2, 3]), np.array([4, 5, 6])
    by_hand = np.mean(
        [flat.theta(user_M, item_M, np.full(3, d), np.zeros(3, int)) for d in range(len(model.recent_DV))], axis=0
    )
    np.testing.assert_allclose(flat.theta_over_days(user_M, item_M), by_hand, rtol=1e-5)
    slots = slots_of(log).part(0, 5)
    static = build("learnt-static", {"path": str(folder)}, Sequences.of(log), log=log)
    torch.testing.assert_close(static.of_all(slots).gather(1, slots.item_M[:, None])[:, 0], static(slots))


@pytest.mark.parametrize(("estimator", "kind"), [("ips", "static"), ("itps", "temporal")])
def test_estimators_weight_by_it(folder: Path, estimator: str, kind: str) -> None:
    log = impressions(each=4)
    train = leave_one_out(Sequences.of(log)).train
    recipe = Recipe().changed({"model.width": 8, "model.length": 10, "estimator.name": estimator})
    recipe = recipe.changed({"propensity.name": f"learnt-{kind}", "propensity.path": str(folder)})
    ready = prepare(train, recipe, log=log)
    assert ready.weights is not None
    assert ready.weights.spread > 2
    assert not ready.by_proxy
    slots = ready.task.slots.part(0, 50)
    assert ready.propensity is not None
    torch.testing.assert_close(ready.estimator(slots).weight_M, 1 / ready.propensity(slots))


EXPLAINING = sorted(name for name in ESTIMATORS if issubclass(ESTIMATORS[name], Explaining))


@pytest.mark.parametrize("estimator", [name for name in EXPLAINING if ESTIMATORS[name].needs in ("static", "temporal")])
def test_validation_knows_the_moment_of_what_was_taken(folder: Path, estimator: str) -> None:
    """What explains takes by θ asks for it at validation events too, which a propensity of moments has to know."""
    log = impressions(each=4)
    split = leave_one_out(Sequences.of(log))
    small = {"model.width": 8, "model.length": 10, "model.blocks": 1, "training.epochs": 1}
    kind = ESTIMATORS[estimator].needs
    propensity = {"propensity.name": f"learnt-{kind}", "propensity.path": str(folder)}
    few = {"estimator.batches": 20} if "batches" in ESTIMATORS.options(estimator) else {}
    recipe = Recipe().changed({**small, **propensity, "estimator.name": estimator}).changed(few)
    fitted = prepare(split.train, recipe, log=log).fit(validation_of(split, recipe))
    assert fitted.best is not None


def test_what_is_missing_is_said(folder: Path) -> None:
    log = impressions(each=1)
    train = Sequences.of(log)
    with pytest.raises(UnveilError, match="unveil propensity fit"):
        build("learnt-temporal", {}, train, log=log)
    with pytest.raises(UnveilError, match="no times"):
        build("learnt-temporal", {"path": str(folder)}, train, log=replace(log, time=None))
    with pytest.raises(UnveilError, match="needs the log itself"):
        build("learnt-static", {"path": str(folder)}, train)
    strangers = replace(log, items=Vocabulary(f"other{n:02}" for n in range(24)))
    with pytest.raises(UnveilError, match="none of the log's items"):
        build("learnt-static", {"path": str(folder)}, train, log=strangers)
