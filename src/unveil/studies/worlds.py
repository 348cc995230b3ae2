"""The worlds of semi-synthetic studies: built in, saved, or fitted to a log with ratings; each made once and kept."""

import shutil
from hashlib import sha256
from pathlib import Path

import numpy as np

from unveil.data.filters import Filters
from unveil.data.interactions import Interactions
from unveil.data.readers import convert_first
from unveil.errors import UnveilError
from unveil.files import atomic_folder
from unveil.runs.workers import OnProgress
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.fit import observed
from unveil.simulation.world import World
from unveil.studies.arms import check_negatives
from unveil.studies.engine import Source

BUILTIN = "builtin"
#: What the paper leaves out of a log with ratings: rare items, then short users.
FILTERS = Filters(min_item=5, min_user=5)


def world_source(data: str, *, steps: int, negatives: int, worlds: int = 1) -> Source:
    """Find what worlds are made from, or raise an error before any work is done.

    A case is ranked against all items but its own at most; a drawn log may show fewer, and no more.
    """
    if data == BUILTIN:
        check_negatives(negatives, WorldSpec().items - 1)
        return Source(data, BUILTIN, "the built-in world")
    if is_world(data):
        if worlds > 1:
            hint = "Name the log that it was fitted to, or ask for one world."
            raise UnveilError("a saved world is one world", where=data, found=f"{worlds} worlds", hint=hint)
        world = World.load(Path(data))
        check_negatives(negatives, world.n_items - 1)
        return Source(data, digest(Path(data)), repr(world))
    log = read_log(data)
    observed(log, steps)  # raises where no world can be fitted
    check_negatives(negatives, len(log.items) - 1)
    return Source(data, log.fingerprint(), f"{log!r}")


def is_world(data: str | Path) -> bool:
    """Whether the data are a saved world."""
    return (Path(data) / "world.json").is_file()


def read_log(data: str) -> Interactions:
    """The log that worlds are fitted to."""
    with convert_first(data):
        return FILTERS(Interactions.read(data))


def digest(folder: Path) -> str:
    """A hash that identifies a saved world."""
    found = sha256()
    for name in ("world.json", "ids.json", "factors.safetensors"):
        found.update((folder / name).read_bytes())
    return found.hexdigest()


def world_folder(folder: Path, number: int) -> Path:
    """Where a world of a study is kept."""
    return folder / "worlds" / f"{number:02d}"


def make_world(data: str, *, steps: int, fit: str, seed: int, on_progress: OnProgress) -> World:
    """Draw, load or fit one world."""
    if data == BUILTIN:
        return World.builtin(seed=seed)
    if is_world(data):
        return World.load(Path(data))
    return World.fit(read_log(data), steps=steps, recipe=fit, seed=seed, progress=lambda n, of: on_progress(n / of))


def ratings_noise(world: World) -> float:
    """How far the ratings of a drawn log are from r̂: as far as the fit's prediction was from ratings it had not seen.

    Of a world that was not fitted to ratings, a rating's width.
    """
    if world.origin.get("kind") != "fitted":
        return 1.0
    return float(np.sqrt(world.origin["relevance"]["recipe"]["test"]))


def copy_worlds(other: Path, folder: Path, worlds: int) -> None:
    """Copy the worlds that another study has made: its cells and the new ones are then of the same."""
    for number in range(worlds):
        there, here = world_folder(other, number), world_folder(folder, number)
        if is_world(there) and not here.exists():
            with atomic_folder(here) as draft:
                shutil.copytree(there, draft, dirs_exist_ok=True)
