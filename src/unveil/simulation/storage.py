"""A world as a folder: `world.json` (what it is), `ids.json` (its users and items), `factors.safetensors`.

`world.json` also holds a hash of the other parts: numbers that were changed or damaged would else be a truth unnoticed.
"""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file
from safetensors.numpy import save as as_bytes

from unveil.data.vocabulary import Vocabulary
from unveil.errors import UnveilError
from unveil.files import atomic_folder
from unveil.propensity.factors import Factors
from unveil.simulation.world import World

_FORMAT = "unveil world 1"
_ABOUT, _IDS, _FACTORS = "world.json", "ids.json", "factors.safetensors"
_HINT = "Name a folder that unveil wrote as a world, or draw the world again."


def save(world: World, folder: Path, *, overwrite: bool = False) -> None:
    """Write the world whole or not at all."""
    ids = {"users": world.users.ids.to_list(), "items": world.items.ids.to_list()}
    parts = {_IDS: json.dumps(ids).encode(), _FACTORS: as_bytes(_tables(world))}
    about = {
        "format": _FORMAT,
        "severity": world.severity,
        "origin": world.origin,
        "parts": {name: sha256(part).hexdigest() for name, part in parts.items()},
    }
    with atomic_folder(folder, overwrite=overwrite) as draft:
        (draft / _ABOUT).write_text(json.dumps(about, indent=2) + "\n")
        for name, part in parts.items():
            (draft / name).write_bytes(part)


def load(folder: Path) -> World:
    """Read a world folder; anything else is refused with the reason."""
    if not (folder / _ABOUT).is_file():
        raise UnveilError("not a world", where=folder, expected=f"a folder with a {_ABOUT}", hint=_HINT)
    about = _json(folder / _ABOUT)
    if about.get("format") != _FORMAT:
        expected = f"the format {_FORMAT!r}"
        found = about.get("format")
        raise UnveilError("not a world this version can read", where=folder / _ABOUT, found=found, expected=expected)
    ids, tables = _json(folder / _IDS), _read_tables(folder / _FACTORS)
    _refuse_changed(folder, about)
    try:
        return World(
            relevance_logits=_factors(tables, "relevance"),
            exposure_logits=_factors(tables, "exposure"),
            users=Vocabulary(ids["users"]),
            items=Vocabulary(ids["items"]),
            start_U=tables["start_U"],
            severity=float(about["severity"]),
            origin=_origin(about["origin"]),
        )
    except UnveilError as error:
        where = folder / _ABOUT
        raise UnveilError(error.problem, where=where, found=error.found, expected=error.expected, hint=_HINT) from error
    except (KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
        raise UnveilError(f"a damaged world ({error})", where=folder, hint=_HINT) from error


def _refuse_changed(folder: Path, about: dict[str, Any]) -> None:
    parts = about.get("parts")
    for name in (_IDS, _FACTORS):
        digest = sha256((folder / name).read_bytes()).hexdigest()
        if not isinstance(parts, dict) or parts.get(name) != digest:
            raise UnveilError("not as it was written: changed or damaged", where=folder / name, hint=_HINT)


def _origin(found: Any) -> dict[str, Any]:
    origin = dict(found)
    if not isinstance(origin.get("foresight", 0.0), int | float):
        raise ValueError("its foresight is not a number")
    return origin


def _tables(world: World) -> dict[str, NDArray[Any]]:
    sides = {"relevance": world.relevance_logits, "exposure": world.exposure_logits}
    factors = {
        f"{name}.{side}": getattr(table, side) for name, table in sides.items() for side in ("P_UK", "Q_VK", "W_TK")
    }
    return {**factors, "start_U": world.start_U}


def _factors(tables: dict[str, NDArray[Any]], name: str) -> Factors:
    return Factors.of(tables[f"{name}.P_UK"], tables[f"{name}.Q_VK"], tables[f"{name}.W_TK"])


def _read_tables(path: Path) -> dict[str, NDArray[Any]]:
    try:
        tables: dict[str, NDArray[Any]] = load_file(path)
    except (OSError, SafetensorError) as error:
        raise UnveilError(f"the factors of the world cannot be read ({error})", where=path, hint=_HINT) from error
    if not all(np.isfinite(table).all() for table in tables.values()):
        raise UnveilError("the factors of the world are not all numbers", where=path, hint=_HINT)
    return tables


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise UnveilError(f"a part of the world cannot be read ({error})", where=path, hint=_HINT) from error
    if not isinstance(content, dict):
        raise UnveilError("a part of the world is not as written", where=path, expected="a JSON object", hint=_HINT)
    return content
