"""Names that changed since the recordings, from `aliases.toml`."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path


@dataclass(frozen=True)
class Aliases:
    """Old names with what they are now called; what is gone and what is new, each with a reason."""

    files: Mapping[str, str]
    keys: Mapping[str, str]
    values: Mapping[str, str]
    gone: Mapping[str, str]
    added: Mapping[str, str]

    @classmethod
    def read(cls) -> "Aliases":
        return cls(**tomllib.loads(Path(__file__).with_name("aliases.toml").read_text(encoding="utf-8")))

    def file(self, case: str, old: str) -> str:
        """A file's path as it is now."""
        for before, after in _for(self.files, case):
            if old == before or old.endswith(f"/{before}"):
                return old.removesuffix(before) + after
        return old

    def key(self, place: str, old: str) -> str:
        """A key as it is now; brackets of lists stay where they were."""
        wrapped = f"/{old}/"
        for before, after in _for(self.keys, place):
            for brackets in ("", "[]", "[][]"):
                wrapped = wrapped.replace(f"/{before}{brackets}/", f"/{after}{brackets}/")
        return wrapped[1:-1]

    def old_value(self, new: str) -> str:
        """A text of a table as it was."""
        return next((before for before, after in self.values.items() if after == new), new)

    def is_gone(self, place: str, key: str | None = None) -> bool:
        return _listed(self.gone, place, key)

    def is_added(self, place: str, key: str | None = None) -> bool:
        return _listed(self.added, place, key)


def _for(table: Mapping[str, str], place: str) -> Iterator[tuple[str, str]]:
    for name, after in table.items():
        pattern, limited, before = name.rpartition(": ")
        if not limited or fnmatchcase(place, pattern):
            yield before, after


def _listed(patterns: Mapping[str, str], place: str, key: str | None) -> bool:
    for pattern in patterns:
        files, of_a_key, keys = pattern.partition(": ")
        if fnmatchcase(place, files) and (not of_a_key or (key is not None and fnmatchcase(key, keys))):
            return True
    return False
