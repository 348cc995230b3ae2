"""A learnt exposure as a folder: `exposure.json` (what it is and how good), `ids.json`, `factors.safetensors`."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as as_bytes

from unveil.data.vocabulary import Vocabulary
from unveil.errors import UnveilError
from unveil.propensity.impressions.model import ExposureModel

FORMAT = "unveil exposure 1"
ABOUT, IDS, FACTORS = "exposure.json", "ids.json", "factors.safetensors"
_TABLES = ("P_UK", "Q_VK", "W_HK", "recent_DV", "steady_DV", "curve_B2")
_HINT = "Name a folder that `unveil propensity fit` wrote."


def write(model: ExposureModel, folder: Path, about: Mapping[str, Any]) -> None:
    """Into a folder that is there; `about` is told beside what the model needs."""
    ids = {"users": model.users.ids.to_list(), "items": model.items.ids.to_list()}
    parts = {
        IDS: json.dumps(ids, ensure_ascii=False).encode(),
        FACTORS: as_bytes({name: getattr(model, name) for name in _TABLES}),
    }
    told = {
        "format": FORMAT,
        "line": list(model.line),
        "first_day": model.first_day,
        "parts": {name: sha256(part).hexdigest() for name, part in parts.items()},
        **about,
    }
    for name, part in parts.items():
        (folder / name).write_bytes(part)
    (folder / ABOUT).write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def about(folder: Path) -> dict[str, Any]:
    """What the folder says of itself."""
    try:
        told = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise UnveilError(
            "not a learnt exposure", where=folder, expected=f"a folder with {ABOUT}", hint=_HINT
        ) from None
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise UnveilError("not a learnt exposure of this version", where=folder, expected=FORMAT, hint=_HINT)
    return told


def load(folder: Path) -> ExposureModel:
    """Read what `write` wrote; a part that was changed or damaged is refused."""
    told = about(folder)
    try:
        parts = {name: (folder / name).read_bytes() for name in (IDS, FACTORS)}
        if any(told["parts"][name] != sha256(part).hexdigest() for name, part in parts.items()):
            raise UnveilError("not as it was written: changed or damaged", where=folder, hint=_HINT)
        ids, tables = json.loads(parts[IDS]), from_bytes(parts[FACTORS])
        return ExposureModel(
            Vocabulary(ids["users"]),
            Vocabulary(ids["items"]),
            **{name: tables[name] for name in _TABLES},
            line=(told["line"][0], told["line"][1], told["line"][2]),
            first_day=int(told["first_day"]),
        )
    except (OSError, ValueError, KeyError, TypeError, IndexError, SafetensorError) as error:
        raise UnveilError(f"a damaged exposure ({error})", where=folder, hint=_HINT) from None
