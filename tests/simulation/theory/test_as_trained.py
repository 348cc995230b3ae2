"""The theory speaks of the losses as training computes them: the trainer's own figures, and what the task hides."""

import numpy as np
import pytest
import torch

from tests.estimators.toys import random_world
from unveil.data.batches import Batch, ClozeTask
from unveil.data.interactions import Sequences
from unveil.models.bert4rec import BERT4Rec, BERT4RecConfig
from unveil.simulation.theory.enumeration import DenseWorld
from unveil.simulation.theory.losses import IDEAL, IPS, ITPS, NAIVE, NORMALISED, LossComparison, Masking, Variant
from unveil.simulation.world import World
from unveil.training.recipe import TrainerConfig
from unveil.training.trainer import Tally, Trainer

WORLD = random_world(users=6, items=5, steps=4)
MODEL = BERT4RecConfig(width=8, blocks=1, heads=2, length=4, dropout=0.0)


def histories(world: World) -> Sequences:
    return Sequences.of(world.log(np.random.default_rng(3)))


@pytest.mark.parametrize("variant", [NAIVE, IPS, ITPS, NORMALISED, IDEAL], ids=lambda variant: variant.label)
def test_the_trainer_computes_the_same_risk(variant: Variant) -> None:
    task = ClozeTask(histories(WORLD), 4, WORLD.n_users, mask_probability=1.0, bucket=False)
    model, estimator, mean_weight = BERT4Rec(MODEL, 5, seed=1), variant.build(WORLD), 1.7
    (batch,) = list(task.epoch(1))
    dense = DenseWorld(WORLD)
    compared = _compared(model, batch, dense)
    learner = Trainer(TrainerConfig(device="cpu"), model, estimator, task, mean_weight)
    tally = Tally(lr=1e-3)
    learner.step(batch, tally, 1)
    assert task.slots_per_batch == pytest.approx(len(batch.slots))
    ours = compared.risk(estimator, batch.slots)
    # The theory divides by the world's slots, the trainer by those of the batch and the mean weight.
    scale = 1.0 if estimator.self_normalised else len(dense) / (len(batch.slots) * mean_weight)
    assert tally.loss == pytest.approx(ours * scale, rel=1e-5)


def _compared(model: BERT4Rec, batch: Batch, dense: DenseWorld) -> LossComparison:
    """What the model says before it is trained, at the slots of the batch."""
    with torch.no_grad():
        h_MD, table_VD, bias_V = model.head(model(batch.token_BL, batch.where))
    h_SD = torch.zeros(len(dense), h_MD.shape[1], dtype=torch.float64)
    h_SD[dense.rows(batch.slots)] = h_MD.double()
    return LossComparison(dense, h_SD, table_VD.detach().double(), bias_V.detach().double())


MASKINGS = [Masking(0.3, 0.0, always_mask=False), Masking(0.3, 0.0), Masking(0.2, 0.5), Masking(1.0, 0.0)]


@pytest.mark.parametrize("masking", MASKINGS, ids=str)
def test_chances_of_being_hidden_add_up_to_the_slots_that_the_task_expects(masking: Masking) -> None:
    task = _task(masking)
    rows = len(np.unique(task.slots.user_M.numpy()))
    assert float(masking.chance(task.slots).sum()) == pytest.approx(task.slots_per_batch * rows / task.batch_size)


@pytest.mark.parametrize("masking", MASKINGS, ids=str)
def test_chances_of_being_hidden_are_how_often_the_task_hides(masking: Masking) -> None:
    task, epochs = _task(masking), 600
    hidden_N = np.zeros(len(task.slots))
    for epoch in range(epochs):
        for batch in task.epoch(epoch):
            assert batch.slots.event_M is not None
            hidden_N[batch.slots.event_M.numpy()] += 1
    assert task.slots.event_M is not None
    chance_M = masking.chance(task.slots).numpy()
    # Five standard deviations of a share of 600 draws.
    assert np.abs(hidden_N[task.slots.event_M.numpy()] / epochs - chance_M).max() < 5 * 0.5 / epochs**0.5


def test_the_chances_by_hand() -> None:
    # Two events in a row: 0.3 each, plus 0.7² that nothing was drawn, shared by both.
    task = _task(Masking(0.3))
    chance_M = Masking(0.3).chance(task.slots).numpy()
    length_M = np.bincount(task.slots.user_M)[task.slots.user_M.numpy()]
    assert (length_M == 2).any()
    assert chance_M[length_M == 2] == pytest.approx(0.3 + 0.49 / 2)


def _task(masking: Masking) -> ClozeTask:
    return ClozeTask(
        histories(random_world(users=5, items=3, steps=3, seed=4)),
        3,
        2,
        masking.mask_probability,
        last_share=masking.last_share,
        always_mask=masking.always_mask,
    )
