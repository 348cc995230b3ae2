"""One run, from a log to an evaluated recommender in a folder; by one process, or by ranks of torchrun.
Shapes: N rows of the log, M training slots."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unveil.data.indexing import UNKNOWN
from unveil.data.interactions import Interactions
from unveil.data.splits import Split
from unveil.data.writers import write
from unveil.errors import UnveilError
from unveil.estimators.base import blocks, estimator
from unveil.evaluation.evaluator import Evaluator
from unveil.evaluation.labelled import LabelledValidation
from unveil.evaluation.protocols import USUAL, Candidates, usual_negatives
from unveil.evaluation.result import Evaluation
from unveil.files import check_new_file, versions, write_whole
from unveil.models.base import Backbone, BaselineConfig, Model
from unveil.models.blend import Blend
from unveil.models.causal import SASRecConfig
from unveil.propensity.weights import WeightDiagnostics
from unveil.runs import run_folder
from unveil.runs.config import Experiment, Tell
from unveil.runs.labelled import labelled_validation
from unveil.serving import model_files
from unveil.serving.exposure import exposure_table
from unveil.serving.recommender import Recommender
from unveil.settings import flattened
from unveil.simulation.world import World
from unveil.training.auto import suited
from unveil.training.blend import Chosen, choose
from unveil.training.distributed import SINGLE, Place, ProcessGroup, joined
from unveil.training.fit import BaselineFit, Start, learner, prepare, validation_of
from unveil.training.progress import Watcher
from unveil.training.recipe import AUTO, Recipe
from unveil.training.trainer import Fitted, Keep, Trainer
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
            Recommender.load(folder)  # a damaged one is named
            tell("finished   nothing is left to do: this is what the run gave")
            return run_folder.read_run(folder)
        identity = {"log": found.fingerprint}
        if isinstance(found.validation, LabelledValidation):
            identity["validation"] = found.validation.test.fingerprint
        if (start := found.experiment.training.start) is not None:
            identity["start"] = model_files.version_of(Path(start))
        keep = Keep(folder, resume, identity=identity)
        fitted = trainer.fit(found.validation, keep=keep, watch=watch, group=group)
        if isinstance(trainer, BaselineFit):
            tell(f"fitted     {trainer}")
        how: dict[str, Any] = {"beside": baselines, "tell": tell, **found.cases}
        chosen = choose(trainer, split, found.experiment, found.validation, **how)
        if chosen.values:
            tell(f"blend      {chosen}")
        evaluation = evaluated(found.evaluator, chosen.model)
        if baselines:
            evaluation = with_baselines(evaluation, chosen, replace(found.evaluator, sharing=None))
        exposure, length = exposure_table(trainer.propensity, split.whole, split.train), chosen.model.config.length
        recommender = Recommender(chosen.model, log.items, log.users, split.whole, length, exposure)
        name, trained = folder.resolve().name, (recommender, split)
        finished = run_folder.Run(name, folder, found.experiment, about, fitted, evaluation, trained)
        found.evaluator.candidates.save(folder / run_folder.NEGATIVES)
        evaluation.write(folder)
        write_whole(folder / run_folder.CARD, finished.card())
        served = recommender
        if found.experiment.training.refit:
            tell(f"refit      {quantity(len(split.whole), 'event')}, those of validation and test included")
            keep = replace(keep, prefix="refit-")
            served = replace(recommender, model=refit(found, chosen, fitted, keep=keep, watch=watch, group=group))
        model_files.write(served, folder, evaluated=recommender)  # last: a folder that has one is a finished run
    return finished


def refit(found: run_folder.Prepared, chosen: Chosen, fitted: Fitted, **how: Any) -> Model:
    """The model to serve: fitted on all events, the held-out ones included."""
    experiment, log = found.experiment, found.log
    known = {"log": log, "world": world_of(experiment, log), "start": start_of(experiment, evaluated=False)}
    return chosen.again(found.split.whole, experiment.recipe, fitted, known, **how)


def follow(experiment: Experiment, group: ProcessGroup) -> None:
    """The same reading, training and evaluation as the leader's, with nothing printed and nothing written."""
    found = prepared(experiment, lambda _: None, group)
    if not group.broadcast(False):
        fitted = found.trainer.fit(found.validation, group=group)
        chosen = choose(found.trainer, found.split, found.experiment, found.validation, **found.cases)
        evaluated(found.evaluator, chosen.model, resamples=1)
        if found.experiment.training.refit:
            refit(found, chosen, fitted, group=group)


def with_baselines(evaluation: Evaluation, chosen: Chosen, evaluator: Evaluator) -> Evaluation:
    """An evaluation with those of baselines beside, and of a network that is a part of a blend, on the same cases."""
    models: dict[str, Model] = {
        name: fit.model for name, fit in chosen.baselines.fits.items() if fit.model is not chosen.model
    }
    if chosen.learner.model is not chosen.model:
        models = {chosen.learner.model.name: chosen.learner.model, **models}
    found = {name: evaluated(evaluator, model) for name, model in models.items()}
    return replace(evaluation.beside(found), skipped=chosen.baselines.skipped)


def evaluated(evaluator: Evaluator, model: Model, **how: Any) -> Evaluation:
    """Of histories as long as the model reads."""
    return replace(evaluator, length=model.config.length).evaluate(model, **how)


def prepared(experiment: Experiment, tell: Tell, group: ProcessGroup = SINGLE) -> run_folder.Prepared:
    """Read, split and build, and see that all of the group have the same. Negatives without a number are as many as
    usual or, which is printed, as many as there are for every case."""
    log = experiment.data.load()
    split = experiment.data.parts(log, tell)
    if split.whole.n_items < PLACES:
        expected = f"at least {PLACES} items: lists of {PLACES} are evaluated"
        raise UnveilError("the catalogue is too small", found=quantity(split.whole.n_items, "item"), expected=expected)
    experiment, chosen = suited(experiment, split.train)
    for choice in chosen:
        tell(f"{'auto' if choice is chosen[0] else '':<10} {choice}")
    config = experiment.evaluation
    if unset := [name for name in ("uniform", "popular") if getattr(config, name) is None]:
        most = usual_negatives(split.test, split.whole, split.train.count_V, exclude_seen=config.exclude_seen)
        for name in unset:
            if most[name] < USUAL:
                found = quantity(most[name], f"{name} one")
                tell(f"negatives  {found} instead of {USUAL}: not every case has more items to draw from")
        experiment = experiment.changed({f"evaluation.{name}": most[name] for name in unset})
    world, start = world_of(experiment, log), start_of(experiment)
    if start is not None:
        known = int((start.items.index(log.items.ids) != UNKNOWN).sum())
        told = f"{quantity(known, 'item')} known, {len(log.items) - known:,} new, {len(start.items) - known:,} gone"
        tell(f"from       {experiment.training.start}: {told}")
    trainer = learner(split.train, experiment.recipe, log=log, world=world, start=start, tell=tell)
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


def start_of(experiment: Experiment, *, evaluated: bool = True) -> Start | None:
    """The network of the run to go on from, which may be a part of a blend: as it was evaluated, before it saw the test
    events, or as it is served."""
    if experiment.training.start is None:
        return None
    before = Recommender.load(experiment.training.start, calibrated=False, evaluated=evaluated)
    models = before.model.models if isinstance(before.model, Blend) else [before.model]
    network = next((model for model in models if isinstance(model, Backbone)), None)
    if network is None:
        found, hint = getattr(before.model, "name", "another model"), "Fit it anew: it takes seconds."
        raise UnveilError("no network to go on from", where=experiment.training.start, found=found, hint=hint)
    return Start(network, before.items)


def origin_of(world: World | None) -> str | None:
    """What identifies a world, wherever its folder lies: a hash of where it comes from."""
    if world is None:
        return None
    origin = {**world.origin, "severity": world.severity}
    return sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()


def evaluate(folder: Path) -> Evaluation:
    """Evaluate a finished run again, on the cases and negatives it was evaluated on, and write the results."""
    recommender = Recommender.load(folder, evaluated=True)
    split = run_folder.read_split(folder, recommender.sequences)
    candidates = Candidates.load(folder / run_folder.NEGATIVES, split.test, split.whole)
    evaluator = Evaluator(split.test, split.whole, candidates, split.train.count_V, recommender.length)
    evaluation = evaluator.evaluate(recommender.model)
    with suppress(UnveilError):  # baselines are shown as they were; without them where nobody can tell any more
        before = Evaluation.read(folder)
        evaluation = replace(evaluation, baselines=before.baselines, skipped=before.skipped)
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
