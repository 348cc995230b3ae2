"""The run folder: how it is written and read, and which runs may be compared. Its files: docs/commands/train.md."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save as as_bytes

from unveil.audit.checks import cold, concentration, leakage
from unveil.audit.exposure import costs
from unveil.checksums import check_seal, header, read_arrays, sealed
from unveil.data.describe import describe
from unveil.data.interactions import Interactions, Sequences
from unveil.data.readers.database import shown
from unveil.data.splits import EvalCases, Split
from unveil.errors import UnveilError
from unveil.evaluation.evaluator import Evaluator, ValidationEvaluator
from unveil.evaluation.labelled import LabelledValidation
from unveil.evaluation.result import RULES, Evaluation, label
from unveil.files import alone_in, check_idle, check_resumed, explained, versions, write_json, write_whole
from unveil.models.blend import Blend
from unveil.propensity.weights import WeightDiagnostics
from unveil.report.prose import Prose
from unveil.runs.config import Experiment
from unveil.serving.model_files import MANIFEST
from unveil.serving.recommender import Recommender
from unveil.settings import built, flattened, plain
from unveil.training.checkpoint import check_same_run
from unveil.training.fit import BaselineFit
from unveil.training.recipe import WHEREABOUTS
from unveil.training.trainer import Fitted, Trainer, fitted_in

CONFIG, ABOUT, CARD = "config.json", "about.json", "README.md"
SPLIT, NEGATIVES = "cases.safetensors", "negatives.safetensors"
#: Of a case: user, target, step and length of its context. Its row of the log is of use in training alone.
_CASE = ("user_C", "item_C", "step_C", "seen_C")
#: Settings that decide on which cases, and against which negatives, a run is evaluated.
_CASES = ("data.split", "data.valid_from", "data.test_from", "data.targets")
_HINT = "Name a folder that `unveil train` wrote."
#: With more interactions only counts are made of a log: its other figures hold every interaction in memory.
MOST = 5_000_000


@dataclass(frozen=True)
class LogFigures:
    """What a report says of a log."""

    fingerprint: str
    users: int
    items: int
    interactions: int


@dataclass(frozen=True)
class About:
    """What about.json must hold for a report."""

    versions: dict[str, str]
    workers: int
    log: LogFigures
    split: str
    propensity: str | None
    by_proxy: bool
    weights: WeightDiagnostics | None


@dataclass(frozen=True, eq=False)
class Prepared:
    """A run before its training: read, split and built, the same for all of a group."""

    experiment: Experiment
    log: Interactions
    split: Split
    trainer: Trainer | BaselineFit
    validation: ValidationEvaluator | LabelledValidation
    evaluator: Evaluator
    fingerprint: str  # of the log
    origin: str | None  # of the world, if there is one

    @property
    def cases(self) -> dict[str, Any]:
        """What decides which items compete, and which cases are drawn."""
        config = self.experiment.evaluation
        return {"exclude_seen": config.exclude_seen, "seed": config.seed}


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run: its settings, its data, its training and its results."""

    name: str
    folder: Path
    experiment: Experiment
    about: Mapping[str, Any]  # what about.json holds
    fitted: Fitted
    evaluation: Evaluation
    trained: tuple[Recommender, Split] | None = None  # where it was trained just now: nothing needs to be read

    @property
    def settings(self) -> dict[str, Any]:
        return flattened(plain(self.experiment))

    @property
    def recommender(self) -> Recommender:
        return self.model()[0]

    def model(self) -> tuple[Recommender, Split]:
        if self.trained is not None:
            return self.trained
        recommender = Recommender.load(self.folder, evaluated=True)
        return recommender, read_split(self.folder, recommender.sequences)

    def card(self) -> str:
        source, model = Path(shown(self.experiment.data.log)).name, self.recommender.model
        served = {"parts": model.shares if isinstance(model, Blend) else [], "alone": getattr(model, "name", "")}
        facts = {**vars(self), **served, "source": source, "rules": RULES, "label": label}
        return Prose(["card.md.j2"], facts).text("card")


@contextmanager
def claimed(folder: Path, *, resume: bool) -> Iterator[None]:
    """The folder for this process alone: empty, or one to resume. If nothing is written, none is left behind."""
    check_idle(folder)
    check_resumed(folder, (folder / CONFIG).exists(), resume=resume)
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        with alone_in(folder):
            yield
    finally:
        with suppress(OSError):
            for each in missing:
                each.rmdir()


def check_same(folder: Path, experiment: Experiment, fingerprint: str, world: str | None) -> None:
    """A run is resumed with the settings and the data it began with; an older run may say nothing of its world."""
    if (folder / ABOUT).exists():
        about = read_json(folder / ABOUT)
        if not isinstance(about.get("log"), dict) or "fingerprint" not in about["log"]:
            hint = "Restore it from a copy, or start another run."
            raise UnveilError("does not say which log the run began with", where=folder / ABOUT, hint=hint)
        hint = "Resume with the data the run began with, or start another run."
        if about["log"]["fingerprint"] != fingerprint:
            raise UnveilError("the run began with another log", where=folder, hint=hint)
        if about.get("world", world) != world:
            raise UnveilError("the run began with another world", where=folder, hint=hint)
    if (folder / CONFIG).exists():
        check_same_run(identity(read_config(folder)), identity(experiment), folder / CONFIG)


def identity(experiment: Experiment) -> dict[str, Any]:
    """All settings but those that do not change the numbers; the log is identified by its content, not by its name."""
    tree = plain(experiment)
    for name in WHEREABOUTS:
        del tree["training"][name]
    del tree["data"]["log"]
    for name in ("labelled", "candidates", "seen"):
        del tree["evaluation"][name]
    tree["data"]["world"] = tree["data"]["world"] is not None
    return tree


def is_finished(folder: Path) -> bool:
    """Whether the folder holds a run with nothing left to do: its recommender is written last."""
    return (folder / MANIFEST).exists()


def read_json(path: Path) -> dict[str, Any]:
    """What `write_json` wrote."""
    try:
        content = dict(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        raise UnveilError("not a run folder", where=path.parent, expected=path.name, hint=_HINT) from None
    except (ValueError, TypeError, RecursionError, OSError) as error:
        raise UnveilError(f"cannot be read: {error}", where=path) from None
    check_seal(content, path)
    return content


def read_config(folder: Path) -> Experiment:
    """The settings of a run."""
    return built(Experiment, read_json(folder / CONFIG), where=folder / CONFIG)


def begin(folder: Path, run: Prepared, workers: int) -> dict[str, Any]:
    """Write settings (no passwords), data and cases; give what about.json says. A finished run stays as it is."""
    experiment, split, trainer = run.experiment, run.split, run.trainer
    check_same(folder, experiment, run.fingerprint, run.origin)
    if is_finished(folder):
        return read_json(folder / ABOUT)
    labels = run.validation.test if isinstance(run.validation, LabelledValidation) else None
    about = {
        "versions": versions(),
        "workers": workers,
        "log": {"fingerprint": run.fingerprint, **asdict(describe(run.log))},
        "world": run.origin,
        "validation": None if labels is None else replace(labels, candidate_C=None).fingerprint,
        "split": split.rule,
        "cases": {name: len(getattr(split, name)) for name in ("train", "valid", "test")},
        "audit": audited(split, experiment.model.length),
        "propensity": None if trainer.propensity is None else trainer.propensity.name,
        "by_proxy": trainer.by_proxy,
        "weights": None if trainer.weights is None else asdict(trainer.weights),
        "parameters": trainer.model.n_parameters(),
    }
    labelled = experiment.evaluation.labelled
    public = replace(experiment, data=replace(experiment.data, log=shown(experiment.data.log)))
    public = replace(public, evaluation=replace(public.evaluation, labelled=labelled and shown(labelled)))
    write_json(folder / CONFIG, plain(public))
    write_json(folder / ABOUT, sealed(about))
    arrays = {"train_U": split.train.length_U}
    for part, cases in (("valid", split.valid), ("test", split.test)):
        arrays |= {f"{part}.{name}": np.ascontiguousarray(getattr(cases, name)) for name in _CASE}
    metadata = header(arrays, {"rule": split.rule, "train_only": split.train_only})
    write_whole(folder / SPLIT, as_bytes(arrays, metadata))
    return about


def audited(split: Split, window: int) -> dict[str, Any]:
    """Concentration, cold cases, leakage, and the effective sample size of weights by popularity within the window."""
    head = concentration(split.whole.count_V)
    test = cold(split.whole, {"test": split}).splits.get("test")
    small = len(split.whole) <= MOST
    later = leakage(split) if small else None
    spent = costs(split.train, window) if small and len(split.train) else None
    return {
        "gini": head.gini,
        "head": head.head,
        "cold": None if test is None else asdict(test),
        "leakage": None if later is None else asdict(later),
        "ess_share": None if spent is None else {name: spent.of(name).ess_share for name in ("ips", "itps")},
    }


def read_split(folder: Path, whole: Sequences) -> Split:
    """The cases that `begin` wrote."""
    path = folder / SPLIT
    try:
        arrays, about = read_arrays(path)
        train = whole.cut(np.zeros_like(arrays["train_U"]), arrays["train_U"])
        valid, test = (EvalCases(*(arrays[f"{part}.{name}"] for name in _CASE)) for part in ("valid", "test"))
        return Split(whole, train, valid, test, about["rule"], about["train_only"])
    except (SafetensorError, LookupError, ValueError, OSError) as error:
        raise UnveilError("the cases of the run are missing or damaged", where=path, hint=_HINT) from error


def read_run(folder: Path, name: str | None = None) -> Run:
    """A finished run."""
    if not (folder / CONFIG).exists() and (folder / "index.html").exists():
        hint = "Open its index.html; a report needs folders that `unveil train` wrote."
        raise UnveilError("these are the results of another command, not a run", where=folder, hint=hint)
    about, experiment = read_json(folder / ABOUT), read_config(folder)
    if not is_finished(folder):
        hint = "Finish it: the same `unveil train` with --resume."
        raise UnveilError("the run is not finished", where=folder, hint=hint)
    fitted = fitted_in(folder, experiment.training)
    return Run(name or folder.resolve().name, folder, experiment, about, fitted, Evaluation.read(folder))


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """The runs, each named by the shortest end of its path that is unique; an error where they cannot be compared."""
    runs = [read_run(folder, name) for name, folder in zip(short_names(folders), folders, strict=True)]
    for run in runs:
        if missing := ", ".join(name for name in About.__annotations__ if name not in run.about):
            problem, hint = "the run lacks figures that a report needs", "Train it again, into a new folder."
            raise UnveilError(problem, where=run.folder / ABOUT, found=f"nothing of {missing}", hint=hint)
        built(About, run.about, where=run.folder / ABOUT)
        _check_comparable(runs[0], run)
    return runs


def short_names(folders: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that are unique."""
    paths = [folder.resolve() for folder in folders]
    if len(set(paths)) < len(paths):
        raise UnveilError("the same run was named twice", found=", ".join(map(str, paths)))
    longest = max(len(path.parts) for path in paths)
    ends = ([str(Path(*path.parts[-depth:])) for path in paths] for depth in range(1, longest + 1))
    return next(names for names in ends if len(set(names)) == len(names))


def _check_comparable(one: Run, other: Run) -> None:
    logs, where = [run.about["log"] for run in (one, other)], f"{one.name} and {other.name}"
    if logs[0]["fingerprint"] != logs[1]["fingerprint"]:
        found = " and ".join(f"{log['interactions']:,} interactions, {log['fingerprint'][:8]}" for log in logs)
        hint = "Train both on the same log with the same filters."
        raise UnveilError("these runs were trained on different logs", where=where, found=found, hint=hint)
    if one.evaluation.fingerprint != other.evaluation.fingerprint:
        mine, theirs = one.settings, other.settings
        names = [name for name in mine if name in _CASES or name.startswith("evaluation.")]
        apart = ", ".join(name for name in names if mine[name] != theirs.get(name)) or "none of the stored settings"
        hint = "Train them with the same split, negatives and evaluation.seed."
        problem = "these runs were evaluated on different cases or negatives"
        raise UnveilError(problem, where=where, found=f"a difference in {apart}", hint=hint)


def differing(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """The settings and versions that are not the same everywhere, with their value in each run."""
    trees = [
        {
            **run.settings,
            "workers": run.about["workers"],
            **{f"version of {name}": value for name, value in run.about["versions"].items()},
        }
        for run in runs
    ]
    names = dict.fromkeys(name for tree in trees for name in tree if name != "data.log")
    found = {name: [tree.get(name, "–") for tree in trees] for name in names}
    return {name: values for name, values in found.items() if any(value != values[0] for value in values)}
