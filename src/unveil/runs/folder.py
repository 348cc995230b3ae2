"""The run folder: what is in it, and how it is written and read.

```
config.json              every setting, defaults included
about.json               versions, the log's fingerprint and figures, propensity and weights
training.jsonl           a line an epoch
checkpoint.safetensors   what --resume goes on from
model.safetensors, items.parquet, users.parquet, histories.safetensors, manifest.json: the recommender
exposure.safetensors     what its propensity says of every item, where it was trained with one
cases.safetensors, negatives.safetensors: what is asked, and against what
metrics.json, cases.parquet: the results in summary, and case by case
README.md                the model card
```
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as as_bytes

from unveil.data.readers.database import shown
from unveil.data.sequences import Sequences
from unveil.data.splits import EvalCases, Split
from unveil.errors import UnveilError
from unveil.files import refuse_occupied, write_json, write_whole
from unveil.runs.config import Experiment
from unveil.serving.model_files import MANIFEST
from unveil.settings import built, plain
from unveil.training.checkpoint import check_same_run
from unveil.training.recipe import WHEREABOUTS

CONFIG, ABOUT, SPLIT, NEGATIVES, CARD = (
    "config.json",
    "about.json",
    "cases.safetensors",
    "negatives.safetensors",
    "README.md",
)
#: Of a case: what is asked. Its row of the log is of use in training alone.
_ASKED = ("user_C", "item_C", "step_C", "seen_C")


def refuse_unfit(folder: Path, *, resume: bool) -> None:
    """Before any work is done: a new run needs an empty place, a resumed one the place it began in."""
    if not resume:
        refuse_occupied(folder, hint="Name another; or, if it holds a run that was stopped, pass --resume.")
    elif not folder.is_dir():
        raise UnveilError("there is no run to resume", where=folder, hint="Leave --resume out to start one.")
    elif any(folder.iterdir()):
        read_json(folder / CONFIG)


def refuse_other(folder: Path, experiment: Experiment, fingerprint: str, world: str | None) -> None:
    """A run is resumed with the settings and the data it began with; only where and how often may change.

    The log is told by its fingerprint, the world by its origin, of which an older run may say nothing.
    """
    if (folder / ABOUT).exists():
        hint = "Resume with the data the run began with, or start another run."
        if _fingerprint(folder) != fingerprint:
            raise UnveilError("the run began with another log", where=folder, hint=hint)
        if read_json(folder / ABOUT).get("world", world) != world:
            raise UnveilError("the run began with another world", where=folder, hint=hint)
    if (folder / CONFIG).exists():
        check_same_run(identity(read_config(folder)), identity(experiment), folder / CONFIG)


def _fingerprint(folder: Path) -> object:
    """Of the log that a run began with."""
    log = read_json(folder / ABOUT).get("log")
    if not isinstance(log, dict) or "fingerprint" not in log:
        hint = "Restore it from a copy, or start another run."
        raise UnveilError("does not say which log the run began with", where=folder / ABOUT, hint=hint)
    return log["fingerprint"]


def is_finished(folder: Path) -> bool:
    """Whether the folder holds a run with nothing left to do: its recommender is written last."""
    return (folder / MANIFEST).exists()


def identity(experiment: Experiment) -> dict[str, Any]:
    """All settings but those that do not change the numbers; the log is told by its content, not by its name."""
    tree = plain(experiment)
    for name in WHEREABOUTS:
        del tree["training"][name]
    del tree["data"]["log"]
    tree["data"]["world"] = tree["data"]["world"] is not None
    return tree


def read_json(path: Path) -> dict[str, Any]:
    """What `write_json` wrote."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        hint = "Name a folder that `unveil train` wrote."
        raise UnveilError("not a run folder", where=path.parent, expected=path.name, hint=hint) from None
    except (ValueError, TypeError, RecursionError, OSError) as error:
        raise UnveilError(f"cannot be read: {error}", where=path) from None


def read_config(folder: Path) -> Experiment:
    """The settings of a run."""
    return built(Experiment, read_json(folder / CONFIG), where=folder / CONFIG)


def write_config(folder: Path, experiment: Experiment) -> None:
    """The settings of a run, defaults included and passwords left out."""
    public = replace(experiment, data=replace(experiment.data, log=shown(experiment.data.log)))
    write_json(folder / CONFIG, plain(public))


def write_split(folder: Path, split: Split) -> None:
    """What was trained on and what is asked, in places of the histories."""
    arrays = {"train_U": split.train.length_U}
    for part in ("valid", "test"):
        arrays |= {f"{part}.{name}": getattr(getattr(split, part), name) for name in _ASKED}
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    about = {"rule": split.rule, "train_only": split.train_only}
    write_whole(folder / SPLIT, as_bytes(whole, {"about": json.dumps(about)}))


def read_split(folder: Path, whole: Sequences) -> Split:
    """What `write_split` wrote."""
    path = folder / SPLIT
    try:
        with safe_open(path, framework="numpy") as file:
            about = json.loads((file.metadata() or {})["about"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        train = whole.cut(np.zeros_like(arrays["train_U"]), arrays["train_U"])
        valid, test = (EvalCases(*(arrays[f"{part}.{name}"] for name in _ASKED)) for part in ("valid", "test"))
        return Split(whole, train, valid, test, about["rule"], about["train_only"])
    except (SafetensorError, LookupError, ValueError, OSError) as error:
        hint = "Name a folder that `unveil train` wrote."
        raise UnveilError("the cases of the run are missing or damaged", where=path, hint=hint) from error
