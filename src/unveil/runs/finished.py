"""Finished runs, and which of them may be compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unveil.data.splits import Split
from unveil.errors import UnveilError
from unveil.evaluation.result import Evaluation
from unveil.runs.config import Experiment
from unveil.runs.folder import ABOUT, CONFIG, is_finished, read_config, read_json, read_split
from unveil.runs.train import Run
from unveil.serving.recommender import Recommender
from unveil.settings import flattened, plain
from unveil.training.trainer import Fitted, fitted_in

#: What about.json must hold for a report.
_NEEDED = ("versions", "workers", "log", "split", "propensity", "by_proxy", "weights")
#: Settings that decide on which cases, and against which negatives, a run is evaluated.
_CASES = ("data.split", "data.valid_from", "data.test_from", "data.targets")
_ABSENT = "–"


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """One run: its settings, its data, its training and its results."""

    name: str
    folder: Path
    experiment: Experiment
    about: Mapping[str, Any]
    fitted: Fitted
    evaluation: Evaluation
    trained: Run | None = None  # where it was trained just now: nothing needs to be read

    @classmethod
    def of(cls, run: Run) -> "FinishedRun":
        """A run that was trained just now."""
        name = short_names([run.folder.resolve()])[0]
        return cls(name, run.folder, run.experiment, run.about, run.fitted, run.evaluation, run)

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting by its dotted name."""
        return flattened(plain(self.experiment))

    def model(self) -> tuple[Recommender, Split]:
        """The recommender and the cases it was evaluated on."""
        if self.trained is not None:
            return self.trained.recommender, self.trained.split
        recommender = Recommender.load(self.folder)
        return recommender, read_split(self.folder, recommender.sequences)


def read_runs(folders: Sequence[Path]) -> list[FinishedRun]:
    """The runs, each named by the shortest end of its path that is unique; an error where they cannot be compared."""
    names = short_names([folder.resolve() for folder in folders])
    runs = [_read(name, folder) for name, folder in zip(names, folders, strict=True)]
    for other in runs[1:]:
        _check_comparable(runs[0], other)
    return runs


def short_names(folders: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that are unique."""
    if len(set(folders)) < len(folders):
        raise UnveilError("the same run was named twice", found=", ".join(map(str, folders)))
    longest = max(len(folder.parts) for folder in folders)
    ends = ([str(Path(*folder.parts[-depth:])) for folder in folders] for depth in range(1, longest + 1))
    return next(names for names in ends if len(set(names)) == len(names))


def differing(runs: Sequence[FinishedRun]) -> dict[str, list[Any]]:
    """The settings and versions that are not the same everywhere, with their value in each run."""
    trees = [run.settings | _made_with(run) for run in runs]
    names = dict.fromkeys(name for tree in trees for name in tree if name != "data.log")
    found = {name: [tree.get(name, _ABSENT) for tree in trees] for name in names}
    return {name: values for name, values in found.items() if any(value != values[0] for value in values)}


def _made_with(run: FinishedRun) -> dict[str, Any]:
    versions = {f"version of {name}": value for name, value in run.about["versions"].items()}
    return {"workers": run.about["workers"], **versions}


def _read(name: str, folder: Path) -> FinishedRun:
    if not (folder / CONFIG).exists() and (folder / "index.html").exists():
        hint = "Open its index.html; a report needs folders that `unveil train` wrote."
        raise UnveilError("these are the results of another command, not a run", where=folder, hint=hint)
    about = read_json(folder / ABOUT)
    experiment = read_config(folder)
    if not is_finished(folder):
        hint = "Finish it: the same `unveil train` with --resume."
        raise UnveilError("the run is not finished", where=folder, hint=hint)
    if missing := [name for name in _NEEDED if name not in about]:
        hint = "Train it again with this version, into a new folder."
        problem = "the run lacks figures that a report needs"
        raise UnveilError(problem, where=folder / ABOUT, found=f"nothing of {', '.join(missing)}", hint=hint)
    return FinishedRun(name, folder, experiment, about, fitted_in(folder, experiment.training), Evaluation.read(folder))


def _check_comparable(one: FinishedRun, other: FinishedRun) -> None:
    logs = [run.about["log"] for run in (one, other)]
    where = f"{one.name} and {other.name}"
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
