"""Two real processes do what one does: this one leads, and another follows. Started once, asked many things."""

import json
import math
import time
from dataclasses import dataclass
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

from tests.run_folders import content, experiment_on, write_log
from tests.training.cyclic import MODEL, TRAINING
from tests.training.distributed import battery
from tests.training.distributed.battery import STILL, Order
from tests.training.distributed.started import followers
from tests.training.distributed.uneven import weights
from tests.training.test_resume import BATCHES, Interrupt
from unveil.evaluation.result import Evaluation
from unveil.runs.config import Experiment
from unveil.runs.train import run, run_rank
from unveil.runs.workers import cores
from unveil.training.checkpoint import Checkpoint
from unveil.training.distributed import SINGLE, Place, WorkerLostError, part_of
from unveil.training.progress import Silent
from unveil.training.trainer import Keep, Stopped

EXPERIMENT = {"model.dropout": 0.0, "estimator.name": "itps", "estimator.self_normalised": True}


@dataclass(frozen=True)
class Together:
    """What each of the two wrote."""

    order: Order
    leader: Checkpoint
    follower: Checkpoint

    @property
    def both(self) -> tuple[Checkpoint, Checkpoint]:
        return self.leader, self.follower


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Together:
    folder = tmp_path_factory.mktemp("together")
    (folder / "begun alone").mkdir()
    with pytest.raises(Stopped):
        battery.trained(SINGLE, STILL, Keep(folder / "begun alone"), Interrupt(2 * BATCHES + 2))  # in the third epoch
    logs = [write_log(folder / f"{seed}.csv", seed) for seed in (0, 1)]
    mine, other = (experiment_on(log, EXPERIMENT) for log in logs)
    order = Order(folder, mine, (mine, other))
    with followers(2, battery.work, order) as place:
        battery.work(order, place)
    return Together(order, *(Checkpoint.load(folder / f"{rank}.safetensors") for rank in (0, 1)))


def test_the_leader_is_heard_and_others_are_not(together: Together) -> None:
    for each in together.both:
        assert each.state["told"] == {"from": 0, "ä": [1.5, None]}
    assert together.leader.state["heard"] is None
    assert together.follower.state["heard"] == {"epochs": 0}
    assert together.follower.tensors["heard"].tolist() == [0, 1, 2]


def test_who_differs_is_named_to_all(together: Together) -> None:
    for each in together.both:
        assert each.state["disagreement"].startswith(
            "the workers do not agree: deep.er is 0 for the first, and 1 for worker 2. Give all workers the same"
        )


def test_sums_are_over_all_and_gradients_stay_away_where_nobody_has_one(together: Together) -> None:
    for each in together.both:
        assert each.state["sum"] == [2.0, 1.0, 2**41 + 1]
        assert each.state["added"] == [0.2, 1.0]
        assert each.tensors["everywhere"].tolist() == [[3.0] * 3] * 2
        assert each.tensors["leader"].tolist() == [[1.0] * 3] * 2


@pytest.mark.parametrize("self_normalised", [False, True])
def test_loss_and_gradients_are_those_of_one_process(self_normalised: bool, together: Together) -> None:
    counts = [
        tuple(len(part_of(batch, rank, 2).slots) for rank in (0, 1))
        for batch in battery.batches_of(battery.task_with_holes())
    ]
    assert {0} < {first for first, _ in counts}  # a leader with an empty share, and with others
    assert {0} < {second for _, second in counts}
    assert any(first != second and first and second for first, second in counts)
    found, tally = battery.steps(SINGLE, self_normalised)
    for each in together.both:
        torch.testing.assert_close(each.tensors[f"steps/{self_normalised}"], torch.stack(found), rtol=1e-4, atol=1e-6)
        assert each.state[f"tally/{self_normalised}"] == pytest.approx([tally.loss, tally.total, tally.slots], 1e-6)


def test_without_dropout_training_is_that_of_one_process(together: Together) -> None:
    network, fitted = battery.trained(SINGLE, STILL)
    for each in together.both:
        torch.testing.assert_close(each.tensors["trained/still"], weights(network), rtol=1e-3, atol=1e-5)
        assert_same_curve(each.state["trained/still"], battery.told(fitted))
    assert torch.equal(*(each.tensors["trained/still"] for each in together.both))


def assert_same_curve(found: list[Any], expected: list[Any]) -> None:
    """Rate, slots and when to validate to the bit, losses and metrics up to rounding."""
    assert len(found) == len(expected)
    for (loss, lr, slots, validation), (loss_1, lr_1, slots_1, validation_1) in zip(found, expected, strict=True):
        assert (lr, slots) == (lr_1, slots_1)
        assert loss == pytest.approx(loss_1, rel=1e-5)
        assert validation == (None if validation_1 is None else pytest.approx(validation_1, rel=1e-4))


def test_with_dropout_a_run_is_a_function_of_seed_and_size(together: Together) -> None:
    """Each worker draws for its own rows; the weights stay the same for all."""
    for each in together.both:
        assert torch.equal(each.tensors["trained/dropped"], each.tensors["trained/dropped again"])
    assert torch.equal(*(each.tensors["trained/dropped"] for each in together.both))
    network, fitted = battery.trained(SINGLE, MODEL)
    assert not torch.equal(together.leader.tensors["trained/dropped"], weights(network))
    losses, alone = (
        [epoch[0] for epoch in each] for each in (together.leader.state["trained/dropped"], battery.told(fitted))
    )
    assert losses == pytest.approx(alone, rel=0.02)


def test_a_run_begun_alone_is_gone_on_with_by_two(together: Together) -> None:
    network, fitted = battery.trained(SINGLE, STILL)
    for each in together.both:
        assert_same_curve(each.state["trained/resumed"], battery.told(fitted))
        torch.testing.assert_close(each.tensors["trained/resumed"], weights(network), rtol=1e-3, atol=1e-5)
    kept = Checkpoint.load(together.order.folder / "begun alone" / "checkpoint.safetensors")
    assert len(kept.state["epochs"]) == TRAINING.epochs


def test_shared_evaluation_is_that_of_one_process_to_the_bit(together: Together) -> None:
    whole = battery.evaluator().evaluate(battery.scorer())
    for rank, each in enumerate(together.both):
        folder = together.order.folder
        assert pl.read_parquet(folder / f"{rank}.cases.parquet").equals(whole.frame.with_columns(pl.col("top")))
        assert pl.read_parquet(folder / f"{rank}.summary.parquet").equals(whole.summary)
        assert each.state["done"] == len(whole.frame)


@pytest.fixture(scope="module")
def alone(together: Together, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone") / "run"
    run(together.order.experiment, folder, tell=lambda _: None)
    return folder


def test_a_run_of_two_is_the_run_of_one(together: Together, alone: Path) -> None:
    shared = together.order.folder / "shared"
    assert content(shared).keys() == content(alone).keys()
    assert curve(shared) == pytest.approx(curve(alone), rel=1e-9)
    one, two = (Evaluation.read(folder).summary["mean"].to_list() for folder in (alone, shared))
    assert two == pytest.approx(one, rel=1e-6)
    assert [json.loads((folder / "about.json").read_text())["workers"] for folder in (alone, shared)] == [1, 2]


def curve(folder: Path) -> list[float]:
    """The validation of each epoch."""
    lines = (folder / "training.jsonl").read_text().splitlines()
    return [json.loads(line)["validation"]["NDCG@10"] for line in lines]


def test_another_log_is_refused_before_anything_is_written(together: Together) -> None:
    for each in together.both:
        assert each.state["other log"].startswith("the workers do not agree: log is ")
        assert "for worker 2" in each.state["other log"]
    assert not (together.order.folder / "other").exists()


class KillAt(Silent):
    """Kills the other worker at one batch of the run."""

    def __init__(self, at: int) -> None:
        self.left, self.killed = at, math.inf

    def batch(self, loss: float) -> None:
        self.left -= 1
        if not self.left:
            (worker,) = active_children()
            worker.kill()
            self.killed = time.monotonic()


def rank_of_run(experiment: Experiment, place: Place) -> None:
    assert run_rank(experiment, Path(), place) is None


@pytest.mark.skipif(cores() < 2, reason="needs two cores")
def test_a_worker_that_is_killed_ends_the_run_in_seconds_and_one_process_goes_on(alone: Path, tmp_path: Path) -> None:
    experiment = experiment_on(write_log(tmp_path / "log.csv"), EXPERIMENT)
    watch = KillAt(8)
    with pytest.raises(WorkerLostError, match="a worker was lost"), followers(2, rank_of_run, experiment) as place:
        run_rank(experiment, tmp_path / "run", place, watch=watch, tell=lambda _: None)
    assert time.monotonic() - watch.killed < 20
    assert not active_children()
    kept = Checkpoint.load(tmp_path / "run" / "checkpoint.safetensors")
    assert len(kept.state["epochs"]) == 2
    run(experiment, tmp_path / "run", resume=True, tell=lambda _: None)
    assert curve(tmp_path / "run") == pytest.approx(curve(alone), rel=1e-9)
