"""A world fitted to a log (section 5.1, steps 1 to 4): γ = σ(r̂ − centre) from ratings, θ = σ(ψ)^p from events.

Shapes: N tuples, U users, V items, T steps, K factors.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.data.interactions import Interactions, Sequences
from unveil.errors import UnveilError, check_range, check_ranges
from unveil.models.tensor_factorization.gibbs import Gibbs
from unveil.models.tensor_factorization.recipes import RECIPES, Advance, FittedFactors, Recipe
from unveil.models.tensor_factorization.task import Negatives, Parts, Task, Tuples, split
from unveil.propensity.factors import Factors
from unveil.settings import changed, flattened, read_toml, toml_value
from unveil.simulation.generate import Progress
from unveil.simulation.world import World

_WITHOUT = (
    "Use a log with ratings, or name their column with --rating-col (`unveil world fit` takes it, `unveil reproduce "
    "--data` that world). The built-in world and `unveil demo` need none."
)
#: The bias-only model: the posterior mean of b_s + c_i + a_t, with spreads that are learnt.
BIASES = Gibbs(width=0, sweeps=24, burn_in=8)
_PARTS = ("relevance", "exposure")
#: Settings that both parts of a world share, and that decide which tuples are for test and how parts are learnt.
_SHARED = ("recipe", "steps", "seed", "negatives", "redraw")
#: Settings of the world that the parts are put together to.
_WHOLE = ("centre", "real_lengths", "severity")


def observed(log: Interactions, steps: int) -> Tuples:
    """Each user's last `steps` events with their ratings, aligned at the end: step T − 1 is the most recent."""
    expected = "a rating for every event"
    if log.rating is None:
        problem = "the log has no ratings, and without them relevance cannot be told from exposure"
        raise UnveilError(problem, expected=expected, hint=_WITHOUT)
    events, event_N = _last(log, steps)
    rating_N = log.rating[event_N].astype(np.float64)
    if missing := int((~np.isfinite(rating_N)).sum()):
        problem = f"{missing:,} of {len(rating_N):,} events have no rating, or one that is not a number"
        raise UnveilError(problem, expected=expected, hint="Leave out the events without one.")
    if rating_N.min() == rating_N.max():
        problem, found = "all ratings are the same, and say nothing about relevance", float(rating_N[0])
        raise UnveilError(problem, found=found, expected="ratings that differ", hint=_WITHOUT)
    return replace(events, value_N=rating_N)


def _last(log: Interactions, steps: int) -> tuple[Tuples, NDArray[np.int64]]:
    """Each user's last `steps` events with the value 1, all that is known without ratings; and their rows."""
    histories = Sequences.of(log)
    if not len(histories):
        raise UnveilError("there is no interaction in the log", hint="Check the file, or loosen the filters.")
    if not 0 < steps <= histories.n_steps:
        most = histories.n_steps
        expected, hint = f"1 to {most} steps, the longest history", f"Pass --steps {most} or fewer."
        raise UnveilError("no history is as long as the steps", found=steps, expected=expected, hint=hint)
    first = histories.n_steps - steps
    late_N = histories.step_N >= first
    found = Tuples(
        user_N=histories.user_N[late_N].astype(np.int64),
        item_N=histories.item_N[late_N].astype(np.int64),
        step_N=histories.step_N[late_N].astype(np.int64) - first,
        value_N=np.ones(int(late_N.sum())),
        shape=(histories.n_users, histories.n_items, steps),
    )
    return found, np.asarray(histories.event_N[late_N], np.int64)


def learn_and_score(
    recipe: Recipe, task: Task, rng: np.random.Generator, advance: Advance
) -> tuple[Factors, dict[str, Any]]:
    """Learn a task, and the same tuples without factors; what each reaches on tuples that were not learnt from."""
    for_recipe, for_biases = rng.spawn(2)
    learnt = recipe.learn(task, for_recipe, advance)
    if not all(np.isfinite(table).all() for table in vars(learnt.factors).values()):
        hint = "Lower the recipe's lr."
        raise UnveilError(f"the fit of {task.name} diverged: its factors are not all numbers", hint=hint)
    train, parts = task.epoch(for_biases), (task.parts.valid, task.parts.test)
    _, by_biases = BIASES.sample(train, task.likelihood, parts, for_biases, advance)
    by_world = FittedFactors.by(learnt.factors, task)
    predictions: dict[str, Sequence[NDArray[np.float64]]] = {
        "mean": [np.full(len(part), train.value_N.mean()) for part in parts],  # the same value for every tuple
        "bias_only": by_biases,  # user, item and step each add their own
        "recipe": (learnt.valid_N, learnt.test_N),
        "world": (by_world.valid_N, by_world.test_N),  # by the factors that the world is made of
    }
    scores = {
        name: {"valid": task.score(valid_N, parts[0]), "test": task.score(test_N, parts[1])}
        for name, (valid_N, test_N) in predictions.items()
    }
    return learnt.factors, {"metric": task.metric, "tuples": len(train), **scores}


@dataclass(frozen=True)
class Fit:
    """How a world is fitted."""

    steps: int = 100
    recipe: str = "posterior"
    relevance: Mapping[str, Any] = field(default_factory=dict)  # options of the recipe for relevance
    exposure: Mapping[str, Any] = field(default_factory=dict)  # and for exposure
    seed: int = 0
    centre: float = 0.0  # the rating that pleases every second time; 0: the paper's γ = σ(r̂)
    negatives: int = 3  # for each positive of exposure
    redraw: bool = True  # the negatives of each epoch anew
    real_lengths: bool = False  # users are there as long as their history; else, as in the paper, at all steps
    severity: float = 1.0

    def __post_init__(self) -> None:
        check_ranges(self, "", seed="0 or more")
        if not (np.isfinite(self.severity) and self.severity > 0):
            raise UnveilError("the severity is out of range", found=self.severity, expected="a number above 0")
        if not np.isfinite(self.centre):
            raise UnveilError("the centre is not a number", found=self.centre, expected="a rating")

    def recipes(self) -> tuple[Recipe, Recipe]:
        return RECIPES.build(self.recipe, self.relevance), RECIPES.build(self.recipe, self.exposure)

    def tasks(self, tuples: Tuples) -> tuple[Task, Task]:
        for_split, for_negatives = self.streams()[0].spawn(2)
        return self._both(tuples, split(tuples, for_split), for_negatives)

    def tuning_tasks(self, tuples: Tuples, rng: np.random.Generator) -> tuple[Task, Task]:
        """The same two tasks of tuples that have no test part any more: a ninth, a tenth of all, is for validation."""
        for_split, for_negatives = rng.spawn(2)
        shuffled = for_split.permutation(len(tuples))
        train, valid = (tuples.where(np.sort(rows)) for rows in np.split(shuffled, [-(len(tuples) // 9)]))
        return self._both(tuples, Parts(train, valid, tuples.where(shuffled[:0])), for_negatives)

    def _both(self, known: Tuples, parts: Parts, rng: np.random.Generator) -> tuple[Task, Task]:
        negatives = Negatives(known, self.negatives, RECIPES[self.recipe].where)
        return Task.of_ratings(parts), Task.of_exposure(parts, negatives, rng, redraw=self.redraw)

    def untested(self, tuples: Tuples) -> Tuples:
        """The tuples that the fit will not be reported on: those that it may be tuned by."""
        train, valid, _ = split(tuples, self.streams()[0].spawn(2)[0])
        return train.and_also(valid)

    def streams(self) -> list[np.random.Generator]:
        """Chance in the tasks, in learning relevance, and in learning exposure."""
        return [np.random.default_rng(seed) for seed in np.random.SeedSequence(self.seed).spawn(3)]


def fit_world(log: Interactions, fit: Fit | None = None, progress: Progress | None = None) -> World:
    """Learn relevance and exposure from a log with ratings; the world's `origin` says how, and how well."""
    fit = fit or Fit()
    recipes, tuples = fit.recipes(), observed(log, fit.steps)
    plans = list(zip(recipes, fit.tasks(tuples), fit.streams()[1:], strict=True))
    advance = counted(sum(recipe.work(task) + BIASES.sweeps * task.size for recipe, task, _ in plans), progress)
    (relevance, rated), (exposure, exposed) = (learn_and_score(*plan, advance) for plan in plans)
    if fit.centre:
        relevance = relevance.plus(Factors.constant(*relevance.shape, -fit.centre))
    options = {"relevance": vars(recipes[0]), "exposure": vars(recipes[1])}
    about = {"kind": "fitted", "log": log.fingerprint()[:16], "recipe": fit.recipe, "settings": asdict(fit) | options}
    return World(
        relevance_logits=relevance,
        exposure_logits=exposure,
        users=log.users,
        items=log.items,
        start_U=first_steps(tuples, fit.real_lengths),
        severity=fit.severity,
        origin={**about, "relevance": rated, "exposure": exposed},
    )


def counted(total: int, progress: Progress | None) -> Callable[[int], None]:
    """A function of the work done since its last call that reports the work done in all."""
    done = 0

    def advance(more: int) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress(min(done, total), total)

    return advance


def first_steps(tuples: Tuples, real_lengths: bool) -> NDArray[np.int32]:
    """0 for all, or the first step at which a user was seen; the last for a user who never was."""
    users, _, steps = tuples.shape
    if not real_lengths:
        return np.zeros(users, np.int32)
    first_U = np.full(users, steps - 1, np.int32)
    np.minimum.at(first_U, tuples.user_N, tuples.step_N.astype(np.int32))
    return first_U


def fit_of(configs: Sequence[Path], changes: Mapping[str, Any]) -> Fit:
    """What the files say, one part of a world in each or all in one; then what was given by hand."""
    fit, said = Fit(), dict[str, tuple[Any, Path]]()
    for path in configs:
        for name, value in flattened(read_toml(path, "config")).items():
            if name in _PARTS and value == {}:
                continue  # a part of which nothing is said takes nothing back
            fit = changed(fit, {name: value}, where=path)
            if name in said and said[name][0] != value:
                first, before = said[name]
                found, hint = f"{first} in {before}", "Tune both parts alike, or keep one of the files."
                raise UnveilError(f"two configs differ in {name}", where=path, found=value, expected=found, hint=hint)
            said[name] = value, path
    return changed(fit, changes)


def shared(fit: Fit) -> dict[str, Any]:
    """What a fit says beside its parts; of the whole only what is not usual."""
    unusual = [name for name in _WHOLE if getattr(fit, name) != getattr(Fit(), name)]
    return {name: getattr(fit, name) for name in (*_SHARED, *unusual)}


def as_toml(fit: Fit, parts: Sequence[str], head: str) -> str:
    """Some parts of a fit with every option of the recipe, none left to defaults."""
    lines = [f"# {line}" if line else "#" for line in head.splitlines()]
    lines += [f"{name} = {toml_value(value)}" for name, value in shared(fit).items()]
    for part, recipe in zip(_PARTS, fit.recipes(), strict=True):
        if part in parts:
            lines += ["", f"[{part}]", *(f"{name} = {toml_value(value)}" for name, value in vars(recipe).items())]
    return "\n".join(lines) + "\n"


def implicit_worlds(
    log: Interactions, fit: Fit, liked: Sequence[float], progress: Progress | None = None
) -> list[World]:
    """Worlds behind a log without ratings, one for each declared share of popularity that is liking, `liked`.

    One model of the interactions, logit ψ_sit from factors, is fitted to the events and drawn negatives, and split:

        relevance_si = d_si + liked · b_i        exposure_sit = ψ_sit − relevance_si

    b_i is how much likelier item i is chosen than others on average, d_si what is left of a user's mean over the steps
    after the means of user and item. Assumed: what is personal is taste, what changes along the steps is exposure.
    """
    for share in liked:
        check_share(share)
    (tuples, _), recipe = _last(log, fit.steps), RECIPES.build(fit.recipe, fit.exposure)
    (_, task), (_, rng, _) = fit.tasks(tuples), fit.streams()
    advance = counted(recipe.work(task) + BIASES.sweeps * task.size, progress)
    psi, report = learn_and_score(recipe, task, rng, advance)
    start_U = first_steps(tuples, fit.real_lengths)
    fitted = {"recipe": fit.recipe, "metric": report["metric"], "test": report["recipe"]["test"]}
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


def check_share(share: float, where: str = "liked") -> None:
    """Before any work is done: a declared share is one."""
    check_range(0 <= share <= 1, where, share, "a share between 0 and 1 of popularity that is liking")
