"""One run, from a log to an evaluated and usable recommender in a folder; resumable at every epoch."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from unveil.data.describe import describe
from unveil.data.interactions import Interactions
from unveil.data.splits import Split
from unveil.errors import UnveilError
from unveil.evaluation.evaluator import Evaluator, ValidationEvaluator
from unveil.evaluation.protocols import USUAL, Candidates, usual_negatives
from unveil.evaluation.ranking import Scorer
from unveil.evaluation.result import Evaluation
from unveil.files import alone_in, explained, refuse_busy, versions, write_json, write_whole
from unveil.models.baselines import Popularity
from unveil.runs.announce import Tell, tell_data, tell_training
from unveil.runs.card import audited, model_card
from unveil.runs.config import Experiment
from unveil.runs.folder import (
    ABOUT,
    CARD,
    NEGATIVES,
    identity,
    is_finished,
    read_json,
    read_split,
    refuse_other,
    refuse_unfit,
    write_config,
    write_split,
)
from unveil.serving import model_files
from unveil.serving.exposure import exposure_table
from unveil.serving.recommender import Recommender
from unveil.simulation.world import World
from unveil.training.fit import Ready, prepare, validation_of
from unveil.training.process_group import SINGLE, ProcessGroup
from unveil.training.progress import Watcher
from unveil.training.trainer import Fitted, Keep, fitted_in
from unveil.wording import quantity

#: Places of the longest list that is judged.
PLACES = 10


def with_negatives(experiment: Experiment, split: Split, tell: Callable[[str], None]) -> Experiment:
    """The experiment with numbers in place of None; fewer than usual are told. A number that was asked for stays."""
    if split.whole.n_items < PLACES:
        expected = f"at least {PLACES} items: lists of {PLACES} are judged"
        raise UnveilError("the catalogue is too small", found=quantity(split.whole.n_items, "item"), expected=expected)
    asked = experiment.evaluation
    if asked.uniform is not None and asked.popular is not None:
        return experiment
    count_V = split.train.count_V
    most = usual_negatives(split.test, split.whole, count_V, exclude_seen=asked.exclude_seen)
    for name, left in most.items():
        if getattr(asked, name) is None and left < USUAL:
            found = quantity(left, f"{name} one")
            tell(f"negatives  {found} instead of {USUAL}: not every case has more items to draw from")
    uniform = most["uniform"] if asked.uniform is None else asked.uniform
    popular = most["popular"] if asked.popular is None else asked.popular
    return replace(experiment, evaluation=replace(asked, uniform=uniform, popular=popular))


#: Whose versions all workers share: what draws, what computes, and what asks for it.
_MUST_AGREE = ("unveil", "torch", "numpy")


@dataclass(frozen=True, eq=False)
class Run:
    """What a run gave, and where it is."""

    folder: Path
    experiment: Experiment
    fitted: Fitted
    recommender: Recommender
    evaluation: Evaluation
    about: Mapping[str, Any]  # what about.json holds
    split: Split


@dataclass(frozen=True, eq=False)
class _Parts:
    """What a run works with; the same for all of a group."""

    experiment: Experiment
    log: Interactions
    split: Split
    ready: Ready
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
    """Read, split, train, judge, write. Whatever a user got wrong is found before the folder is touched.

    With a group this is what its leader does, while the others `follow`.
    """
    refuse_busy(folder)
    refuse_unfit(folder, resume=resume)
    parts = _parts(experiment, tell, group)
    experiment, ready = parts.experiment, parts.ready
    with _place(folder, resume=resume):
        refuse_other(folder, experiment, parts.fingerprint, parts.origin)
        if group.broadcast(is_finished(folder)):
            tell("finished   nothing is left to do: this is what the run gave")
            return _as_it_is(folder, experiment)
        about = _begin(folder, parts, group)
        keep = Keep(folder, resume=resume, identity={"log": parts.fingerprint})
        fitted = ready.fit(parts.validation, keep=keep, watch=watch, group=group)
        evaluation = _evaluated(parts.evaluator, ready.model, parts.split)
        log, whole = parts.log, parts.split.whole
        exposure = exposure_table(ready.propensity, whole, parts.split.train)
        recommender = Recommender(ready.model, log.items, log.users, whole, experiment.model.length, exposure)
        finished = Run(folder, experiment, fitted, recommender, evaluation, about, parts.split)
        _finish(finished, parts.evaluator)
    return finished


def follow(experiment: Experiment, group: ProcessGroup) -> None:
    """The same reading, training and judging as the leader's, with nothing told and nothing written."""
    parts = _parts(experiment, lambda _: None, group)
    if not group.broadcast(False):
        parts.ready.fit(parts.validation, group=group)
        _evaluated(parts.evaluator, parts.ready.model, parts.split, resamples=1)


def _parts(experiment: Experiment, tell: Tell, group: ProcessGroup) -> _Parts:
    """Read, split and build, and see that all of the group have the same."""
    log = experiment.data.load()
    split = experiment.data.parts(log)
    tell_data(log, split, tell)
    experiment = with_negatives(experiment, split, tell)
    world = world_of(experiment, log)
    ready = prepare(split.train, experiment.recipe, log=log, world=world)
    judging = experiment.evaluation
    validation = validation_of(
        split, experiment, protocol=judging.validation, exclude_seen=judging.exclude_seen, seed=judging.seed
    )
    shared = replace(validation, evaluator=replace(validation.evaluator, sharing=group))
    evaluator = replace(_evaluator(experiment, split), sharing=group)
    tell_training(ready, tell)
    fingerprint, origin = log.fingerprint(), origin_of(world)
    with_what = {name: found for name, found in versions().items() if name in _MUST_AGREE}
    group.check_same({"log": fingerprint, "world": origin, "versions": with_what, **identity(experiment)})
    return _Parts(experiment, log, split, ready, shared, evaluator, fingerprint, origin)


def evaluate(folder: Path) -> Evaluation:
    """Judge a finished run again, on the cases and negatives it was judged on, and write the results."""
    recommender = Recommender.load(folder)
    split = read_split(folder, recommender.sequences)
    candidates = Candidates.load(folder / NEGATIVES, split.test, split.whole)
    count_V = split.train.count_V
    evaluator = Evaluator(split.test, split.whole, candidates, count_V, recommender.length)
    evaluation = _evaluated(evaluator, recommender.model, split)
    evaluation.write(folder)
    return evaluation


def _evaluated(evaluator: Evaluator, model: Scorer, split: Split, resamples: int = 1000) -> Evaluation:
    """The model on the test cases, with the popularity baseline on the same ones beside it."""
    evaluation = evaluator.evaluate(model, resamples=resamples)
    baseline = evaluator.evaluate(Popularity.fit(split.train), resamples=resamples)
    return replace(evaluation, popularity=baseline.summary)


@contextmanager
def _place(folder: Path, *, resume: bool) -> Iterator[None]:
    """The folder, made if need be, for this process alone; looked at again, since another may have been quicker."""
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with alone_in(folder):
        refuse_unfit(folder, resume=resume)
        yield


def _as_it_is(folder: Path, experiment: Experiment) -> Run:
    """A finished run, read and not done again."""
    fitted, recommender = fitted_in(folder, experiment.training), Recommender.load(folder)
    split = read_split(folder, recommender.sequences)
    return Run(folder, experiment, fitted, recommender, Evaluation.read(folder), read_json(folder / ABOUT), split)


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
    told = {**world.origin, "severity": world.severity}
    return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _evaluator(experiment: Experiment, split: Split) -> Evaluator:
    judging = experiment.evaluation
    return Evaluator.of(
        split.test,
        split.whole,
        split.train,
        length=experiment.model.length,
        uniform=judging.uniform or 0,
        popular=judging.popular or 0,
        exclude_seen=judging.exclude_seen,
        seed=judging.seed,
    )


def _begin(folder: Path, parts: _Parts, group: ProcessGroup) -> dict[str, Any]:
    ready = parts.ready
    about = {
        "versions": versions(),
        "workers": group.size,
        "log": {"fingerprint": parts.fingerprint, **asdict(describe(parts.log))},
        "world": parts.origin,
        "split": parts.split.rule,
        "cases": {name: len(getattr(parts.split, name)) for name in ("train", "valid", "test")},
        "audit": audited(parts.split, parts.experiment.model.length),
        "propensity": None if ready.propensity is None else ready.propensity.name,
        "by_proxy": ready.by_proxy,
        "weights": None if ready.weights is None else asdict(ready.weights),
        "parameters": ready.model.n_parameters(),
    }
    write_config(folder, parts.experiment)
    write_json(folder / ABOUT, about)
    write_split(folder, parts.split)
    return about


def _finish(run: Run, evaluator: Evaluator) -> None:
    """The recommender comes last: a folder that has one is a finished run."""
    evaluator.candidates.save(run.folder / NEGATIVES)
    run.evaluation.write(run.folder)
    write_whole(run.folder / CARD, model_card(run.experiment, run.about, run.evaluation, run.fitted))
    model_files.write(run.recommender, run.folder)
