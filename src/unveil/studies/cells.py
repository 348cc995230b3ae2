"""The cells of a study: done once, kept as they come, and never done again.

run.json         what the cells depend on; a folder is used again only for the same
cells/KEY.json   the result of a cell, whole or not there
errors/KEY.txt   the traceback of a cell that failed, where that is not the user's doing
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unveil.checksums import SEAL, check_seal, sealed
from unveil.errors import UnveilError
from unveil.estimators.base import ESTIMATORS
from unveil.files import is_empty, write_whole
from unveil.runs.progress import Watcher
from unveil.runs.workers import Done, Engine, Failed, Job
from unveil.training.checkpoint import differences

ABOUT = "run.json"
#: In every result that is kept: how long it took.
SECONDS = "seconds"
Identity = Mapping[str, Any]
#: Reasons, and cells of each, that one message names.
_NAMED = 3


@dataclass(frozen=True)
class Store:
    """A folder of one study. Folders that agree in `cells` of the `identity`, `defaults` filled in, may share them."""

    folder: Path
    identity: Identity
    defaults: Identity = field(default_factory=dict)

    def open(self) -> None:
        path = self.folder / ABOUT
        if path.is_file():
            self._check_identity(path)
        elif self.folder.is_dir() and not is_empty(self.folder):
            hint = "Name a new folder, or one that such a run was begun in."
            raise UnveilError("the output folder holds something else", where=self.folder, hint=hint)
        else:
            write_whole(path, json.dumps(self.identity, indent=1, ensure_ascii=False) + "\n")

    def _check_identity(self, path: Path) -> None:
        every = differences(self._in_full(_read(path)), self._in_full(self.identity))
        found = [each for each in every if each[0] == "question"] or every
        if found:
            name, before, _ = found[0]
            add = f" with --set model.name={before}" if name.endswith("model.name") else ""
            changes = [f"{each} was {_short(old)} and is now {_short(new)}" for each, old, new in found[:3]]
            raise UnveilError(
                f"the folder belongs to another run: {'; '.join(changes)}{' and more' if len(found) > 3 else ''}",
                where=self.folder,
                hint=f"Name another folder, or repeat the command that began this one{add}.",
            )

    def _in_full(self, identity: Identity) -> Identity:
        cells = identity.get("cells")
        return {**identity, "cells": {**self.defaults, **cells}} if isinstance(cells, Mapping) else identity

    def result(self, key: str) -> dict[str, Any] | None:
        """The result of a cell that is done, perhaps under an older name. A damaged file counts as none."""
        for spelling in (key, *ESTIMATORS.older_spellings(key)):
            with suppress(FileNotFoundError, ValueError, TypeError, RecursionError, UnveilError):
                result = dict(json.loads((path := self._path(spelling)).read_text(encoding="utf-8")))
                check_seal(result, path)
                result.pop(SEAL, None)
                if SECONDS in result:
                    return result
        return None

    def keep(self, key: str, result: Mapping[str, Any]) -> None:
        write_whole(self._path(key), json.dumps(sealed(result), ensure_ascii=False, allow_nan=False) + "\n")
        (self.folder / "errors" / f"{key}.txt").unlink(missing_ok=True)

    def remove(self, key: str) -> None:
        self._path(key).unlink(missing_ok=True)

    def compatible(self, other: Path) -> "Store":
        if not (other / ABOUT).is_file():
            raise UnveilError("there are no cells to copy", where=other, expected=f"a folder with a {ABOUT}")
        source = Store(other, {**_read(other / ABOUT), "cells": self.identity["cells"]}, self.defaults)
        source._check_identity(other / ABOUT)
        return source

    def copy_from(self, other: Path, keys: Mapping[str, Sequence[str]]) -> int:
        """Copy what is missing here from another folder: `keys` maps a cell's key here to those it may have there."""
        source, missing = self.compatible(other), [key for key in keys if self.result(key) is None]
        found = {key: result for key in missing for there in keys[key] if (result := source.result(there)) is not None}
        for key, result in found.items():
            self.keep(key, result)
        return len(found)

    def _path(self, key: str) -> Path:
        return self.folder / "cells" / f"{key}.json"


class Interrupted(KeyboardInterrupt):
    """The work was stopped; what is done is kept."""

    def __init__(self, done: int, total: int, what: str = "cells") -> None:
        self.done, self.total = done, total
        super().__init__(f"stopped; {done} of {total} {what} are done and kept")


def run_cells(
    jobs: Sequence[Job], store: Store, engine: Engine, watch: Watcher, *, what: str = "cells"
) -> dict[str, dict[str, Any]]:
    """The results of all jobs by key, in the order of the jobs. What was done before is not done again."""
    left = [job for job in jobs if store.result(job.key) is None]
    if left:
        _run(left, len(jobs), store, engine, watch, what)
    return {job.key: result for job in jobs if (result := store.result(job.key)) is not None}


def _run(left: Sequence[Job], total: int, store: Store, engine: Engine, watch: Watcher, what: str) -> None:
    failures: list[Failed] = []
    done = total - len(left)
    watch.start(left, total, what)
    events = engine.run(left)
    try:
        for event in events:
            if isinstance(event, Done):
                store.keep(event.key, {**event.result, SECONDS: round(event.seconds, 3)})
                done += 1
            elif isinstance(event, Failed):
                failures.append(event)
            watch.event(event)
    except KeyboardInterrupt:
        raise Interrupted(done, total, what) from None
    finally:
        if (close := getattr(events, "close", None)) is not None:
            close()  # stops the workers now, not when the iterator happens to be collected
        watch.stop()
    if failures:
        raise _failure(failures, f"{total} {what}", store)


def _failure(failures: Sequence[Failed], total: str, store: Store) -> UnveilError:
    reasons: dict[str, list[str]] = {}
    for each in failures:
        reasons.setdefault(each.why.rstrip("."), []).append(each.key)
    folder, seen = store.folder / "errors", [each for each in failures if each.detail]
    for each in seen:
        write_whole(folder / f"{each.key}.txt", each.detail)
    said = [f"{', '.join(keys[:_NAMED])}{' …' if len(keys) > _NAMED else ''}: {why}" for why, keys in reasons.items()]
    return UnveilError(
        f"{len(failures)} of {total} failed: {'; '.join(said[:_NAMED])}{'; …' if len(said) > _NAMED else ''}",
        where=store.folder,
        hint=f"{f'See {folder}. ' if seen else ''}What is done is kept: the same command tries these again.",
    )


def _short(value: str) -> str:
    return f"{value[:8]}…" if re.fullmatch(r"[0-9a-f]{64}", value) else value  # a fingerprint by its beginning


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, RecursionError, OSError) as error:
        hint = "Name a new folder; where this one's file can be had again, put it back, and the run goes on."
        raise UnveilError(f"cannot be read: {error}", where=path, hint=hint) from None
