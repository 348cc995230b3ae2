"""Training learns, keeps the best, stops in time, and says what went wrong."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pytest
import torch

from tests.training.cyclic import LENGTH, MODEL, TRAINING, V, accuracy, circle, train
from unveil.data.batches import Batch, ClozeTask
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.estimators.base import Need, Signal
from unveil.estimators.naive import Naive
from unveil.models.base import Backbone
from unveil.models.bert4rec import BERT4Rec
from unveil.training.checkpoint import Best, Epoch
from unveil.training.device import pick_device
from unveil.training.progress import Plan, Silent
from unveil.training.recipe import TrainerConfig
from unveil.training.trainer import Fitted, Trainer


def test_the_law_of_the_circle_is_learnt() -> None:
    config = replace(TRAINING, epochs=70, warmup=2, schedule="constant", validate_every=10)
    trained = train(config, model=replace(MODEL, width=64, blocks=1, dropout=0.0))
    assert accuracy(trained.model) == 1.0
    assert trained.fitted.best is not None
    assert trained.fitted.best.value > 0.9
    losses = [epoch.loss for epoch in trained.fitted.epochs]
    assert losses[0] == pytest.approx(math.log(V), abs=0.3)  # at first, no better than guessing
    assert losses[-1] < 0.6  # rows with everything masked can only be guessed


def scripted(values: list[float]) -> Callable[[Backbone], Mapping[str, float]]:
    left = iter(values)
    return lambda _: {"NDCG@10": next(left)}


def fit(
    validate: Callable[[Backbone], Mapping[str, float] | float] | None, config: TrainerConfig
) -> tuple[Backbone, Fitted]:
    model = BERT4Rec(MODEL, V, seed=1)
    task = ClozeTask(circle(), LENGTH, 16, 0.3, seed=2)
    return model, Trainer(config, model, Naive(), task).fit(validate)


def test_training_ends_with_the_epoch_or_the_time_it_is_given() -> None:
    model = BERT4Rec(MODEL, V, seed=1)
    task = ClozeTask(circle(), LENGTH, 1, 0.3, seed=2)  # 60 batches
    config = replace(TRAINING, epochs=9, validate_every=5)
    assert [epoch.epoch for epoch in Trainer(config, model, Naive(), task).fit(None, last=2).epochs] == [1, 2]
    fitted = Trainer(replace(config, minutes=1e-9), model, Naive(), task).fit(lambda _: 0.5)
    (epoch,) = fitted.epochs
    assert (fitted.best, fitted.stopped_early) == (Best(1, 0.5), True)
    assert epoch.slots < 60  # it ended within the epoch


def test_the_best_weights_are_kept_and_a_tie_is_no_gain() -> None:
    seen: list[torch.Tensor] = []

    def validate(model: Backbone) -> float:
        seen.append(next(model.parameters()).detach().clone())
        return [0.1, 0.5, 0.5, 0.2][len(seen) - 1]

    model, fitted = fit(validate, replace(TRAINING, epochs=4, validate_every=1))
    assert fitted.best == Best(2, 0.5)
    assert torch.equal(next(model.parameters()), seen[1])
    assert not model.training


def test_patience_counts_validations_without_gain() -> None:
    config = replace(TRAINING, epochs=9, validate_every=1, patience=2)
    _, fitted = fit(scripted([0.1, 0.3, 0.2, 0.3, 0.9]), config)
    assert len(fitted.epochs) == 4
    assert fitted.stopped_early


def test_the_last_epoch_is_validated_too() -> None:
    _, fitted = fit(scripted([0.1, 0.2, 0.3]), replace(TRAINING, epochs=5, validate_every=2))
    validated = [epoch.validation is not None for epoch in fitted.epochs]
    assert validated == [False, True, False, True, True]


def test_without_validation_the_last_weights_stay() -> None:
    _, fitted = fit(None, replace(TRAINING, epochs=2))
    assert fitted.best is None
    assert not fitted.stopped_early


def test_a_validation_without_the_monitored_metric_is_refused() -> None:
    with pytest.raises(UnveilError, match=r"found 'MRR', expected NDCG@10"):
        fit(lambda _: {"MRR": 0.1}, TRAINING)
    with pytest.raises(UnveilError, match="no number for NDCG@10"):
        fit(lambda _: math.nan, TRAINING)


def test_divergence_is_named_with_its_epoch_and_a_way_out() -> None:
    config = replace(TRAINING, lr=1e30, warmup=0, clip=None)
    with pytest.raises(UnveilError, match=r"epoch 1: training diverged.*smaller training\.lr"):
        fit(None, config)


def test_training_leaves_the_global_generator_and_threads_as_they_were() -> None:
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    train(replace(TRAINING, epochs=1, threads=threads + 1))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_num_threads() == threads


@dataclass(frozen=True, eq=False)
class Holes(ClozeTask):
    """A task in which every other batch has no slot."""

    all_empty: bool = field(default=False, kw_only=True)

    def __len__(self) -> int:
        return 2 * super().__len__()

    def epoch(self, n: int) -> Iterator[Batch]:
        nothing = torch.zeros(0, dtype=torch.int64)
        for batch in super().epoch(n):
            yield Batch(batch.token_BL, Slots(nothing, nothing, nothing), (nothing, nothing))
            if not self.all_empty:
                yield batch


def test_batches_without_slots_teach_nothing_and_harm_nothing() -> None:
    rows = (circle(), LENGTH, 16, 0.3)
    task = ClozeTask(*rows, seed=2)
    config = replace(TRAINING, epochs=1, warmup=0, schedule="constant")
    weights = []
    for version in (task, Holes(*rows, seed=2)):
        model = BERT4Rec(replace(MODEL, dropout=0.0), V, seed=1)
        Trainer(config, model, Naive(), version).fit()
        weights.append(model.item.weight.detach())
    assert torch.equal(*weights)
    with pytest.raises(UnveilError, match="no item was masked"):
        Trainer(config, BERT4Rec(MODEL, V), Naive(), Holes(*rows, seed=2, all_empty=True)).fit()


class Notes(Silent):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def start(self, plan: Plan) -> None:
        self.told.append(plan)

    def batch(self, loss: float) -> None:
        assert math.isfinite(loss)
        self.told.append("batch")

    def epoch(self, epoch: Epoch, best: Best | None) -> None:
        self.told.append((epoch.epoch, best is not None))

    def stop(self) -> None:
        self.told.append("stop")


def test_a_watcher_hears_of_everything_in_order() -> None:
    notes = Notes()
    train(replace(TRAINING, epochs=2), watch=notes)
    assert notes.told == [Plan(2, 4, 0, "NDCG@10"), *["batch"] * 4, (1, False), *["batch"] * 4, (2, True), "stop"]


def test_epochs_tell_rate_slots_and_time() -> None:
    task = ClozeTask(circle(), LENGTH, 16, 0.3, last_share=0.2, seed=2)
    first = train(replace(TRAINING, epochs=2)).fitted.epochs[0]
    assert first.slots == sum(len(batch.slots) for batch in task.epoch(1))
    assert first.lr == TRAINING.lr  # the warm-up is one epoch
    assert first.seconds > 0


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        (lambda: TrainerConfig(epochs=0), "epochs"),
        (lambda: TrainerConfig(lr=0), "lr"),
        (lambda: TrainerConfig(lr=float("inf")), "lr"),
        (lambda: TrainerConfig(seed=2**63), "seed"),
        (lambda: TrainerConfig(threads=100_000), "threads"),
        (lambda: TrainerConfig(clip=-1), "clip"),
        (lambda: TrainerConfig(patience=0), "patience"),
        (lambda: TrainerConfig(betas=(0.9, 1.0)), "betas"),
        (lambda: TrainerConfig(weight_decay=-0.1), "weight_decay"),
        (lambda: TrainerConfig(schedule="wavy"), "schedule"),  # type: ignore[arg-type]
    ],
)
def test_settings_out_of_range_are_named(wrong: Callable[[], TrainerConfig], name: str) -> None:
    with pytest.raises(UnveilError, match=f"training.{name}: out of range"):
        wrong()


def test_devices_are_found_or_refused() -> None:
    assert pick_device("cpu").type == "cpu"
    assert pick_device("auto").type in {"cpu", "cuda", "mps"}
    with pytest.raises(UnveilError, match="not a device"):
        pick_device("abacus")
    if not torch.cuda.is_available():
        with pytest.raises(UnveilError, match="not available here"):
            pick_device("cuda")


class Weighted:
    """The naive estimator with one large weight for all slots."""

    name: ClassVar[str] = "weighted"
    needs: ClassVar[Need] = "nothing"
    self_normalised: ClassVar[bool] = False

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def __call__(self, slots: Slots) -> Signal:
        return Signal(slots.item_M, torch.full((len(slots),), self.weight))


def test_the_scale_of_the_weights_does_not_matter() -> None:
    """A power of two scales exactly, so the runs are the same to the bit; the gradient clip must not bite the one."""
    states = []
    for weight in (1.0, 2.0**17):
        model, task = BERT4Rec(MODEL, V, seed=1), ClozeTask(circle(), LENGTH, 16, 0.3, seed=2)
        fitted = Trainer(TRAINING, model, Weighted(weight), task, mean_weight=weight).fit()
        states.append((model.state_dict(), [epoch.loss for epoch in fitted.epochs]))
    (plain, losses), (heavy, heavy_losses) = states
    assert all(torch.equal(plain[name], heavy[name]) for name in plain)
    assert losses == heavy_losses
