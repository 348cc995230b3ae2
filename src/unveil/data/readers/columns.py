"""Which of a file's columns plays which role, by the name given or a usual name; and the options for reading."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from unveil.data.interactions import OPTIONAL
from unveil.data.readers.table import UNITS
from unveil.errors import UnveilError

ROLES = ("user", "item", *OPTIONAL)

NONE = "none"  # Chosen for a role that the file's column of that name does not play

#: Names by role, best first; those between two | are equally good. Compared without case, `_`, `-` and spaces.
_NAMES = {
    "user": "userid | user | uid reviewerid visitorid customerid memberid profileid | sid sessionid session",
    "item": "itemid | item | movieid parentasin videoid productid iid trackid songid bookid articleid newsid sku"
    "| asin isbn",
    "time": "timestamp | time | ts timems unixreviewtime unixtime eventtime eventtimestamp createdat | datetime | date",
    "rating": "rating | overall stars score | weight",
    "clicked": "clicked | click isclick | label",
    "exposed": "exposed | isexposed",
    "propensity": "propensity | pscore propensityscore",
    "position": "position | rank",
    "randomised": "isrand | randomised randomized israndom",
    "step": "step | timestep",
}
ALIASES = {role: [rank.split() for rank in names.split("|")] for role, names in _NAMES.items()}


@dataclass(frozen=True)
class ReadOptions:
    """Everything a person may say about a file; what is left out is found by content."""

    format: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)  # role → the file's own column
    time_unit: str | None = None
    encoding: str = "utf-8"
    query: str | None = None

    def __post_init__(self) -> None:
        if self.time_unit is not None and self.time_unit not in UNITS:
            raise UnveilError("unknown time unit", found=self.time_unit, expected=f"one of {', '.join(UNITS)}")
        for role in self.columns:
            if role not in ROLES:
                raise UnveilError("no such column role", found=role, expected=f"one of {', '.join(ROLES)}")


def assign_roles(names: Sequence[str], chosen: Mapping[str, str], where: object) -> dict[str, str]:
    """The name of each role's column: as `chosen`, else by alias. What is not clear is an error."""
    unwanted = {role for role, name in chosen.items() if name == NONE and NONE not in names} - {"user", "item"}
    found: dict[str, str] = {}
    for role in (role for role in chosen if role not in unwanted):
        name = _chosen(names, role, chosen[role], where)
        if name in found.values():
            other = next(other for other in found if found[other] == name)
            raise UnveilError(f"one column cannot be both --{other}-col and --{role}-col", where=where, found=name)
        found[role] = name
    free = [name for name in names if name not in found.values()]
    for role in ROLES:
        if role not in found and role not in unwanted and (alias := _by_alias(free, role, where)) is not None:
            found[role] = alias
    for role in ("user", "item"):
        if role not in found:
            strange = [name for name in names if not is_alias(name)]
            near = _near(canonical(role), strange, f"Perhaps --{role}-col {{!r}}? ", cutoff=0.5)
            expected = f"{canonical(role)!r} or another name that is known"
            hint = f"{near}Name it with --{role}-col, or the file's format with --format."
            raise UnveilError(f"no {role} column among {_listed(names)}", where=where, expected=expected, hint=hint)
    return {role: found[role] for role in ROLES if role in found}


def is_header(names: Sequence[str], chosen: Mapping[str, str]) -> bool:
    """Whether both a user and an item column are among these names."""
    spelt = {plain(name) for name in names}
    return all(
        chosen[role] in names if role in chosen else any(not spelt.isdisjoint(rank) for rank in ALIASES[role])
        for role in ("user", "item")
    )


def canonical(role: str) -> str:
    """The name under which a role is written to files, and the first choice wherever a file has it."""
    return {"user": "user_id", "item": "item_id", "time": "timestamp", "randomised": "is_rand"}.get(role, role)


def is_alias(name: str) -> bool:
    """Whether this is a usual name of some role's column."""
    return any(plain(name) in rank for ranks in ALIASES.values() for rank in ranks)


def item_column(names: Sequence[str]) -> int | None:
    """The place of the ids in a table of items: a name that the log's item column may have, or `id`."""
    first, bare, *others = ALIASES["item"]
    spelt = [plain(name) for name in names]
    ranks = (first, *others[:-1], ["id"], others[-1], bare)
    return next((place for rank in ranks for place, name in enumerate(spelt) if name in rank), None)


def plain(name: str) -> str:
    """The name as names are compared: without case, blanks, _ and -."""
    return re.sub(r"[\s_-]", "", name.casefold())


def _chosen(names: Sequence[str], role: str, name: str, where: object) -> str:
    found = [other for other in names if other == name] or [other for other in names if other.strip() == name.strip()]
    if not found:
        hint = f"{_near(name, names, 'Did you mean {!r}? ')}Name the column with --{role}-col."
        raise UnveilError("no such column", where=where, found=name, expected=f"one of {_listed(names)}", hint=hint)
    _check_different([name] * len(found), where)
    return found[0]


def _by_alias(names: Sequence[str], role: str, where: object) -> str | None:
    if names.count(canonical(role)) == 1:
        return canonical(role)
    for rank in ALIASES[role]:
        found = [name for name in names if plain(name) in rank]
        if len(found) > 1:
            _check_different(found, where)
            problem = f"several columns could be the {role}: {_listed(found)}"
            raise UnveilError(problem, where=where, hint=f"Say which with --{role}-col.")
        if found:
            return found[0]
    return None


def _check_different(names: Sequence[str], where: object) -> None:
    if len(names) > 1 and len(set(names)) == 1:
        hint = "Rename all but one of them."
        raise UnveilError("several columns have the same name", where=where, found=names[0], hint=hint)


def _near(name: str, names: Sequence[str], question: str, cutoff: float = 0.6) -> str:
    return "".join(map(question.format, get_close_matches(name, names, n=1, cutoff=cutoff)))


def _listed(names: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return f"{shown}, … ({len(names)} columns)" if len(names) > most else shown
