"""The study folder.

```
study.json         what was planned, with what, and the best; made first, to say what the folder is
journal.log        Optuna's journal, unless the study is in a database
trials/NNN/rM/     replicate M of trial NNN: of a training a line an epoch, and while it lasts a checkpoint
trials.csv         a row a trial
best.toml          the winning settings, as a config of `unveil train` or `unveil world fit`
index.html         the report
```
"""

import csv
from io import StringIO
from pathlib import Path
from typing import Any

from unveil.errors import UnveilError
from unveil.files import explained, versions, write_json, write_whole
from unveil.report.page import write_page
from unveil.runs.folder import read_json
from unveil.runs.tune.page import page
from unveil.runs.tune.subject import Study
from unveil.runs.tune.worker import spread
from unveil.wording import quantity

STUDY, TABLE, BEST, PAGE = "study.json", "trials.csv", "best.toml", "index.html"


def refuse_unfit(folder: Path) -> None:
    """Before any work is done: a new place, or one that holds a study."""
    if folder.exists() and not folder.is_dir():
        raise UnveilError("the output is a file, not a folder", where=folder, hint="Name another place.")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / STUDY).exists():
        raise UnveilError("the folder holds something else than a study", where=folder, hint="Name another.")


def refuse_elsewhere(folder: Path, storage: str) -> None:
    """A folder keeps to one storage."""
    kept = read_json(folder / STUDY).get("storage") if (folder / STUDY).exists() else storage
    if kept is None:
        hint = "Restore it from a copy, or name another folder."
        raise UnveilError("does not say where the study is kept", where=folder / STUDY, hint=hint)
    if kept != storage:
        hint = "Join with the --storage it began with, or name another folder."
        raise UnveilError(f"the study is kept in {kept}, not in {storage}", where=folder, hint=hint)


def begin(folder: Path, study: Study) -> None:
    """Say what the folder is, before it holds anything else."""
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if not (folder / STUDY).exists():
        write_json(folder / STUDY, _about(study))
    refuse_elsewhere(folder, study.storage)


def write(folder: Path, study: Study, command: str) -> None:
    """All results; whoever writes them writes the same."""
    best = study.best
    write_json(folder / STUDY, {**_about(study), "command": command, "best": _best(study)})
    write_whole(folder / TABLE, _table(study))
    write_whole(folder / BEST, study.winner.toml(_head(study, best.entry)))
    write_page(page(study, command), folder / PAGE)


def _about(study: Study) -> dict[str, Any]:
    plan = study.plan
    return {
        "study": study.name,
        "storage": study.storage,
        "log": study.fingerprint,
        "metric": f"validation {study.metric}",
        "space": {"name": plan.space.name, "settings": plan.space.plain()},
        **{name: getattr(plan, name) for name in ("sampler", "replicates", "prune")},
        "judging": study.subject.words.judging,
        "seed": study.subject.seed,
        "versions": versions(),
    }


def _best(study: Study) -> dict[str, Any]:
    best = study.best
    states = {state: study.count(state) for state in ("complete", "pruned", "failed")}
    values = [each.value for each in best.replicates]
    return {
        "trial": best.entry,
        "settings": dict(best.settings),
        "mean": best.value,
        "values": values,
        "trials": states,
    }


def _table(study: Study) -> str:
    text = StringIO()
    names, places = list(study.plan.space.dimensions), range(study.plan.replicates)
    head = ["trial", "state", *names, "mean", "sd", *(f"replicate {place}" for place in places)]
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([*head, *(f"best epoch {place}" for place in places), "seconds", "attempts", "why"])
    for each in study.records:
        missing = [""] * (study.plan.replicates - len(each.replicates))
        off = "" if each.value is None or len(each.replicates) < 2 else spread(each)
        rows.writerow(
            [
                each.entry,
                each.state,
                *(each.settings.get(name, "") for name in names),
                "" if each.value is None else each.value,
                off,
                *(one.value for one in each.replicates),
                *missing,
                *("" if one.epoch is None else one.epoch for one in each.replicates),
                *missing,
                round(each.seconds, 2),
                each.attempts,
                each.why or "",
            ]
        )
    return text.getvalue()


def _head(study: Study, entry: int) -> str:
    trials = quantity(len(study.records), "trial")
    return (
        f"The best of {trials} of study {study.name} (space {study.plan.space.name}, {study.plan.sampler} search):\n"
        f"trial {entry}, mean validation {study.metric} {study.best.value:.4f} over "
        f"{quantity(study.plan.replicates, 'replicate')}.\n"
        f"{study.subject.words.command.format(config='THIS-FILE')}"
    )
