"""A recommender as a folder: weights in safetensors, ids in Parquet, the rest in JSON. Reading it runs no code.

`manifest.json` is written last and holds a hash of every other file, so that what is missing, cut short or changed is
distinguished from a folder that never was one.
"""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file as load_arrays
from safetensors.torch import load_file as load_weights
from safetensors.torch import save as weight_bytes

from unveil import __version__
from unveil.checksums import check_file, check_seal, sealed
from unveil.data.indexing import Vocabulary
from unveil.data.interactions import Sequences
from unveil.data.mapped import Streamed, write_arrays
from unveil.errors import UnveilError
from unveil.files import write_json, write_whole
from unveil.models.base import BACKBONES, Model
from unveil.models.blend import Blend
from unveil.serving.exposure import ExposureTable
from unveil.serving.recommender import Recommender, model_of
from unveil.settings import built, plain

FORMAT = "unveil recommender 1"
MANIFEST, WEIGHTS, ITEMS, USERS = "manifest.json", "model.safetensors", "items.parquet", "users.parquet"
HISTORIES, EXPOSURE = "histories.safetensors", "exposure.safetensors"
#: What a slice without exposure bias taught, if there was one: what is added to the scores, and how it was measured.
CALIBRATION, CALIBRATED = "calibration.safetensors", "calibration.json"
#: Weights of the network that was evaluated, where another one, trained on all events, is served.
EVALUATED = "evaluated.safetensors"
FILES = (MANIFEST, WEIGHTS, ITEMS, USERS, HISTORIES, EXPOSURE, CALIBRATION)
#: The measured trade-off of novelty, if there is one; not part of the model.
DIAL = "dial.json"
_ARRAYS = ("item_N", "step_N", "event_N", "offset_U1")
#: What libraries raise about a damaged file; a panic of polars is no `Exception`.
_DAMAGE = (SafetensorError, pl.exceptions.PolarsError, pl.exceptions.PanicException)
_AGAIN = "Copy it again from where it came, or train again."


def write(recommender: Recommender, folder: Path, evaluated: Recommender | None = None) -> None:
    """Write into a folder that is there; the manifest comes last. `evaluated` has the same model, fitted on less."""
    model, sequences, exposure = model_of(recommender), recommender.sequences, recommender.exposure
    content = {WEIGHTS: _weights(model), ITEMS: _parquet(recommender.items), USERS: _parquet(recommender.users)}
    if evaluated is not None and evaluated.model is not model:
        content[EVALUATED] = _weights(model_of(evaluated))
    for name, part in content.items():
        write_whole(folder / name, part)
    hashes = {name: sha256(part).hexdigest() for name, part in content.items()}
    hashes[HISTORIES] = write_arrays(folder / HISTORIES, {name: _column(sequences, name) for name in _ARRAYS})
    if exposure is None:
        (folder / EXPOSURE).unlink(missing_ok=True)
    else:
        arrays = {name: Streamed.of(getattr(exposure, name)) for name in ("step_S", "theta_SV")}
        about = {"about": json.dumps({"name": exposure.name, "over": exposure.over})}
        hashes[EXPOSURE] = write_arrays(folder / EXPOSURE, arrays, about)
    manifest = {"format": FORMAT, "unveil": __version__, "model": {"name": model.name, "config": plain(model.config)}}
    sizes = {"length": recommender.length, "n_steps": sequences.n_steps}
    write_json(folder / MANIFEST, sealed({**manifest, **sizes, "sha256": hashes}))


def _weights(model: torch.nn.Module) -> bytes:
    return weight_bytes({name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()})


def _column(sequences: Sequences, name: str) -> Streamed:
    """A column of the histories, a block of users at a time: they may be on disk."""
    if name == "offset_U1":
        return Streamed.of(sequences.offset_U1)
    kind = getattr(sequences.storage, name).dtype
    return Streamed(kind, (len(sequences),), lambda: (getattr(part, name) for part in sequences.blocks()))


def _parquet(ids: Vocabulary) -> bytes:
    content = BytesIO()
    ids.ids.to_frame().write_parquet(content)
    return content.getvalue()


def load(folder: Path, *, calibrated: bool = True, evaluated: bool = False) -> Recommender:
    """Read what `write` wrote; anything else is an error. A calibration, if there is one, is added to the biases."""
    manifest = _manifest(folder)
    try:
        weights = EVALUATED if evaluated and EVALUATED in manifest["sha256"] else WEIGHTS
        for name in (weights, ITEMS, USERS, HISTORIES, *([EXPOSURE] if EXPOSURE in manifest["sha256"] else [])):
            path = folder / name
            if not path.exists():
                raise UnveilError("a file of the model is missing", where=path, hint=_AGAIN)
            check_file(path, manifest["sha256"][name], _AGAIN)
        recommender = _assembled(folder, manifest, weights)
        if calibrated and not evaluated and ((folder / CALIBRATION).exists() or (folder / CALIBRATION).is_symlink()):
            _add_calibration(recommender, folder / CALIBRATION)
        return recommender
    except (*_DAMAGE, LookupError, TypeError, ValueError, RuntimeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]  # torch lists every tensor, a line each
        raise UnveilError(f"the folder does not hold together: {reason}", where=folder, hint=_AGAIN) from error
    except OSError as error:
        raise UnveilError(f"cannot be read: {error.strerror}", where=error.filename or folder) from error


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        hint = "Name a folder that `unveil train` or `Recommender.save` wrote. A run that was stopped can be resumed."
        raise UnveilError("not the folder of a trained model", where=folder, expected=MANIFEST, hint=hint) from None
    except (ValueError, RecursionError) as error:
        raise UnveilError(f"not JSON: {error}", where=path, hint=_AGAIN) from error
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if found != FORMAT:
        raise UnveilError("not a manifest of this version", where=path, found=found, expected=repr(FORMAT))
    check_seal(manifest, path, _AGAIN)
    return dict(manifest)


def _assembled(folder: Path, manifest: dict[str, Any], weights: str) -> Recommender:
    items, users = (Vocabulary(pl.read_parquet(folder / name)["id"]) for name in (ITEMS, USERS))
    name = str(manifest["model"]["name"])
    kind: type[Model] = Blend if name == Blend.name else BACKBONES[name]
    model = kind(built(kind.Config, manifest["model"]["config"], where=folder / MANIFEST), len(items))
    model.load_state_dict(load_weights(folder / weights))
    length, n_steps = int(manifest["length"]), int(manifest["n_steps"])
    if not 1 <= length <= model.config.length or n_steps < 1:
        raise ValueError(f"{MANIFEST} has {length} tokens per history and {n_steps} steps")
    sequences = Sequences(clock=None, n_items=len(items), n_steps=n_steps, **load_arrays(folder / HISTORIES))
    exposure = None
    if EXPOSURE in manifest["sha256"]:
        with safe_open(folder / EXPOSURE, framework="numpy") as file:
            about = json.loads((file.metadata() or {})["about"])
            arrays = {name: file.get_tensor(name) for name in ("step_S", "theta_SV")}
        exposure = ExposureTable(str(about["name"]), str(about["over"]), **arrays)
        if exposure.theta_SV.shape != (len(exposure.step_S), len(items)) or not len(exposure.step_S):
            raise ValueError(f"{EXPOSURE} is of other items")
    return Recommender(model.eval(), items, users, sequences, length, exposure)


def _add_calibration(recommender: Recommender, path: Path) -> None:
    """f + shift, by the biases of the items; a calibration that is damaged, or of another model, is an error."""
    hint, bias_V = "Calibrate again, or remove the file.", getattr(recommender.model, "bias", None)
    try:
        with safe_open(path, framework="pt") as file:
            shift_V, about = file.get_tensor("shift_V"), file.metadata() or {}
        intact = about["sha256"] == sha256(shift_V.numpy().tobytes()).hexdigest()
    except (SafetensorError, LookupError, OSError, TypeError, ValueError):
        intact = False
    if not intact:
        raise UnveilError("the calibration is damaged", where=path, hint=hint)
    of_this = about.get("model") == model_version(path.parent)
    if not of_this or not isinstance(bias_V, torch.Tensor) or bias_V.shape != shift_V.shape:
        raise UnveilError("made for another model", where=path, hint=hint)
    with torch.no_grad():
        bias_V.add_(shift_V)


def write_calibration(folder: Path, shift_V: NDArray[np.float64], measured: Mapping[str, Any]) -> Path:
    """Save what is to be added to the scores of the model in this folder; where it is."""
    shift = torch.from_numpy((shift_V - shift_V.mean()).astype(np.float32))
    about = {"model": model_version(folder), "sha256": sha256(shift.numpy().tobytes()).hexdigest()}
    write_whole(folder / CALIBRATION, weight_bytes({"shift_V": shift}, about))
    write_json(folder / CALIBRATED, dict(measured))
    return folder / CALIBRATION


def version_of(folder: Path) -> str:
    """The beginning of a hash of the weights, ids and histories, and of the calibration."""
    calibration = folder / CALIBRATION
    return model_version(folder, calibration.read_bytes() if calibration.exists() else b"")


def model_version(folder: Path, more: bytes = b"") -> str:
    """The same without the calibration, but with what else is given."""
    return sha256((folder / MANIFEST).read_bytes() + more).hexdigest()[:12]


def write_dial(folder: Path, points: Sequence[Mapping[str, float]]) -> Path:
    """Save the measured trade-off of novelty, with the version of the model."""
    write_json(folder / DIAL, {"model": version_of(folder), "points": list(points)})
    return folder / DIAL


def read_dial(folder: Path) -> list[dict[str, float]]:
    """The trade-off measured on this version of the model; empty if it was trained again or replaced."""
    try:
        saved = json.loads((folder / DIAL).read_text(encoding="utf-8"))
        points = [{str(name): float(value) for name, value in point.items()} for point in saved["points"]]
        return points if saved["model"] == version_of(folder) else []
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return []
