"""The models that are being served, by name. A new version takes the place of the old one between two requests.

A request looks its model up once and keeps it to the end, so that nothing under way is dropped. What cannot be loaded
is refused, and the old version stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from unveil.errors import UnveilError, unknown
from unveil.serving.embeddings import network_of
from unveil.serving.export import servable
from unveil.serving.folder import DIAL, EXPOSURE, HISTORIES, ITEMS, MANIFEST, USERS, WEIGHTS, read_dial, version_of
from unveil.serving.recommender import Recommender
from unveil.serving.server.served import Beside, Served

Signature = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Outcome:
    """What came of looking at a folder again."""

    name: str
    version: str
    changed: bool = False
    refused: str | None = None


@dataclass
class Shelf:
    """`models` is replaced whole, never changed: whoever reads it sees one state or the next."""

    beside: Beside = field(default_factory=Beside)
    models: dict[str, Served] = field(default_factory=dict)
    _seen: dict[str, Signature] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def add(self, folders: Sequence[Path]) -> None:
        """Load the first versions; what is wrong with one is an error here."""
        for name, folder in zip(_names(folders), folders, strict=True):
            self._seen[name] = signature(folder)
            self.models = {**self.models, name: load(name, folder, self.beside)}

    def refuse_untitled(self) -> None:
        """Titles of which none is an item's are of another log, or of other ids."""
        titles = self.beside.titles
        if titles and not any(raw in titles for served in self.models.values() for raw in served.ids):
            ids = next(iter(self.models.values())).ids
            raise UnveilError(
                "none of the models' items has a title",
                found=f"items such as {', '.join(ids[:3])}",
                expected=f"ids such as {', '.join(list(titles)[:3])}",
                hint="Where the log was renumbered, give the pairs of ids with --title-ids.",
            )

    def model(self, name: str | None) -> Served:
        """The model of that name, or the first."""
        models = self.models
        if name is None:
            return next(iter(models.values()))
        if name not in models:
            raise unknown("model", name, models)
        return models[name]

    def reload(self, *, force: bool = False) -> list[Outcome]:
        """Look at every folder again; with `force`, load it whether its files have changed or not."""
        with self._lock:
            return [self._reloaded(served, force=force) for served in list(self.models.values())]

    def _reloaded(self, old: Served, *, force: bool) -> Outcome:
        now = signature(old.folder)
        if now == self._seen[old.name] and not force:
            return Outcome(old.name, old.version)
        self._seen[old.name] = now  # a folder that is refused is not tried again until it changes again
        try:
            new = load(old.name, old.folder, self.beside)
        except Exception as error:  # whatever is wrong with a folder, the old version stays, and so do the others
            told = str(error) if isinstance(error, UnveilError) else repr(error)
            return Outcome(old.name, old.version, refused=told)
        self.models = {**self.models, old.name: new}
        return Outcome(new.name, new.version, changed=new.version != old.version)


def load(name: str, folder: Path, beside: Beside) -> Served:
    """Read a folder, turn its network into ONNX where it can be, hold that against torch, and ask it once."""
    recommender = Recommender.load(folder)
    network = network_of(recommender).name
    served = Served(name, folder, version_of(folder), network, servable(recommender), beside, read_dial(folder))
    served.warm()
    return served


def signature(folder: Path) -> Signature:
    """When the files of a model were last changed, how large they are, and which files they are."""
    return tuple(_stat(folder / name) for name in (MANIFEST, WEIGHTS, ITEMS, USERS, HISTORIES, EXPOSURE, DIAL))


def _stat(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return found.st_mtime_ns, found.st_size, found.st_ino


def _names(folders: Sequence[Path]) -> list[str]:
    """The folders' own names, told apart by a number where two are alike."""
    names: list[str] = []
    for folder in folders:
        name, number = folder.resolve().name, 2
        while name in names:
            name, number = f"{folder.resolve().name}-{number}", number + 1
        names.append(name)
    return names
