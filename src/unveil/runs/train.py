"""One run, from a log to an evaluated and usable recommender in a folder; resumable at every epoch.

By one process, by workers that this process starts on its machine, or by ranks of torchrun.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unveil.data.describe import describe
from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.splits import Split
from unveil.errors import UnveilError, check_range
from unveil.evaluation.evaluator import Evaluator, ValidationEvaluator
from unveil.evaluation.protocols import USUAL, Candidates, usual_negatives
from unveil.evaluation.ranking import Scorer
from unveil.evaluation.result import Evaluation
from unveil.files import versions, write_whole
from unveil.models.baselines import Popularity
from unveil.processes import threads
from unveil.propensity.impressions import Recorded
from unveil.runs.card import audited, model_card
from unveil.runs.config import Experiment
from unveil.runs.run_folder import (
    CARD,
    NEGATIVES,
    Run,
    begin,
    check_same,
    claimed,
    identity,
    is_finished,
    read_run,
    read_split,
)
from unveil.runs.workers import cores
from unveil.serving import model_files
from unveil.serving.exposure import exposure_table
from unveil.serving.recommender import Recommender
from unveil.simulation.world import World
from unveil.training.device import pick_device
from unveil.training.distributed import SINGLE, Place, ProcessGroup, Workers, joined, local_workers
from unveil.training.fit import prepare, validation_of
from unveil.training.progress import Watcher
from unveil.training.trainer import Keep, Trainer
from unveil.wording import quantity

Tell = Callable[[str], None]
#: Places of the longest list that is evaluated.
PLACES = 10
#: Whose versions all workers share: what draws, what computes, and what asks for it.
_MUST_AGREE = ("unveil", "torch", "numpy")


@dataclass(frozen=True, eq=False)
class Prepared:
    """A run before its training: read, split and built, the same for all of a group."""

    experiment: Experiment
    log: Interactions
    split: Split
    trainer: Trainer
    validation: ValidationEvaluator
    evaluator: Evaluator
    fingerprint: str  # of the log
    origin: str | None  # of the world, if there is one


def run(
    experiment: Experiment,
    folder: Path,
    *,
    resume: bool = False,
    watch: Watcher | None = None,
    tell: Tell = print,
    group: ProcessGroup = SINGLE,
) -> Run:
    """Read, split, train, evaluate, write. Whatever a user got wrong is found before anything is written.

    With a group this is what its leader does, while the others `follow`.
    """
    with claimed(folder, resume=resume):
        found = prepared(experiment, tell, group)
        experiment, split, trainer = found.experiment, found.split, found.trainer
        check_same(folder, experiment, found.fingerprint, found.origin)
        if group.broadcast(is_finished(folder)):
            tell("finished   nothing is left to do: this is what the run gave")
            return read_run(folder)
        about = {
            "versions": versions(),
            "workers": group.size,
            "log": {"fingerprint": found.fingerprint, **asdict(describe(found.log))},
            "world": found.origin,
            "split": split.rule,
            "cases": {name: len(getattr(split, name)) for name in ("train", "valid", "test")},
            "audit": audited(split, experiment.model.length),
            "propensity": None if trainer.propensity is None else trainer.propensity.name,
            "by_proxy": trainer.by_proxy,
            "weights": None if trainer.weights is None else asdict(trainer.weights),
            "parameters": trainer.model.n_parameters(),
        }
        begin(folder, experiment, about, split)
        keep = Keep(folder, resume, identity={"log": found.fingerprint})
        fitted = trainer.fit(found.validation, keep=keep, watch=watch, group=group)
        evaluation = evaluated(found.evaluator, trainer.model, split)
        exposure = exposure_table(trainer.propensity, split.whole, split.train)
        log, length = found.log, experiment.model.length
        recommender = Recommender(trainer.model, log.items, log.users, split.whole, length, exposure)
        name = folder.resolve().name
        finished = Run(name, folder, experiment, about, fitted, evaluation, (recommender, split))
        found.evaluator.candidates.save(folder / NEGATIVES)
        evaluation.write(folder)
        write_whole(folder / CARD, model_card(finished))
        model_files.write(recommender, folder)  # last: a folder that has one is a finished run
    return finished


def follow(experiment: Experiment, group: ProcessGroup) -> None:
    """The same reading, training and evaluation as the leader's, with nothing told and nothing written."""
    found = prepared(experiment, lambda _: None, group)
    if not group.broadcast(False):
        found.trainer.fit(found.validation, group=group)
        evaluated(found.evaluator, found.trainer.model, found.split, resamples=1)


def prepared(experiment: Experiment, tell: Tell, group: ProcessGroup = SINGLE) -> Prepared:
    """Read, split and build, and see that all of the group have the same."""
    log = experiment.data.load()
    split = experiment.data.parts(log)
    tell_data(log, split, tell)
    experiment = with_negatives(experiment, split, tell)
    world = world_of(experiment, log)
    trainer = prepare(split.train, experiment.recipe, log=log, world=world)
    config, length = experiment.evaluation, experiment.model.length
    shared: dict[str, Any] = {"exclude_seen": config.exclude_seen, "seed": config.seed}
    validation = validation_of(split, experiment, protocol=config.validation, **shared)
    validation = replace(validation, evaluator=replace(validation.evaluator, sharing=group))
    shared |= {"uniform": config.uniform or 0, "popular": config.popular or 0}
    evaluator = Evaluator.of(split.test, split.whole, split.train, length=length, **shared)
    tell_training(trainer, split.train, tell)
    fingerprint, origin = log.fingerprint(), origin_of(world)
    agreed = {name: version for name, version in versions().items() if name in _MUST_AGREE}
    group.check_same({"log": fingerprint, "world": origin, "versions": agreed, **identity(experiment)})
    evaluator = replace(evaluator, sharing=group)
    return Prepared(experiment, log, split, trainer, validation, evaluator, fingerprint, origin)


def with_negatives(experiment: Experiment, split: Split, tell: Tell) -> Experiment:
    """The experiment with numbers in place of None; fewer than usual are told. A number that was given stays."""
    if split.whole.n_items < PLACES:
        expected = f"at least {PLACES} items: lists of {PLACES} are evaluated"
        raise UnveilError("the catalogue is too small", found=quantity(split.whole.n_items, "item"), expected=expected)
    config = experiment.evaluation
    unset = [name for name in ("uniform", "popular") if getattr(config, name) is None]
    if not unset:
        return experiment
    most = usual_negatives(split.test, split.whole, split.train.count_V, exclude_seen=config.exclude_seen)
    for name in unset:
        if most[name] < USUAL:
            found = quantity(most[name], f"{name} one")
            tell(f"negatives  {found} instead of {USUAL}: not every case has more items to draw from")
    return experiment.changed({f"evaluation.{name}": most[name] for name in unset})


def world_of(experiment: Experiment, log: Interactions) -> World | None:
    """The world that the log was drawn from, narrowed to the users and items of the log; None: nobody knows it."""
    where = experiment.data.world
    if where is None:
        return None
    return (World.builtin() if where == "builtin" else World.load(Path(where))).aligned_with(log)


def origin_of(world: World | None) -> str | None:
    """What a world is told by, wherever its folder lies: a hash of where it comes from."""
    if world is None:
        return None
    origin = {**world.origin, "severity": world.severity}
    return sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()


def evaluated(evaluator: Evaluator, model: Scorer, split: Split, resamples: int = 1000) -> Evaluation:
    """The model on the test cases, with the popularity baseline on the same ones beside it."""
    evaluation = evaluator.evaluate(model, resamples=resamples)
    baseline = evaluator.evaluate(Popularity.fit(split.train), resamples=resamples)
    return replace(evaluation, popularity=baseline.summary)


def evaluate(folder: Path) -> Evaluation:
    """Evaluate a finished run again, on the cases and negatives it was evaluated on, and write the results."""
    recommender = Recommender.load(folder, calibrated=False)
    split = read_split(folder, recommender.sequences)
    candidates = Candidates.load(folder / NEGATIVES, split.test, split.whole)
    evaluator = Evaluator(split.test, split.whole, candidates, split.train.count_V, recommender.length)
    evaluation = evaluated(evaluator, recommender.model, split)
    evaluation.write(folder)
    return evaluation


def tell_data(log: Interactions, split: Split, tell: Tell) -> None:
    """The size of the log and its split. Impressions without a click are in no history, and are counted apart."""
    if log.clicked is None:
        tell(f"log        {log}")
    else:
        tell(f"clicked    {_sizes(log.interacted(), 'click')}")
        tell(f"shown      {_sizes(log, 'impression')}; all items shown can be recommended")
    tell(f"split      {split.rule}; {quantity(split.train_only, 'user')} for training only")
    tell(f"           {split}")


def _sizes(log: Interactions, noun: str) -> str:
    """Rows, and how many users and items have any."""
    users, items = len(np.unique(log.user)), len(np.unique(log.item))
    return f"{quantity(len(log), noun)}, {quantity(users, 'user')}, {quantity(items, 'item')}"


def tell_training(trainer: Trainer, train: Sequences, tell: Tell) -> None:
    """What is trained, on how much and where; the weights, and warnings where they or their source are doubtful."""
    how = "with" if trainer.weights is None else "weighted by"
    by = "" if trainer.propensity is None else f", {how} {trainer.propensity.name}"
    tell(f"estimator  {trainer.estimator.name}{by}")
    if isinstance(trainer.propensity, Recorded):  # a wrong share of the impressions would go unnoticed
        rate = trainer.propensity.rate
        share = f", of which the log holds {rate:g} (propensity.rate)"
        doubt = "; if the log holds only a share of them, set it: --set propensity.rate=0.1"
        tell(f"exposure   learned from impressions{share if rate < 1 else doubt}")
    if trainer.weights is not None:
        tell(f"weights    {trainer.weights}")
    for warning in trainer.warnings():
        tell(f"warning: {warning}")
    model, length = trainer.model, trainer.model.config.length
    tell(f"model      {model.name}, {quantity(model.n_parameters(), 'parameter')}, on {trainer.device}")
    events, read = len(train.item_N), int(np.minimum(train.length_U, length).sum())
    kept = f"the last {length} of each user" if read < events else "all of them"
    tell(f"reads      {quantity(events, 'event')} to train on, of which the network reads {read:,}: {kept}")


def run_rank(
    experiment: Experiment,
    folder: Path,
    place: Place,
    *,
    resume: bool = False,
    watch: Watcher | None = None,
    tell: Tell = print,
    workers: Workers | None = None,
) -> Run | None:
    """The part of one process in a run, whoever started it; all are given the same settings.

    The leader, rank 0, writes the folder, reports and watches, and gives the run; the others give None.
    """
    with joined(place, experiment.training.device, workers) as group:
        if group.is_leader:
            return run(experiment, folder, resume=resume, watch=watch, tell=tell, group=group)
        follow(experiment, group)
    return None


def run_workers(
    experiment: Experiment,
    folder: Path,
    workers: int,
    *,
    resume: bool = False,
    watch: Watcher | None = None,
    tell: Tell = print,
) -> Run:
    """A run by `workers` processes of this machine, this one among them; the cores are shared out.

    Workers that share a core or a GPU would only wait for one another.
    """
    gpus = pick_device(experiment.training.device).type == "cuda"
    most, what = (torch.cuda.device_count(), "GPUs") if gpus else (cores(), "cores")
    expected, hint = f"1 to {most}", "Workers on other machines are started by torchrun."
    if workers > most:
        raise UnveilError(f"more workers than {what}", where="workers", found=workers, expected=expected, hint=hint)
    check_range(workers > 0, "workers", workers, expected)
    if workers == 1:
        return run(experiment, folder, resume=resume, watch=watch, tell=tell)
    each = experiment.training.threads or max(1, cores() // workers)
    tell(f"workers    {workers}, {quantity(each, 'thread')} each")
    with local_workers(workers, _work, (experiment, each)) as (place, started), threads(each):
        finished = run_rank(experiment, folder, place, resume=resume, watch=watch, tell=tell, workers=started)
    assert finished is not None  # this process leads
    return finished


def _work(task: tuple[Experiment, int], place: Place) -> None:
    """What a started worker does. Only leaders write: it needs no folder."""
    experiment, each = task
    with threads(each):
        run_rank(experiment, Path(), place)
