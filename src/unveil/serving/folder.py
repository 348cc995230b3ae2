"""A recommender as a folder: weights in safetensors, ids in Parquet, the rest in JSON. Reading it runs no code.

`manifest.json` is written last and holds a hash of every other file: what is missing, cut short or tampered with is
told apart from a folder that never was one.
"""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load_file as load_weights
from safetensors.torch import save_file as save_weights

from unveil import __version__
from unveil.data.sequences import Sequences
from unveil.data.vocabulary import Vocabulary
from unveil.errors import UnveilError
from unveil.files import atomic_file, atomic_folder
from unveil.models.base import Backbone, backbone
from unveil.serving.recommender import Recommender
from unveil.settings import built, plain

FORMAT = "unveil recommender 1"
MANIFEST, WEIGHTS, ITEMS, USERS, HISTORIES = (
    "manifest.json",
    "model.safetensors",
    "items.parquet",
    "users.parquet",
    "histories.safetensors",
)


def save(recommender: Recommender, folder: Path, *, overwrite: bool = False) -> None:
    """Write a new folder, whole or not at all."""
    with atomic_folder(folder, overwrite=overwrite) as draft:
        write(recommender, draft)


def write(recommender: Recommender, folder: Path) -> None:
    """Write into a folder that is there; the manifest comes last."""
    model = recommender.model
    if not isinstance(model, Backbone):
        raise UnveilError("only a network can be saved", found=type(model).__name__)
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    sequences = recommender.sequences
    arrays: dict[str, NDArray[Any]] = {name: getattr(sequences, name) for name in _ARRAYS}
    writers: dict[str, Callable[[Path], object]] = {
        WEIGHTS: lambda path: save_weights(weights, path),
        ITEMS: lambda path: recommender.items.ids.to_frame().write_parquet(path),
        USERS: lambda path: recommender.users.ids.to_frame().write_parquet(path),
        HISTORIES: lambda path: save_arrays({name: np.ascontiguousarray(a) for name, a in arrays.items()}, path),
    }
    for name, writer in writers.items():
        with atomic_file(folder / name) as draft:
            writer(draft)
    manifest = {
        "format": FORMAT,
        "unveil": __version__,
        "model": {"name": model.name, "config": plain(model.config)},
        "length": recommender.length,
        "n_steps": sequences.n_steps,
        "sha256": {name: _hash(folder / name) for name in writers},
    }
    with atomic_file(folder / MANIFEST) as draft:
        draft.write_text(json.dumps(manifest, indent=1) + "\n")


def load(folder: Path) -> Recommender:
    """Read what `write` wrote, and refuse anything else."""
    manifest = read_manifest(folder)
    for name, expected in manifest["sha256"].items():
        _check(folder / name, expected)
    try:
        return _assembled(folder, manifest)
    except (SafetensorError, pl.exceptions.PolarsError, KeyError, RuntimeError, OSError) as error:
        raise UnveilError(f"the folder does not hold together: {error}", where=folder, hint=_AGAIN) from error


_ARRAYS = ("item_N", "step_N", "event_N", "offset_U1")
_AGAIN = "Copy it again from where it came, or train again."


def read_manifest(folder: Path) -> dict[str, Any]:
    """What the folder says it is."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        hint = "Name a folder that `unveil train` or `Recommender.save` wrote. A run that was stopped can be resumed."
        raise UnveilError("not the folder of a trained model", where=folder, expected=MANIFEST, hint=hint) from None
    except (ValueError, OSError) as error:
        raise UnveilError(f"cannot be read: {error}", where=path, hint=_AGAIN) from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        found = manifest.get("format") if isinstance(manifest, dict) else None
        raise UnveilError("not a manifest of this version", where=path, found=found, expected=repr(FORMAT))
    return manifest


def _assembled(folder: Path, manifest: dict[str, Any]) -> Recommender:
    items, users = (Vocabulary(pl.read_parquet(folder / name)["id"]) for name in (ITEMS, USERS))
    kind = backbone(manifest["model"]["name"])
    model = kind(built(kind.Config, manifest["model"]["config"], where=folder / MANIFEST), len(items))
    model.load_state_dict(load_weights(folder / WEIGHTS))
    arrays = load_arrays(folder / HISTORIES)
    sequences = Sequences(time_N=None, n_items=len(items), n_steps=int(manifest["n_steps"]), **arrays)
    return Recommender(model.eval(), items, users, sequences, int(manifest["length"]))


def _check(path: Path, expected: str) -> None:
    if not path.exists():
        raise UnveilError("a file of the model is missing", where=path, hint=_AGAIN)
    if _hash(path) != expected:
        raise UnveilError("truncated or changed since it was written", where=path, hint=_AGAIN)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        digest = sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
