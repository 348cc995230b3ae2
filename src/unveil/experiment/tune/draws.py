"""Which settings each trial has, by its number and the seed alone: no matter who works, and in which order."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import numpy as np

from unveil.errors import UnveilError
from unveil.experiment.tune.space import Settings, Space

#: Finite spaces up to this size are drawn from without repetition.
_LISTED = 100_000
#: Combinations in a row that no model can have, before we say that there are no others.
_TRIES = 1000

Valid = Callable[[Settings], bool]


def random_settings(space: Space, count: int, seed: int, valid: Valid) -> list[Settings]:
    """So many combinations at random, those that no model can have drawn anew.

    No combination of a finite space is drawn twice; where it has fewer than asked for, all of them are given.
    """
    rng = np.random.default_rng([seed, 0])
    if space.size is not None and space.size <= _LISTED:
        cells = list(space.combinations())
        drawn: Iterable[Settings] = (cells[place] for place in rng.permutation(len(cells)))
        found = list(islice(filter(valid, drawn), count))
    else:
        found = list(islice(_endless(space, rng, valid), count))
    return _some(found, space)


def grid_settings(space: Space, count: int | None, valid: Valid) -> list[Settings]:
    """Every combination that a model can have, in the order of the space."""
    if not space.finite:
        ranges = ", ".join(name for name, each in space.dimensions.items() if not hasattr(each, "values"))
        hint = "List the values to try, or use --sampler random or tpe."
        raise UnveilError("a grid needs lists of values", where=f"space {space.name}", found=ranges, hint=hint)
    cells = _some([each for each in space.combinations() if valid(each)], space)
    if count is not None and count < len(cells):
        hint = f"Leave --trials out to try all; --sampler random tries {count} of them."
        raise UnveilError("the grid has more combinations than trials", found=f"{len(cells):,} combinations", hint=hint)
    return cells


def _endless(space: Space, rng: np.random.Generator, valid: Valid) -> Iterator[Settings]:
    missed = 0
    while missed < _TRIES:
        drawn = space.draw(rng)
        missed = 0 if valid(drawn) else missed + 1
        if not missed:
            yield drawn


def _some(found: list[Settings], space: Space) -> list[Settings]:
    if not found:
        raise UnveilError("no model can have any of these combinations", where=f"space {space.name}")
    return found
