"""How a log is to be read, where its content does not say so itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from unveil.data.sources.columns import ROLES
from unveil.data.sources.times import UNITS
from unveil.errors import UnveilError


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
