"""Does a log fit a world, and which part of the world does it show. Shapes: U users, V items, M events looked at."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unveil.data.interactions import Interactions
from unveil.data.vocabulary import UNKNOWN
from unveil.errors import UnveilError
from unveil.propensity.factors import Indices

if TYPE_CHECKING:
    from unveil.simulation.world import World

#: Events whose propensities are looked at: enough to tell worlds of the same size apart.
_SOME = 1000


def aligned(world: "World", log: Interactions) -> "World":
    """The world of the log's users and items only, in the log's own dense indices; another world's log is refused."""
    user_U, item_V = world.users.index(log.users.ids), world.items.index(log.items.ids)
    for name, index, ids in (("user", user_U, log.users.ids), ("item", item_V, log.items.ids)):
        if (index == UNKNOWN).any():
            raise _does_not_fit(f"its {name} {ids[int(index.argmin())]!r} is not in the world")
    _refuse_other_steps(world, log)
    _refuse_other_exposure(world, log, user_U, item_V)
    return replace(
        world,
        relevance_logits=world.relevance_logits.of_only(user_U, item_V),
        exposure_logits=world.exposure_logits.of_only(user_U, item_V),
        users=log.users,
        items=log.items,
        start_U=world.start_U[user_U],
    )


def _refuse_other_steps(world: "World", log: Interactions) -> None:
    if log.step is None:
        raise _does_not_fit("it does not say at which step of the world its events were")
    if len(log) and int(log.step.max()) >= world.n_steps:
        raise _does_not_fit(f"it has a step {int(log.step.max())}, and the world's last is {world.n_steps - 1}")


def _refuse_other_exposure(world: "World", log: Interactions, user_U: Indices, item_V: Indices) -> None:
    """A log drawn from a world carries its propensities."""
    if log.propensity is None or log.step is None:
        return
    some = slice(0, _SOME)
    logged_M = log.propensity[some]
    theta_M = world.exposure_of(user_U[log.user[some]], item_V[log.item[some]], log.step[some]).astype(np.float64)
    if np.allclose(theta_M, logged_M, rtol=1e-3, atol=1e-9):
        return
    ratio = _ratio_of_severities(theta_M, logged_M)
    if ratio is None:
        raise _does_not_fit("its propensities are not the exposure of this world")
    raise _does_not_fit(f"it was drawn at severity {world.severity * ratio:.4g}, and the world has {world.severity:g}")


def _ratio_of_severities(theta_M: NDArray[np.float64], logged_M: NDArray[np.float64]) -> float | None:
    """What the severity is to be multiplied by to give the logged propensities, if anything is: log θ ∝ p."""
    inside_M = (np.minimum(theta_M, logged_M) > 1e-30) & (np.maximum(theta_M, logged_M) < 1 - 1e-6)
    if not inside_M.any():
        return None
    ratio = float(np.median(np.log(logged_M[inside_M]) / np.log(theta_M[inside_M])))
    return ratio if np.allclose(theta_M**ratio, logged_M, rtol=1e-2, atol=1e-9) else None


def _does_not_fit(why: str) -> UnveilError:
    hint = "Name the world that the log was drawn from; `unveil world draw` keeps it with --save-world DIR."
    return UnveilError(f"the log does not fit the world: {why}", hint=hint)
