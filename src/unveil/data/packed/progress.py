"""How far packing has come: stages of known weight, told as parts of a thousand."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

Tell = Callable[[int, int], None]
A = TypeVar("A")

#: Share of the time that each stage takes; measured on 100 million events.
STAGES = {"judge": 5, "ingest": 55, "leave out": 30, "lay out": 30, "hash": 10}
_WHOLE = 1000


class Progress:
    """One line of progress through several stages."""

    def __init__(self, tell: Tell | None, stages: Iterable[str]) -> None:
        self._tell, self._done = tell or (lambda done, whole: None), 0.0
        chosen = {name: STAGES[name] for name in stages}
        self._share: Mapping[str, float] = {name: weight / sum(chosen.values()) for name, weight in chosen.items()}

    def through(self, stage: str, steps: Iterable[A], total: float, size: Callable[[A], float]) -> Iterator[A]:
        """Go through the steps of a stage, each of which is `size` of its `total`."""
        begun, done = self._done, 0.0
        for step in steps:
            yield step
            done += size(step)
            self._at(begun + self._share[stage] * min(1.0, done / total))
        self._at(begun + self._share[stage])

    def finish(self) -> None:
        """All is done, stages that there was no need for included."""
        self._at(1.0)

    def _at(self, done: float) -> None:
        self._done = done
        self._tell(min(_WHOLE, int(_WHOLE * done)), _WHOLE)
