"""The worlds of a study: built in, saved, or fitted to a log with ratings; each made once and kept."""

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from unveil.data.filters import Filters
from unveil.data.interactions import Interactions
from unveil.data.readers import convert_first
from unveil.errors import UnveilError
from unveil.experiment.reproduce.study import Study
from unveil.files import atomic_folder
from unveil.runs.workers import OnProgress
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.fit import observed
from unveil.simulation.world import World

BUILTIN = "builtin"
#: What the paper leaves out of a log with ratings: rare items, then short users.
FILTERS = Filters(min_item=5, min_user=5)


@dataclass(frozen=True)
class Source:
    """What worlds are made from, looked at once."""

    data: str
    fingerprint: str
    about: str

    @classmethod
    def of(cls, study: Study) -> "Source":
        """Find the data, or refuse them before any work is done."""
        if study.data == BUILTIN:
            _refuse_too_few(WorldSpec().items, study.negatives)
            return cls(study.data, BUILTIN, "the built-in world")
        folder = Path(study.data)
        if (folder / "world.json").is_file():
            world = World.load(folder)
            _refuse_too_few(world.n_items, study.negatives)
            return cls(study.data, digest(folder), repr(world))
        log = read(study.data)
        observed(log, study.steps)  # refuses what no world can be fitted to
        _refuse_too_few(len(log.items), study.negatives)
        return cls(study.data, log.fingerprint(), f"{log!r}")


def _refuse_too_few(items: int, negatives: int) -> None:
    """A case is ranked against all items but its own at most; a drawn log may show fewer, and no more."""
    if items - 1 < negatives:
        hint = f"Pass --negatives {items - 1} or fewer." if items > 1 else "Use data with more items."
        raise UnveilError("not every case has so many items to be ranked against", found=negatives, hint=hint)


def read(data: str) -> Interactions:
    """The log that worlds are fitted to."""
    with convert_first(data):
        return FILTERS(Interactions.read(data))


def digest(folder: Path) -> str:
    """What tells a saved world from others."""
    found = sha256()
    for name in ("world.json", "ids.json", "factors.safetensors"):
        found.update((folder / name).read_bytes())
    return found.hexdigest()


def place(folder: Path, number: int) -> Path:
    """Where a world of a run is kept."""
    return folder / "worlds" / f"{number:02d}"


@dataclass(frozen=True)
class WorldJob:
    """Make a world and keep it; the result is its description."""

    study: Study
    folder: Path
    number: int

    @property
    def key(self) -> str:
        """The world's number."""
        return f"w{self.number}"

    @property
    def cost(self) -> float:
        """Worlds are alike."""
        return 1.0

    def run(self, tell: OnProgress) -> Mapping[str, Any]:
        """Make, save, describe."""
        world = make(self.study, self.number, tell)
        world.save(place(self.folder, self.number), overwrite=True)
        return {"world": self.number, "origin": world.origin, "description": asdict(world.describe())}


def make(study: Study, number: int, tell: OnProgress) -> World:
    """The world of that number; its seed counts on from the study's."""
    seed = study.seed + number
    if study.data == BUILTIN:
        return World.builtin(seed=seed)
    if (Path(study.data) / "world.json").is_file():
        return World.load(Path(study.data))
    log = read(study.data)
    return World.fit(log, steps=study.steps, recipe=study.fit, seed=seed, progress=lambda n, of: tell(n / of))


def ratings_noise(world: World) -> float:
    """How far the ratings of a drawn log are from r̂: as far as the fit's prediction was from ratings it had not seen.

    Of a world that was not fitted to ratings, a rating's width.
    """
    if world.origin.get("kind") != "fitted":
        return 1.0
    return float(np.sqrt(world.origin["relevance"]["recipe"]["test"]))


def adopt(other: Path, folder: Path, worlds: int) -> None:
    """Take over the worlds that another run has made: its cells and the new ones are then of the same."""
    for number in range(worlds):
        there, here = place(other, number), place(folder, number)
        if (there / "world.json").is_file() and not here.exists():
            with atomic_folder(here) as draft:
                shutil.copytree(there, draft, dirs_exist_ok=True)


def refuse_more_than_one(study: Study, worlds: int) -> None:
    """A saved world is the only one of its kind."""
    if worlds > 1 and (Path(study.data) / "world.json").is_file():
        hint = "Name the log that it was fitted to, or ask for one world."
        raise UnveilError("a saved world is one world", where=study.data, found=f"{worlds} worlds", hint=hint)
