"""One run, from a log to a judged and usable recommender in a folder; resumable at every epoch."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from unveil.data.describe import describe
from unveil.data.interactions import Interactions
from unveil.data.splits import Split
from unveil.evaluation.candidates import Candidates
from unveil.evaluation.evaluator import Evaluator
from unveil.evaluation.result import Evaluation
from unveil.experiment.announce import Tell, tell_data, tell_training
from unveil.experiment.card import model_card
from unveil.experiment.config import Experiment
from unveil.experiment.folder import (
    ABOUT,
    CARD,
    NEGATIVES,
    is_finished,
    read_json,
    read_split,
    refuse_other,
    refuse_unfit,
    versions,
    write_config,
    write_json,
    write_split,
)
from unveil.experiment.negatives import with_negatives
from unveil.files import explained, write_whole
from unveil.locking import alone_in, refuse_busy
from unveil.serving import folder as model_folder
from unveil.serving.recommender import Recommender
from unveil.simulation.world import World
from unveil.training.fit import Ready, prepare, validation_of
from unveil.training.progress import Watcher
from unveil.training.trainer import Fitted, Keep, fitted_in


@dataclass(frozen=True, eq=False)
class Run:
    """What a run gave, and where it is."""

    folder: Path
    experiment: Experiment
    fitted: Fitted
    recommender: Recommender
    evaluation: Evaluation


def run(
    experiment: Experiment, folder: Path, *, resume: bool = False, watch: Watcher | None = None, tell: Tell = print
) -> Run:
    """Read, split, train, judge, write. Whatever a user got wrong is found before the folder is touched."""
    refuse_busy(folder)
    refuse_unfit(folder, resume=resume)
    log = experiment.data.load()
    split = experiment.data.parts(log)
    tell_data(log, split, tell)
    experiment = with_negatives(experiment, split, tell)
    ready = prepare(split.train, experiment.recipe, log=log, world=world_of(experiment, log))
    judging = experiment.evaluation
    validation = validation_of(
        split, experiment, protocol=judging.validation, exclude_seen=judging.exclude_seen, seed=judging.seed
    )
    evaluator = _evaluator(experiment, split)
    tell_training(ready, tell)
    with _place(folder, resume=resume):
        fingerprint = log.fingerprint()
        refuse_other(folder, experiment, fingerprint)
        if is_finished(folder):
            tell("finished   nothing is left to do: this is what the run gave")
            return _as_it_is(folder, experiment)
        _begin(folder, experiment, log, split, ready)
        keep = Keep(folder, resume=resume, identity={"log": fingerprint})
        fitted = ready.fit(validation, keep=keep, watch=watch)
        evaluation = evaluator.evaluate(ready.model)
        recommender = Recommender(ready.model, log.items, log.users, split.whole, experiment.model.length)
        _finish(folder, experiment, recommender, evaluator, evaluation, fitted)
    return Run(folder, experiment, fitted, recommender, evaluation)


def evaluate(folder: Path) -> Evaluation:
    """Judge a finished run again, on the cases and negatives it was judged on, and write the results."""
    recommender = Recommender.load(folder)
    split = read_split(folder, recommender.sequences)
    candidates = Candidates.load(folder / NEGATIVES, split.test, split.whole)
    count_V = np.bincount(split.train.item_N, minlength=split.train.n_items)
    evaluator = Evaluator(split.test, split.whole, candidates, count_V, recommender.length)
    evaluation = evaluator.evaluate(recommender.model)
    evaluation.write(folder)
    return evaluation


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
    fitted = fitted_in(folder, experiment.training)
    return Run(folder, experiment, fitted, Recommender.load(folder), Evaluation.read(folder))


def world_of(experiment: Experiment, log: Interactions) -> World | None:
    """The world that the log was drawn from, narrowed to the users and items of the log; None: nobody knows it."""
    where = experiment.data.world
    if where is None:
        return None
    return (World.builtin() if where == "builtin" else World.load(Path(where))).aligned_with(log)


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


def _begin(folder: Path, experiment: Experiment, log: Interactions, split: Split, ready: Ready) -> None:
    about = {
        "versions": versions(),
        "log": {"fingerprint": log.fingerprint(), **asdict(describe(log))},
        "split": split.rule,
        "propensity": None if ready.propensity is None else ready.propensity.name,
        "by_proxy": ready.by_proxy,
        "weights": None if ready.weights is None else asdict(ready.weights),
        "parameters": ready.model.n_parameters(),
    }
    write_config(folder, experiment)
    write_json(folder / ABOUT, about)
    write_split(folder, split)


def _finish(
    folder: Path,
    experiment: Experiment,
    recommender: Recommender,
    evaluator: Evaluator,
    evaluation: Evaluation,
    fitted: Fitted,
) -> None:
    """The recommender comes last: a folder that has one is a finished run."""
    evaluator.candidates.save(folder / NEGATIVES)
    evaluation.write(folder)
    write_whole(folder / CARD, model_card(experiment, read_json(folder / ABOUT), evaluation, fitted))
    model_folder.write(recommender, folder)
