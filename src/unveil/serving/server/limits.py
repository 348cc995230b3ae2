"""What a server takes on, at most."""

from dataclasses import dataclass, fields

from unveil.errors import UnveilError


@dataclass(frozen=True)
class Limits:
    """Whatever is beyond a limit is answered with a message that names it: 408, 413, 422 or 429."""

    body: int = 1 << 20  # bytes of a request
    history: int = 10_000  # items of a history; also of candidates and exclusions
    k: int = 1_000  # items of a list
    batch: int = 256  # histories of one request
    passes: int = 10_000  # of the model, for the reasons of one request: one for each item that is left out in turn
    concurrent: int = 256  # requests under way or waiting at once
    seconds: float = 10.0  # until a request has arrived, its head and its body each

    def __post_init__(self) -> None:
        for each in fields(self):
            if not getattr(self, each.name) > 0:
                raise UnveilError(
                    "out of range", where=f"limit {each.name}", found=getattr(self, each.name), expected="above 0"
                )
