"""Demos that take a second, and outcomes made up figure by figure."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unveil.data.sequences import Sequences
from unveil.data.splits import Split, leave_one_out
from unveil.evaluation.result import Evaluation
from unveil.experiment.demo.run import CHANGES, Demo
from unveil.experiment.outcome import Outcome
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World
from unveil.studies.trial import Arm, Trial
from unveil.training.recipe import Recipe
from unveil.training.trainer import Fitted

SPEC = WorldSpec(users=40, items=30, steps=12, shortest=5, severity=1.5)
TINY = {**CHANGES, "model.width": 8, "model.length": 10, "task.batch_size": 16, "training.epochs": 4}


def recipe(seed: int = 0) -> Recipe:
    return Recipe.preset("quick").changed({**TINY, "training.seed": seed})


def tiny_demo(replicates: int = 1, seed: int = 0) -> Demo:
    return Demo(spec=SPEC, recipe=recipe(), negatives=5, replicates=replicates, seed=seed)


def _split() -> Split:
    return leave_one_out(Sequences.of(World.builtin(SPEC).log(np.random.default_rng(0))))


def _evaluation(value_U: Sequence[float], relevance: float) -> Evaluation:
    columns = {"full:NDCG@10": value_U, "uniform-5:NDCG@10": value_U, "truth:Relevance@10": [relevance] * len(value_U)}
    frame = pl.DataFrame({"user": range(len(value_U)), **{name: list(value) for name, value in columns.items()}})
    return Evaluation.of(frame, {}, "made up", resamples=50)


def made_up(
    *trials: Mapping[str, tuple[Sequence[float], Sequence[float]]], relevance: Mapping[str, float] | None = None
) -> Outcome:
    """NDCG@10 of each arm for each user, on true favourites and on what was taken; a trial for each mapping."""
    split, fitted = _split(), Fitted([], None, stopped_early=False)

    def arm(name: str, true: Sequence[float], taken: Sequence[float]) -> Arm:
        mean = (relevance or {}).get(name, 0.5)
        trained = None if name in ("random", "popularity") else fitted
        return Arm(name, _evaluation(true, mean), _evaluation(taken, mean), trained)

    return Outcome([Trial(split, 0.0, [arm(name, *values) for name, values in each.items()]) for each in trials])


def _centred(value_U: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(value_U - value_U.mean())


def users(mean: float, n: int = 40) -> list[float]:
    """So many users about a mean, the same deviations each time."""
    return [float(mean + 0.1 * wave) for wave in _centred(np.sin(np.arange(n)))]


def means(popularity: float, naive: float, itps: float, ideal: float) -> dict[str, tuple[list[float], list[float]]]:
    """Arms whose users differ between arms by noise of their own."""
    rng = np.random.default_rng(0)
    values = {"popularity": popularity, "naive": naive, "itps": itps, "ideal": ideal}
    noise = {name: 0.02 * _centred(rng.standard_normal(40)) for name in values}
    return {name: ((np.array(users(mean)) + noise[name]).tolist(), users(1 - mean)) for name, mean in values.items()}
