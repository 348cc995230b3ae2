"""The run folder: what is in it, and how it is written and read.

```
config.json              every setting, defaults included
about.json               versions, machine, the log's fingerprint and figures, weight diagnostics
training.jsonl           a line an epoch
checkpoint.safetensors   what --resume goes on from
model.safetensors, items.parquet, users.parquet, histories.safetensors, manifest.json: the recommender
cases.safetensors, negatives.safetensors: what is asked, and against what
metrics.json, cases.parquet: the results in summary, and case by case
README.md                the model card
```
"""

import json
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from unveil import __version__
from unveil.data.sequences import Sequences
from unveil.data.splits import EvalCases, Split
from unveil.errors import UnveilError
from unveil.experiment.config import Experiment
from unveil.files import atomic_file
from unveil.settings import built, plain

CONFIG, ABOUT, SPLIT, NEGATIVES, CARD = (
    "config.json",
    "about.json",
    "cases.safetensors",
    "negatives.safetensors",
    "README.md",
)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """One JSON file, whole or not at all."""
    with atomic_file(path) as draft:
        draft.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """What `write_json` wrote."""
    try:
        return dict(json.loads(path.read_text()))
    except (FileNotFoundError, NotADirectoryError):
        hint = "Name a folder that `unveil train` wrote."
        raise UnveilError("not a run folder", where=path.parent, expected=path.name, hint=hint) from None
    except (ValueError, TypeError, OSError) as error:
        raise UnveilError(f"cannot be read: {error}", where=path) from None


def read_config(folder: Path) -> Experiment:
    """The settings of a run."""
    return built(Experiment, read_json(folder / CONFIG), where=folder / CONFIG)


def write_config(folder: Path, experiment: Experiment) -> None:
    """The settings of a run, defaults included."""
    write_json(folder / CONFIG, plain(experiment))


def versions() -> dict[str, str]:
    """What the run was made with."""
    found = {"unveil": __version__, "python": platform.python_version(), "platform": platform.platform()}
    for package in ("torch", "numpy", "polars"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


def write_split(folder: Path, split: Split) -> None:
    """What was trained on and what is asked, in places of the histories."""
    arrays = {"train_U": split.train.length_U.astype(np.int64)}
    for part in ("valid", "test"):
        arrays |= {f"{part}.{name}": column for name, column in vars(getattr(split, part)).items()}
    with atomic_file(folder / SPLIT) as draft:
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, draft, {"rule": split.rule})


def read_split(folder: Path, whole: Sequences) -> Split:
    """What `write_split` wrote."""
    try:
        arrays = load_file(folder / SPLIT)
        parts = {
            part: EvalCases(*(arrays[f"{part}.{name}"] for name in ("user_C", "item_C", "step_C", "seen_C")))
            for part in ("valid", "test")
        }
    except (FileNotFoundError, SafetensorError, KeyError) as error:
        raise UnveilError("the cases of the run are missing or damaged", where=folder / SPLIT) from error
    train = whole.cut(np.zeros_like(arrays["train_U"]), arrays["train_U"])
    return Split(whole, train, **parts, rule=read_json(folder / ABOUT)["split"], train_only=0)
