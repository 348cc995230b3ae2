"""In what the runs differ, setting by setting."""

from collections.abc import Sequence
from typing import Any

from unveil.experiment.compared.runs import Judged

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
