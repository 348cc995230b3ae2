"""All that two real processes are asked to do together; each writes what it found."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tests.evaluation.small import Table, random_histories
from tests.training.cyclic import LENGTH, MODEL, TRAINING, V, certainty, circle
from tests.training.distributed.uneven import Uneven, gradients, weights
from unveil.data.batches import Batch, ClozeTask
from unveil.data.splits import leave_one_out
from unveil.errors import UnveilError
from unveil.evaluation.evaluator import Evaluator
from unveil.models.bert4rec import BERT4Rec, BERT4RecConfig
from unveil.runs.config import Experiment
from unveil.runs.train import follow, run
from unveil.training.checkpoint import Checkpoint
from unveil.training.distributed import Place, ProcessGroup, joined
from unveil.training.progress import Watcher
from unveil.training.trainer import Fitted, Keep, Tally, Trainer

STILL = replace(MODEL, dropout=0.0)


@dataclass(frozen=True)
class Order:
    """Where to write, and the experiments to run: one that all agree on, and one of which each has its own."""

    folder: Path
    experiment: Experiment
    own: tuple[Experiment, Experiment]


def work(order: Order, place: Place) -> None:
    """The life of each of the two."""
    with joined(place, "cpu") as group:
        tensors, state = dict[str, Tensor](), dict[str, Any]()
        for task in (_words, _sums, _steps, _trainings, _judgement):
            task(group, order, tensors, state)
        _runs(group, order, state)
        Checkpoint(tensors, state).save(order.folder / f"{group.rank}.safetensors")


def _words(group: ProcessGroup, order: Order, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    state["told"] = group.broadcast({"from": group.rank, "ä": [1.5, None]})
    heard = group.broadcast_state(lambda: Checkpoint({"x": torch.arange(3.0)}, {"epochs": group.rank}))
    state["heard"] = None if heard is None else dict(heard.state)
    if heard is not None:
        tensors["heard"] = heard.tensors["x"]
    group.check_same({"log": "same", "deep": {"er": 1}})
    state["disagreement"] = _refusal(lambda: group.check_same({"log": "same", "deep": {"er": group.rank}}))


def _refusal(action: Callable[[], object]) -> str:
    try:
        action()
    except UnveilError as error:
        return str(error)
    return "no error"


def _sums(group: ProcessGroup, order: Order, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """The first parameter has a gradient everywhere, the second with the leader, the third nowhere."""
    state["sum"] = list(group.sum(1.0, group.rank, 2**40 + group.rank))
    all_of_us, leader, nobody = (nn.Parameter(torch.zeros(2, 3)) for _ in range(3))
    all_of_us.grad = torch.full((3, 2), 1.0 + group.rank).T  # not contiguous
    leader.grad = torch.ones(2, 3) if group.is_leader else None
    state["added"] = list(group.sum_gradients([all_of_us, leader, nobody], 0.1, float(group.rank)))
    assert all_of_us.grad is not None
    assert leader.grad is not None
    assert nobody.grad is None
    tensors["everywhere"], tensors["leader"] = all_of_us.grad, leader.grad


def task_with_holes() -> ClozeTask:
    """Five rows a batch, of which few are asked for: shares are unequal, and some are empty."""
    return ClozeTask(circle(), LENGTH, batch_size=5, mask_probability=0.15, seed=3, always_mask=False)


def steps(group: ProcessGroup, self_normalised: bool) -> tuple[list[Tensor], Tally]:
    """The gradients of every batch of an epoch, at the first weights, and the tally of all."""
    task, tally, found = task_with_holes(), Tally(), list[Tensor]()
    model = BERT4Rec(STILL, V, seed=1)
    config = replace(TRAINING, clip=None)
    learner = Trainer(config, model, Uneven(self_normalised), task, group=group)
    for batch in task.epoch(1):
        if len(batch.slots):
            learner.step(batch, tally, 1)  # at a rate of 0
            found.append(gradients(model))
    return found, tally


def _steps(group: ProcessGroup, order: Order, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    for self_normalised in (False, True):
        found, tally = steps(group, self_normalised)
        tensors[f"steps/{self_normalised}"] = torch.stack(found)
        state[f"tally/{self_normalised}"] = [tally.loss, tally.total, tally.slots]


def trained(
    group: ProcessGroup, model: BERT4RecConfig, keep: Keep | None = None, watch: Watcher | None = None
) -> tuple[BERT4Rec, Fitted]:
    """A small run of weighted slots; of a group, only the leader keeps."""
    network = BERT4Rec(model, V, seed=1)
    task = ClozeTask(circle(), LENGTH, batch_size=16, mask_probability=0.3, last_share=0.2, seed=2)
    keep = keep if group.is_leader else None
    trainer = Trainer(TRAINING, network, Uneven(True), task)
    return network, trainer.fit(certainty, keep=keep, watch=watch, group=group)


def _trainings(group: ProcessGroup, order: Order, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    for name, model in (("still", STILL), ("dropped", MODEL), ("dropped again", MODEL)):
        network, fitted = trained(group, model)
        tensors[f"trained/{name}"] = weights(network)
        state[f"trained/{name}"] = told(fitted)
    network, fitted = trained(group, STILL, Keep(order.folder / "begun alone", resume=True))
    tensors["trained/resumed"], state["trained/resumed"] = weights(network), told(fitted)


def told(fitted: Fitted) -> list[Any]:
    """What is comparable of each epoch."""
    return [[epoch.loss, epoch.lr, epoch.slots, epoch.validation] for epoch in fitted.epochs]


def evaluator() -> Evaluator:
    """Thirty cases in batches of four."""
    split = leave_one_out(random_histories(np.random.default_rng(0)))
    made = Evaluator.of(split.test, split.whole, split.train, length=6, uniform=10, popular=10, exclude_seen=False)
    return replace(made, batch_size=4)


def scorer() -> Table:
    """With many ties."""
    return Table.drawn(np.random.default_rng(1), 40, levels=5)


def _judgement(group: ProcessGroup, order: Order, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    done = list[int]()
    found = replace(evaluator(), sharing=group).evaluate(scorer(), progress=done.append)
    found.frame.write_parquet(order.folder / f"{group.rank}.cases.parquet")
    found.summary.write_parquet(order.folder / f"{group.rank}.summary.parquet")
    state["done"] = done[-1]


def _runs(group: ProcessGroup, order: Order, state: dict[str, Any]) -> None:
    """Whole runs: one whose log is the same for all, and one whose log is not; the first once more, finished."""

    def attempt(experiment: Experiment, name: str, resume: bool = False) -> None:
        if group.is_leader:
            run(experiment, order.folder / name, resume=resume, tell=lambda _: None, group=group)
        else:
            follow(experiment, group)

    attempt(order.experiment, "shared")
    attempt(order.experiment, "shared", resume=True)
    state["other log"] = _refusal(lambda: attempt(order.own[group.rank], "other"))


def batches_of(task: ClozeTask) -> list[Batch]:
    """Those that teach something."""
    return [batch for batch in task.epoch(1) if len(batch.slots)]
