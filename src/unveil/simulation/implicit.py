"""Worlds behind a log without ratings: which part of what was taken is taste is not in it, and has to be declared.

One model of what is taken, logit ψ_sit from factors, is fitted to the events and drawn negatives, and then split:

    relevance_si = d_si + liked · b_i        exposure_sit = ψ_sit − relevance_si

b_i is how much likelier item i is taken than others, on average over users and steps, and d_si what is left of a user's
mean over the steps after the means of the user and of the item: what is personal and steady. The declaration is
`liked`, the share of an item's popularity that comes of its being liked: 0, all of it is exposure; 1, none is. That
what is personal is taste, and what changes along the steps is exposure, is assumed with it. Shapes: U users, V items,
T steps, K factors.
"""

from collections.abc import Sequence

import numpy as np

from unveil.data.interactions import Interactions
from unveil.errors import UnveilError
from unveil.models.tensor_factorization.recipes import RECIPES
from unveil.propensity.factors import Factors
from unveil.simulation.fit import Fit, Progress, counted, first_steps
from unveil.simulation.fitting.judge import BIASES, judged
from unveil.simulation.fitting.observed import taken
from unveil.simulation.world import World


def implicit_worlds(
    log: Interactions, fit: Fit, liked: Sequence[float], progress: Progress | None = None
) -> list[World]:
    """A world for each declared share; the model of what is taken is fitted once."""
    for share in liked:
        refuse_no_share(share)
    tuples, recipe = taken(log, fit.steps), RECIPES.build(fit.recipe, fit.exposure)
    (_, task), (rng, _) = fit.tasks(tuples), fit.learning()
    advance = counted(recipe.work(task) + BIASES.sweeps * task.size, progress)
    psi, report = judged(recipe, task, rng, advance)
    start_U = first_steps(tuples, fit.real_lengths)
    fitted = {"recipe": fit.recipe, "metric": report.metric, "test": report.recipe.test}
    about = {"kind": "implicit", "log": log.fingerprint()[:16], "taken": fitted}
    return [
        World(
            relevance_logits=(taste := relevance(psi, share)),
            exposure_logits=psi.plus(taste, -1.0),
            users=log.users,
            items=log.items,
            start_U=start_U,
            severity=fit.severity,
            origin={**about, "liked": share},
        )
        for share in liked
    ]


def relevance(psi: Factors, liked: float) -> Factors:
    """d_si + liked · b_i, the same at all steps."""
    P_UK, Q_VK, W_TK = (table.astype(np.float64) for table in (psi.P_UK, psi.Q_VK, psi.W_TK))
    W_K, P_K, Q_K = W_TK.mean(0), P_UK.mean(0), Q_VK.mean(0)
    personal = Factors.of((P_UK - P_K) * W_K, Q_VK - Q_K, np.ones_like(W_TK))
    return personal.biased(item_V=liked * ((Q_VK - Q_K) @ (P_K * W_K)))


def refuse_no_share(share: float, where: str = "liked") -> None:
    """Before any work is done: a declared share is one."""
    if not 0 <= share <= 1:
        expected = "a share between 0 and 1 of popularity that is liking"
        raise UnveilError("out of range", where=where, found=share, expected=expected)
