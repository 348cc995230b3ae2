"""A built-in world, the log drawn from it beside its ground truth, and what several losses learn from it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unveil.audit.exposure import rank_correlation
from unveil.data.describe import lorenz, rows
from unveil.data.writers import write as write_log
from unveil.estimators.base import weights_of
from unveil.evaluation.result import column, parts, per_user
from unveil.report import plots
from unveil.report.charts import curves, intervals, lorenz_figure
from unveil.report.names import COLOURS, named
from unveil.report.page import Figure
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.describe import WorldLog, at_severities
from unveil.simulation.world import World
from unveil.studies.arms import changes_of
from unveil.studies.engine import Answer, Cell, Context, Study, Work
from unveil.studies.results import BASE, BASELINES, BOUND, STANDARD, TRUE, Measure, Results
from unveil.studies.tables import dot, weight_means, weight_warnings
from unveil.studies.trial import TrainingShare, TrialContext, arm_record, rank_rows
from unveil.training.recipe import Recipe

_TOP_ITEMS = 15


def log_facts(own: WorldLog) -> dict[str, Any]:
    """The figures that the captions name."""
    names, (gamma_V, theta_V) = own.log.items.ids.to_list(), own.item_means
    top = np.argsort(-np.maximum(own.chosen_V, own.relevant_V), kind="stable")[:_TOP_ITEMS]
    top = top[np.argsort(-own.chosen_V[top], kind="stable")].tolist()
    return {
        "own": own,
        "log": own.figures,
        "description": rows(own.figures),
        "top_items": [(names[v], own.chosen_V[v], own.relevant_V[v], theta_V[v], gamma_V[v]) for v in top],
        "rank_correlation": rank_correlation(own.chosen_V, own.relevant_V),
        "median_theta": {"chosen": float(np.median(own.theta_N)), "relevant": float(np.median(own.relevant_theta_N))},
        "correlation": float(np.corrcoef(np.log(theta_V), gamma_V)[0, 1]),
        "world": own.world.describe(),
    }


def log_figures(own: WorldLog) -> Mapping[str, Figure]:
    """The plots of the log; their words are in the template."""
    names, (gamma_V, theta_V) = own.log.items.ids.to_list(), own.item_means
    counts = {"chosen": own.chosen_V, "most relevant": own.relevant_V}
    held = {name: lorenz(count_V, np.linspace(0, 1, 21)) for name, count_V in counts.items()}
    exposures: dict[str, NDArray[Any]] = {"chosen": own.theta_N, "most relevant": own.relevant_theta_N}
    titles = [
        f"{name}: exposure {theta:.3f}, relevance {gamma:.2f}, {n:,} interactions"
        for name, theta, gamma, n in zip(names, theta_V, gamma_V, own.chosen_V, strict=True)
    ]
    axes = "mean exposure θ, logarithmic", "mean relevance γ"
    steps_T, colours = np.arange(own.world.n_steps), range(len(own.seasons))
    return {
        "lorenz": lorenz_figure(held, "the whole", "lorenz"),
        "exposures": plots.distributions(exposures, "exposure θ, logarithmic"),
        "items": plots.scatter(theta_V, gamma_V, own.chosen_V, titles, axes, "truth"),
        "seasons": curves(steps_T, own.seasons, colours, "mean exposure θ", "seasons", "time step"),
    }


#: What conclusions are drawn from: the rank of the most relevant item among all items.
HEADLINE = Measure(TRUE, "full", "NDCG", 10)
RECALL = Measure(TRUE, "full", "Recall", 10)
HELD_OUT = Measure(STANDARD, "full", "NDCG", 10)
RELEVANCE = Measure(TRUE, "truth", "Relevance", 10)
#: Where the training differs from the preset `quick`: all losses train equally long, and the same figures everywhere.
CHANGES: Mapping[str, Any] = {"training.patience": None, "training.device": "cpu", "training.threads": 1}


class Demo(Study):
    """Replicate r repeats everything random, the world included, with the seed + r."""

    name: ClassVar[str] = "demo"
    title: ClassVar[str] = "What a log shows, what it hides, and what can be learnt from it"
    template: ClassVar[str] = "demo.md.j2"

    #: Of the severities tried (1, 1.5, 2), 1.5 is the most severe that leaves 1/θ an effective sample above 10%.
    spec: WorldSpec = WorldSpec(users=1000, severity=1.5)
    epochs: int = 80
    negatives: int = 100  # drawn uniformly, and again by popularity
    seed: int = 0
    #: Settings of all trainings, or of one estimator. The world is small: fewer batches than usual learn its factors.
    changes: tuple[str, ...] = ("corrected-distilled:estimator.batches=2000",)
    replicates: int = 1
    estimators: tuple[str, ...] = (BASE, "ips", "itps", "corrected", "corrected-distilled", "wmf-distilled", BOUND)

    def cells(self) -> Iterable[Cell]:
        for n, arm in product(range(self.replicates), (*BASELINES, *self.estimators)):
            cost = 0.05 if arm in BASELINES else 2.0 if arm == "corrected-distilled" else 1.0
            yield Cell(f"r{n}-{arm}", {"replicate": n, "estimator": arm}, cost)

    def stages(self, work: Work) -> Iterator[tuple[str, Sequence[Cell]]]:
        own = world_log(self, 0)
        write_log(own.log, work.folder / "log.csv")
        own.world.save(work.folder / "world", overwrite=True)
        yield "models", list(self.cells())

    def recipe(self, replicate: int, arm: str = BASE) -> Recipe:
        own = {"training.epochs": self.epochs, "training.seed": self.seed + replicate, "estimator.name": arm}
        own |= changes_of(arm, self.changes)
        return Recipe.preset("quick", "bert4rec").changed({**CHANGES, **own})

    def run_cell(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        replicate, name = cell.at["replicate"], cell.at["estimator"]
        trial, recipe = trial_context(self, replicate), self.recipe(replicate, BASE if name in BASELINES else name)
        arm = trial.arm(name, recipe, TrainingShare(context.on_progress))
        record, users = arm_record(trial, arm), per_user(arm.evaluations[TRUE].frame)
        columns = {name: column(*parts(name)) for name in record["lists"]}
        by_user = {name: users[own].to_list() for name, own in columns.items() if own in users.columns}
        return {**record, "lists": record["lists"] | by_user}

    def rows(self, cell: Cell, record: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
        return rank_rows(record, by_user=self.replicates == 1)

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        results = answer.results
        gaps = {arm: results.gap_closed(arm, HEADLINE) for arm in results.trained}
        return {
            "headline": HEADLINE._asdict(),
            "gap_closed": {arm: gap and gap.mean for arm, gap in gaps.items()},
            "less_naive": {arm: asdict(test) for arm, test in results.against(HEADLINE).items()},
            "weights": weights_by_arm(answer),
        }

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        results, trial, own = answer.results, trial_context(self, 0), world_log(self, 0)
        return {
            **log_facts(own),
            "severities": at_severities(own.world, self.seed),
            "means_figure": means_figure,
            "HEADLINE": HEADLINE,
            "RECALL": RECALL,
            "SAMPLED": Measure(TRUE, results.protocol("uniform"), "NDCG", 10),
            "HELD_OUT": HELD_OUT,
            "RELEVANCE": RELEVANCE,
            "tests": results.against(HEADLINE),
            "gaps": {arm: results.gap_closed(arm, HEADLINE) for arm in results.trained},
            "sampled": results.protocol("uniform"),
            "trial": trial,
            "weighting": weight_means(answer.by_arm()),
            "median_weights": {arm: float(np.median(weights)) for arm, weights in self._event_weights(answer).items()},
            "warnings": weight_warnings(answer.by_arm()),
        }

    def figures(self, answer: Answer) -> Mapping[str, Figure]:
        weights = self._event_weights(answer)
        own, colours = {named(arm): weight_N for arm, weight_N in weights.items()}, [COLOURS[arm] for arm in weights]
        drawn = plots.distributions(own, "weight 1/θ, logarithmic", "weights", colours)
        return {"weights_figure": drawn, **log_figures(world_log(self, 0))}

    def _event_weights(self, answer: Answer) -> dict[str, Any]:
        trial = trial_context(self, 0)
        ready = {arm: trial.prepared(arm, self.recipe(0, arm)) for arm in weights_by_arm(answer)}
        return {arm: weights_of(each.estimator, each.task.slots).numpy() for arm, each in ready.items()}


@lru_cache(maxsize=1)
def world_log(study: Demo, replicate: int) -> WorldLog:
    """The world and the log of a replicate."""
    seed = study.seed + replicate
    return WorldLog.draw(World.builtin(study.spec, seed), seed)


@lru_cache(maxsize=1)
def trial_context(study: Demo, replicate: int) -> TrialContext:
    """What the arms of a replicate share."""
    own = world_log(study, replicate)
    return TrialContext.of(own.world, own.log, study.recipe(replicate), negatives=study.negatives)


def weights_by_arm(answer: Answer) -> dict[str, Any]:
    """The diagnostics of the weights in the first replicate."""
    every = {arm: records[0]["weights"] for arm, records in answer.by_arm().items()}
    return {arm: weights for arm, weights in every.items() if weights is not None}


def means_figure(results: Results, measure: Measure, axis: Sequence[Measure], label: str = "") -> Figure:
    """Every arm with its interval, best first; figures of the same `axis` have the same scale."""
    arms = sorted(results.arms, key=lambda arm: -results.mean(arm, measure))
    found = {arm: results.estimate(arm, measure) for arm in arms}
    dots = [dot(arm, each) for arm, each in found.items()]
    every = [results.estimate(arm, m) for arm in arms for m in axis]
    highest = max(each.mean if each.high is None else each.high for each in every)
    slug = f"{measure.evaluation.split()[0]}-{measure.protocol}-{measure.metric.lower()}"
    return intervals(dots, label or measure.name, highest, slug)
