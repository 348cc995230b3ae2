"""Finished runs as they lie in their folders, and which of them may stand side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unveil.errors import UnveilError
from unveil.evaluation.result import Evaluation
from unveil.runs.config import Experiment
from unveil.runs.folder import ABOUT, CONFIG, is_finished, read_config, read_json
from unveil.settings import flattened, plain
from unveil.training.trainer import Fitted, fitted_in

#: What a run says of itself, and a report repeats.
_TOLD = ("versions", "workers", "log", "split", "propensity", "by_proxy", "weights")
#: What decides on which cases, and against which negatives, a run is judged.
_ASKED = ("data.split", "data.valid_from", "data.test_from", "data.targets")


@dataclass(frozen=True, eq=False)
class Judged:
    """One run: its settings, what it says of itself, how it learnt and what came out."""

    name: str
    folder: Path
    experiment: Experiment
    about: Mapping[str, Any]
    fitted: Fitted
    evaluation: Evaluation

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting by its dotted name."""
        return flattened(plain(self.experiment))


def read_runs(folders: Sequence[Path]) -> list[Judged]:
    """The runs, each by the shortest end of its path that tells it apart; refused where they cannot be compared."""
    names = short_names([folder.resolve() for folder in folders])
    runs = [_read(name, folder) for name, folder in zip(names, folders, strict=True)]
    for other in runs[1:]:
        _refuse_unlike(runs[0], other)
    return runs


def short_names(folders: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that tell them apart."""
    if len(set(folders)) < len(folders):
        raise UnveilError("the same run was named twice", found=", ".join(map(str, folders)))
    longest = max(len(folder.parts) for folder in folders)
    ends = ([str(Path(*folder.parts[-depth:])) for folder in folders] for depth in range(1, longest + 1))
    return next(names for names in ends if len(set(names)) == len(names))


def _read(name: str, folder: Path) -> Judged:
    _refuse_other_results(folder)
    about = read_json(folder / ABOUT)
    experiment = read_config(folder)
    if not is_finished(folder):
        hint = "Finish it: the same `unveil train` with --resume."
        raise UnveilError("the run is not finished", where=folder, hint=hint)
    _refuse_half_told(about, folder)
    return Judged(name, folder, experiment, about, fitted_in(folder, experiment.training), Evaluation.read(folder))


def _refuse_half_told(about: Mapping[str, Any], folder: Path) -> None:
    """As a run of another version may be, or one that somebody has edited."""
    missing = [name for name in _TOLD if name not in about]
    if missing:
        raise UnveilError(
            "the run does not say all of itself that a report needs",
            where=folder / ABOUT,
            found=f"nothing of {', '.join(missing)}",
            hint="Train it again with this version, into a new folder.",
        )


def _refuse_other_results(folder: Path) -> None:
    """Folders of other commands have pages of their own."""
    if (folder / CONFIG).exists() or not (folder / "index.html").exists():
        return
    hint = (
        "Open its index.html; a report is of folders that `unveil train` wrote, with the lists of every user in them."
    )
    raise UnveilError("these are the results of another command, not a run", where=folder, hint=hint)


def _refuse_unlike(one: Judged, other: Judged) -> None:
    logs = [run.about["log"] for run in (one, other)]
    where = f"{one.name} and {other.name}"
    if logs[0]["fingerprint"] != logs[1]["fingerprint"]:
        found = [f"{log['interactions']:,} events, {log['fingerprint'][:8]}" for log in logs]
        hint = "Train both on the same log with the same filters."
        raise UnveilError("these runs learnt from different logs", where=where, found=" and ".join(found), hint=hint)
    if one.evaluation.fingerprint != other.evaluation.fingerprint:
        apart = ", ".join(_asked_otherwise(one, other)) or "none of the settings that are kept"
        hint = "Train them with the same split, negatives and evaluation.seed."
        raise UnveilError(
            "these runs were judged on different cases or negatives",
            where=where,
            found=f"a difference in {apart}",
            hint=hint,
        )


def _asked_otherwise(one: Judged, other: Judged) -> list[str]:
    mine, theirs = one.settings, other.settings
    names = [name for name in mine if name in _ASKED or name.startswith("evaluation.")]
    return [name for name in names if mine[name] != theirs.get(name)]


#: Of the files of a run, what tells of the place rather than of the run.
_ASIDE = ("data.log",)
_ABSENT = "–"


def differing(runs: Sequence[Judged]) -> dict[str, list[Any]]:
    """The settings that are not the same everywhere, with their value in each run; versions too."""
    trees = [run.settings | _made_with(run) for run in runs]
    names = dict.fromkeys(name for tree in trees for name in tree if name not in _ASIDE)
    found = {name: [tree.get(name, _ABSENT) for tree in trees] for name in names}
    return {name: values for name, values in found.items() if any(value != values[0] for value in values)}


def _made_with(run: Judged) -> dict[str, Any]:
    versions = {f"version of {name}": value for name, value in run.about["versions"].items()}
    return {"workers": run.about["workers"], **versions}
