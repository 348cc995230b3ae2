"""One run, from a log to an evaluated recommender in a folder; by one process, or by ranks of torchrun.
Shapes: N rows of the log, M training slots."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unveil.data.interactions import Interactions, Sequences
from unveil.data.splits import Split
from unveil.data.writers import write
from unveil.errors import UnveilError
from unveil.estimators.base import blocks, estimator
from unveil.evaluation.evaluator import Evaluator
from unveil.evaluation.labelled import LabelledValidation
from unveil.evaluation.protocols import USUAL, Candidates, usual_negatives
from unveil.evaluation.result import METRICS, Evaluation
from unveil.files import check_new_file, versions, write_whole
from unveil.models.base import BaselineConfig
from unveil.models.causal import SASRecConfig
from unveil.propensity.weights import WeightDiagnostics
from unveil.runs import run_folder
from unveil.runs.config import Experiment, Tell
from unveil.runs.labelled import labelled_validation
from unveil.serving import model_files
from unveil.serving.exposure import exposure_table
from unveil.serving.recommender import Recommender
from unveil.settings import flattened, plain
from unveil.simulation.world import World
from unveil.training.distributed import SINGLE, Place, ProcessGroup, joined
from unveil.training.fit import BaselineFit, learner, prepare, validation_of
from unveil.training.progress import Watcher
from unveil.training.recipe import AUTO, Recipe
from unveil.training.trainer import Keep, Trainer
from unveil.wording import quantity

PLACES = 10  # places of the longest list that is evaluated


def run(
    experiment: Experiment,
    folder: Path,
    *,
    resume: bool = False,
    watch: Watcher | None = None,
    tell: Tell = print,
    group: ProcessGroup = SINGLE,
    baselines: bool = True,
) -> run_folder.Run:
    """Read, split, train, evaluate, write. Whatever a user got wrong is found before anything is written. With a group
    this is what its leader does, while the others `follow`."""
    with run_folder.claimed(folder, resume=resume):
        found = prepared(experiment, tell, group)
        log, split, trainer = found.log, found.split, found.trainer
        about = run_folder.begin(folder, found, group.size)
        if group.broadcast(run_folder.is_finished(folder)):
            tell("finished   nothing is left to do: this is what the run gave")
            return run_folder.read_run(folder)
        identity = {"log": found.fingerprint}
        if isinstance(found.validation, LabelledValidation):
            identity["validation"] = found.validation.test.fingerprint
        keep = Keep(folder, resume, identity=identity)
        fitted = trainer.fit(found.validation, keep=keep, watch=watch, group=group)
        if isinstance(trainer, BaselineFit):
            tell(f"fitted     {trainer}")
        evaluation = found.evaluator.evaluate(trainer.model)
        if baselines:
            evaluation = with_baselines(evaluation, found.evaluator, split, found.experiment, tell)
        exposure = exposure_table(trainer.propensity, split.whole, split.train)
        length = experiment.model.length
        recommender = Recommender(trainer.model, log.items, log.users, split.whole, length, exposure)
        name, trained = folder.resolve().name, (recommender, split)
        finished = run_folder.Run(name, folder, found.experiment, about, fitted, evaluation, trained)
        found.evaluator.candidates.save(folder / run_folder.NEGATIVES)
        evaluation.write(folder)
        write_whole(folder / run_folder.CARD, finished.card())
        model_files.write(recommender, folder)  # last: a folder that has one is a finished run
    return finished


def follow(experiment: Experiment, group: ProcessGroup) -> None:
    """The same reading, training and evaluation as the leader's, with nothing printed and nothing written."""
    found = prepared(experiment, lambda _: None, group)
    if not group.broadcast(False):
        found.trainer.fit(found.validation, group=group)
        found.evaluator.evaluate(found.trainer.model, resamples=1)


#: What a baseline may cost beside a network; with more it is passed over. Pairs of items in histories, and events.
PAIRS, EVENTS, ITEMS = 2_000_000_000, 20_000_000, 100_000


def with_baselines(
    evaluation: Evaluation, evaluator: Evaluator, split: Split, experiment: Experiment, tell: Tell = lambda _: None
) -> Evaluation:
    """An evaluation with those of baselines beside, fitted on the same training part, and on the same test cases."""
    config, own = experiment.evaluation, plain(experiment.model)["name"]
    refused, found = too_costly(split.train), dict[str, Evaluation]()
    names = ["ease", "item-knn", "markov", "popularity", *["frequency"] * (not config.exclude_seen)]
    names = [name for name in names if name not in refused and name != own]
    for name in names:
        recipe = Recipe().changed({"model.name": name})
        fit = learner(split.train, recipe)
        assert isinstance(fit, BaselineFit)
        fit.fit(validation_of(split, recipe, exclude_seen=config.exclude_seen, seed=config.seed))
        tell(f"baseline   {name}: {fit}")
        alone = replace(evaluator, length=fit.model.config.length, sharing=None)
        found[name] = alone.evaluate(fit.model)
    return replace(evaluation.beside(found), skipped=refused)


def too_costly(train: Sequences) -> dict[str, str]:
    """Baselines that would take minutes beside a network, and why."""
    pairs = float((train.length_U.astype(float) ** 2).sum())
    if train.n_items > ITEMS or len(train) > EVENTS:
        return dict.fromkeys(("ease", "item-knn", "markov"), "many items or events")
    return dict.fromkeys(("ease", "item-knn"), "long histories") if pairs > PAIRS else {}


def prepared(experiment: Experiment, tell: Tell, group: ProcessGroup = SINGLE) -> run_folder.Prepared:
    """Read, split and build, and see that all of the group have the same. Negatives without a number are as many as
    usual or, which is printed, as many as there are for every case."""
    log = experiment.data.load()
    split = experiment.data.parts(log, tell)
    if split.whole.n_items < PLACES:
        expected = f"at least {PLACES} items: lists of {PLACES} are evaluated"
        raise UnveilError("the catalogue is too small", found=quantity(split.whole.n_items, "item"), expected=expected)
    config = experiment.evaluation
    if unset := [name for name in ("uniform", "popular") if getattr(config, name) is None]:
        most = usual_negatives(split.test, split.whole, split.train.count_V, exclude_seen=config.exclude_seen)
        for name in unset:
            if most[name] < USUAL:
                found = quantity(most[name], f"{name} one")
                tell(f"negatives  {found} instead of {USUAL}: not every case has more items to draw from")
        experiment = experiment.changed({f"evaluation.{name}": most[name] for name in unset})
    world = world_of(experiment, log)
    trainer = learner(split.train, experiment.recipe, log=log, world=world, tell=tell)
    shared: dict[str, Any] = {"exclude_seen": config.exclude_seen, "seed": config.seed, "sharing": group}
    if labelled := labelled_validation(experiment, log, split):
        tell(str(labelled))
    validation = labelled or validation_of(split, experiment, protocol=config.validation, **shared)
    shared |= {"uniform": experiment.evaluation.uniform, "popular": experiment.evaluation.popular}
    evaluator = Evaluator.of(split.test, split.whole, split.train, length=experiment.model.length, **shared)
    fingerprint, origin = log.fingerprint(), origin_of(world)
    agreed = {name: version for name, version in versions().items() if name in ("unveil", "torch", "numpy")}
    group.check_same({"log": fingerprint, "world": origin, "versions": agreed, **run_folder.identity(experiment)})
    return run_folder.Prepared(experiment, log, split, trainer, validation, evaluator, fingerprint, origin)


def world_of(experiment: Experiment, log: Interactions) -> World | None:
    """The world that the log was drawn from, narrowed to the users and items of the log; None: nobody knows it."""
    where = experiment.data.world
    if where is None:
        return None
    return (World.builtin() if where == "builtin" else World.load(Path(where))).aligned_with(log)


def origin_of(world: World | None) -> str | None:
    """What identifies a world, wherever its folder lies: a hash of where it comes from."""
    if world is None:
        return None
    origin = {**world.origin, "severity": world.severity}
    return sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()


def evaluate(folder: Path) -> Evaluation:
    """Evaluate a finished run again, on the cases and negatives it was evaluated on, and write the results."""
    recommender = Recommender.load(folder, calibrated=False)
    split = run_folder.read_split(folder, recommender.sequences)
    candidates = Candidates.load(folder / run_folder.NEGATIVES, split.test, split.whole)
    evaluator = Evaluator(split.test, split.whole, candidates, split.train.count_V, recommender.length)
    evaluation = evaluator.evaluate(recommender.model)
    if not (folder / METRICS).exists() or Evaluation.read(folder).baselines:
        evaluation = with_baselines(evaluation, evaluator, split, run_folder.read_config(folder))
    evaluation.write(folder)
    return evaluation


def run_rank(
    experiment: Experiment,
    folder: Path,
    place: Place,
    *,
    resume: bool = False,
    watch: Watcher | None = None,
    tell: Tell = print,
    baselines: bool = True,
) -> run_folder.Run | None:
    """The part of one process in a run. The leader, rank 0, writes, reports and gives the run; others give None."""
    with joined(place, experiment.training.device) as group:
        if group.is_leader:
            return run(experiment, folder, resume=resume, watch=watch, tell=tell, group=group, baselines=baselines)
        follow(experiment, group)
    return None


PARTS = ("left", "held-out", "older", "train")  # what the run did with a row; see `export_weights`


@dataclass(frozen=True)
class WeightedLog:
    """Where the log with its weights is, and what the weights are like."""

    path: Path
    trained_with: str  # the estimator of the run; another one than that of the weights if it has none
    estimator: str
    propensity: str
    by_proxy: bool
    diagnostics: WeightDiagnostics


def export_weights(
    run: Path, path: Path, changes: Mapping[str, Any] | None = None, *, overwrite: bool = False
) -> WeightedLog:
    """Write the log of a run with two columns more: `weight`, of mean 1, and `part`.

    A row has a weight where the run trained on it. Its part is `train`; or `older`, where it lies before the events
    that the model reads; or `held-out`; or `left`, where it was shown and not clicked.
    """
    check_new_file(path, overwrite=overwrite)
    experiment = run_folder.read_config(run)
    log = experiment.data.load()
    if run_folder.read_json(run / run_folder.ABOUT)["log"]["fingerprint"] != log.fingerprint():
        hint = f"Put the log of the run back to {experiment.data.log}, or train again."
        raise UnveilError("the log has changed since the run", where=run, hint=hint)
    split = experiment.data.parts(log)
    trainer = _weighting(split, experiment.recipe, flattened(changes or {}), log, world_of(experiment, log))
    assert trainer.propensity is not None
    assert trainer.weights is not None
    write(log, path, beside=_columns(log, split, trainer, trainer.weights.mean))
    own = str(experiment.recipe.estimator["name"])
    return WeightedLog(path, own, trainer.estimator.name, trainer.propensity.name, trainer.by_proxy, trainer.weights)


def _weighting(
    split: Split, recipe: Recipe, changes: Mapping[str, Any], log: Interactions, world: World | None
) -> Trainer:
    """The run's own estimator, where it weights events by a propensity; else ITPS. Both with the changes."""
    if isinstance(recipe.model, BaselineConfig):
        recipe = replace(recipe, model=SASRecConfig(length=recipe.model.length))
    if estimator(changes.get("estimator.name", recipe.estimator["name"])).needs in ("static", "temporal"):
        trainer = prepare(split.train, recipe.changed(changes), log=log, world=world)
        if trainer.weights is not None:
            return trainer
    others = {name: value for name, value in changes.items() if name != "estimator.name"}
    weighted = replace(recipe, estimator={"name": "itps"}, propensity={"name": AUTO}).changed(others)
    return prepare(split.train, weighted, log=log, world=world)


def _columns(log: Interactions, split: Split, trainer: Trainer, mean: float) -> dict[str, pl.Series]:
    """`weight` and `part` of every row of the log, gone through a block of slots or of users at a time."""
    part_N, weight_N = np.zeros(len(log), np.uint8), np.full(len(log), np.nan)
    for name, sequences in (("held-out", split.whole), ("older", split.train)):
        for block in sequences.blocks():
            part_N[block.event_N] = PARTS.index(name)
    for slots in blocks(trainer.task.slots):
        assert slots.event_M is not None
        row_M = slots.event_M.numpy()
        part_N[row_M] = PARTS.index("train")
        weight_N[row_M] = trainer.estimator(slots).weight_M.double().numpy()
    weight_N /= mean
    return {"weight": pl.Series(weight_N).fill_nan(None), "part": pl.Series(PARTS, dtype=pl.String).gather(part_N)}
