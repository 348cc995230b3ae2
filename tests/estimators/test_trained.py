"""Every estimator trains every network, from a recipe to served scores, and again to the same bits."""

import pytest
import torch

from tests.estimators.toys import Toy, random_world
from unveil.data.slots import histories
from unveil.estimators.base import ESTIMATORS
from unveil.training.fit import prepare
from unveil.training.recipe import Recipe

TOY = Toy.drawn(random_world(users=30), impressions=1.0)
SMALL = {"model.width": 8, "model.blocks": 1, "model.length": 9, "training.epochs": 2, "training.threads": 1}


def scores(estimator: str, model: str) -> torch.Tensor:
    recipe = Recipe().changed({"model.name": model, "estimator.name": estimator, "training.device": "cpu", **SMALL})
    ready = prepare(TOY.train, recipe, log=TOY.log, world=TOY.world)
    losses = [epoch.loss for epoch in ready.fit(None).epochs]
    assert len(losses) == 2
    assert all(loss == loss for loss in losses)
    return ready.model.scores(histories(TOY.train, TOY.train.user_N[:1], TOY.train.length_U[:1], 9))


@pytest.mark.parametrize("model", ["bert4rec", "sasrec", "gru4rec"])
@pytest.mark.parametrize("estimator", ["naive-sampled", "corrected-sampled", "itps-shrunk", "doubly-robust"])
def test_trains_every_network(estimator: str, model: str) -> None:
    scores_BV = scores(estimator, model)
    assert scores_BV.shape == (1, TOY.world.n_items)  # of the items alone: no offset, no sample is left in them
    assert scores_BV.isfinite().all()


@pytest.mark.slow
@pytest.mark.parametrize("model", ["bert4rec", "sasrec", "gru4rec"])
@pytest.mark.parametrize("estimator", list(ESTIMATORS))
def test_every_one_trains_every_network(estimator: str, model: str) -> None:
    assert scores(estimator, model).isfinite().all()


@pytest.mark.parametrize("estimator", ["corrected-sampled", "corrected-tempered", "consideration"])
def test_the_same_run_twice_is_the_same_to_the_bit(estimator: str) -> None:
    assert torch.equal(scores(estimator, "bert4rec"), scores(estimator, "bert4rec"))
