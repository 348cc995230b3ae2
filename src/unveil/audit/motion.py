"""How popularity moves: along users' histories, and along the calendar. Is one number an item enough?

Shapes: N events, V items, P periods.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.audit.depletion import against_depletion, expected_means
from unveil.audit.family import Family
from unveil.audit.heads import PERIODS, Heads, counts, heads
from unveil.audit.takes import laid_out, some_users
from unveil.audit.timing import Floats, Timing, positions, timing
from unveil.data.sequences import Sequences, offsets

#: Whole histories of users drawn at random are tested where the log has more events: enough to see any motion.
MOST_EVENTS = 5_000_000
#: Orders drawn by static propensities: so many events in all, between one order and fifty.
_DRAWN_EVENTS, _MOST_DRAWS = 10_000_000, 50
#: Items whose share is followed from period to period.
MOVERS = 4


@dataclass(frozen=True)
class Tested:
    """How many items differ from a null at 5%, corrected for their number."""

    items: int  # with ten events or more
    holm: int  # hardly one of them by chance
    fdr: int  # at most one in twenty of them by chance

    @property
    def share(self) -> float:
        """Of the tested items, by Holm's correction."""
        return self.holm / self.items if self.items else 0.0


@dataclass(frozen=True)
class Mover:
    """An item that moves: its share of what is taken, period by period."""

    item: int
    events: int
    z: float  # of its mean place: below 0 early, above 0 late
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Motion:
    """What was found along one clock."""

    events: int  # that were looked at: first takes, of a random part of the users where there are very many
    periods: int
    random_order: Tested  # against every order being equally likely
    static: Tested | None  # against a static propensity and nothing taken twice; None where it does not apply
    dispersion: float  # mean z² of the items' mean places: 1 by chance
    typical_shift: float  # of the items' mean places from the middle, chance taken out
    heads: Heads
    movers: tuple[Mover, ...]

    @property
    def rejecting(self) -> Tested:
        """The test that answers whether a static propensity is enough."""
        return self.static if self.static is not None else self.random_order


def along_histories(takes: Sequences, rng: np.random.Generator) -> Motion | None:
    """By place in the history; events of one moment share their places. None where no item can be tested."""
    part = some_users(takes, MOST_EVENTS, rng)
    u_N = positions(part, tied=True)
    found = timing(part, u_N)
    if not found.tested_V.any():
        return None
    draws = int(np.clip(_DRAWN_EVENTS // len(part), 1, _MOST_DRAWS))
    expected_V = expected_means(part, u_N, draws, rng)
    return _motion(part, u_N, found, _static(found, expected_V, draws), rng)


def along_calendar(takes: Sequences, rng: np.random.Generator) -> Motion | None:
    """By the calendar: all events of all users as one history. None without a clock that moves, or items to test."""
    whole = _one_history(some_users(takes, MOST_EVENTS, rng))
    if whole is None:
        return None
    u_N = positions(whole, tied=True)
    found = timing(whole, u_N)
    return _motion(whole, u_N, found, None, rng) if found.tested_V.any() else None


def _one_history(takes: Sequences) -> Sequences | None:
    time_N = takes.time_N
    if time_N is None or not len(time_N) or time_N.min() == time_N.max():
        return None
    return laid_out(takes, np.argsort(time_N, kind="stable"), offsets(np.array([len(takes)])))


def _static(found: Timing, expected_V: Floats, draws: int) -> Family:
    return Family.of(*against_depletion(found, expected_V, draws), found.tested_V)


def _motion(
    sequences: Sequences, u_N: Floats, found: Timing, static: Family | None, rng: np.random.Generator
) -> Motion:
    period_N = np.minimum((u_N * PERIODS).astype(np.int8), PERIODS - 1)
    count_VP = counts(sequences.item_N, period_N, sequences.n_items)
    dealt_VP = counts(sequences.item_N, rng.permutation(period_N), sequences.n_items)
    order = Family.of(found.z_V, found.p_V, found.tested_V)
    return Motion(
        len(sequences),
        PERIODS,
        _tested(order),
        None if static is None else _tested(static),
        found.dispersion,
        found.typical_shift,
        heads(count_VP, dealt_VP),
        _movers(order if static is None else static, found, count_VP),
    )


def _tested(family: Family) -> Tested:
    return Tested(family.tested, family.certain, family.discovered)


def _movers(family: Family, found: Timing, count_VP: NDArray[Any]) -> tuple[Mover, ...]:
    """The items furthest from the null to either side, by turns, of those that differ by Holm's correction."""
    early, late = (family.most(sign, MOVERS // 2) for sign in (-1, 1))
    share_VP = count_VP / np.maximum(count_VP.sum(0), 1)
    return tuple(
        Mover(item, int(found.count_V[item]), float(family.z_V[item]), tuple(share_VP[item].tolist()))
        for item in (*early, *late)
    )
