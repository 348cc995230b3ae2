"""One run, from a log to a judged and usable recommender in a folder; resumable at every epoch."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from unveil.data.describe import describe
from unveil.data.interactions import Interactions
from unveil.data.splits import Split
from unveil.errors import UnveilError
from unveil.evaluation.candidates import Candidates
from unveil.evaluation.evaluator import Evaluator
from unveil.evaluation.result import Evaluation
from unveil.evaluation.validation import ValidationEvaluator
from unveil.experiment.card import model_card
from unveil.experiment.config import Experiment
from unveil.experiment.folder import (
    ABOUT,
    CARD,
    NEGATIVES,
    read_config,
    read_json,
    read_split,
    versions,
    write_config,
    write_json,
    write_split,
)
from unveil.files import atomic_file, refuse_occupied
from unveil.serving import folder as model_folder
from unveil.serving.recommender import Recommender
from unveil.simulation.world import World
from unveil.training.fit import Ready, prepare
from unveil.training.progress import Watcher
from unveil.training.trainer import Fitted, Keep

Tell = Callable[[str], None]


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
    if not resume:
        refuse_occupied(folder)
    log = experiment.data.load()
    split = experiment.data.parts(log)
    tell(f"{log!r}; {split.rule}; {split.train_only:,} users for training only")
    ready = prepare(split.train, experiment.recipe, log=log, world=_world(experiment, log))
    validation = _validation(experiment, split)
    evaluator = _evaluator(experiment, split)
    _tell_weights(ready, tell)
    _begin(folder, experiment, log, split, ready, resume=resume)
    keep = Keep(folder, resume=resume, identity={"log": log.fingerprint()})
    fitted = ready.fit(validation, keep=keep, watch=watch)
    evaluation = evaluator.evaluate(ready.model)
    recommender = Recommender(ready.model, log.items, log.users, split.whole, experiment.model.length)
    _finish(folder, recommender, evaluator, evaluation, fitted)
    return Run(folder, experiment, fitted, recommender, evaluation)


def evaluate(folder: Path) -> Evaluation:
    """Judge a finished run again, on the cases and negatives it was judged on, and write the results."""
    recommender = Recommender.load(folder)
    split = read_split(folder, recommender.sequences)
    evaluator = _evaluator(read_config(folder), split)
    candidates = Candidates.load(folder / NEGATIVES, split.test, split.whole)
    evaluator = Evaluator(split.test, split.whole, candidates, evaluator.count_V, recommender.length)
    evaluation = evaluator.evaluate(recommender.model)
    evaluation.write(folder)
    return evaluation


def _world(experiment: Experiment, log: Interactions) -> World | None:
    where = experiment.data.world
    return None if where is None else World.load(Path(where)).aligned_with(log)


def _validation(experiment: Experiment, split: Split) -> ValidationEvaluator:
    settings = experiment.evaluation
    return ValidationEvaluator.of(
        split,
        length=experiment.model.length,
        protocol=settings.validation,
        uniform=settings.uniform if settings.validation.startswith("uniform") else 0,
        popular=settings.popular if settings.validation.startswith("popular") else 0,
        exclude_seen=settings.exclude_seen,
        seed=settings.seed,
    )


def _evaluator(experiment: Experiment, split: Split) -> Evaluator:
    settings = experiment.evaluation
    return Evaluator.of(
        split.test,
        split.whole,
        split.train,
        length=experiment.model.length,
        uniform=settings.uniform,
        popular=settings.popular,
        exclude_seen=settings.exclude_seen,
        seed=settings.seed,
    )


def _tell_weights(ready: Ready, tell: Tell) -> None:
    if ready.weights is not None:
        tell(f"weights of {ready.estimator.name}: {ready.weights}")
        for warning in ready.weights.warnings():
            tell(f"warning: {warning}")


def _begin(
    folder: Path, experiment: Experiment, log: Interactions, split: Split, ready: Ready, *, resume: bool
) -> None:
    if resume and not folder.is_dir():
        raise UnveilError("there is no run to resume", where=folder, hint="Leave --resume out to start one.")
    about = {
        "versions": versions(),
        "log": {"fingerprint": log.fingerprint(), **asdict(describe(log))},
        "split": split.rule,
        "weights": None if ready.weights is None else asdict(ready.weights),
        "parameters": ready.model.n_parameters(),
    }
    write_config(folder, experiment)
    write_json(folder / ABOUT, about)
    write_split(folder, split)


def _finish(
    folder: Path, recommender: Recommender, evaluator: Evaluator, evaluation: Evaluation, fitted: Fitted
) -> None:
    evaluator.candidates.save(folder / NEGATIVES)
    evaluation.write(folder)
    with atomic_file(folder / CARD) as draft:
        draft.write_text(model_card(read_config(folder), read_json(folder / ABOUT), evaluation, fitted))
    model_folder.write(recommender, folder)
