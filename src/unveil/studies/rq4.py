"""RQ4: how well does each estimator rank real interactions? Three rankings, and a control that avoids popular items."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import model_validator

from unveil.data.interactions import Interactions, Sequences
from unveil.data.readers import convert_first
from unveil.data.splits import Split, leave_one_out
from unveil.errors import AtLeastOne, UnveilError, check_ranges
from unveil.estimators.base import estimator
from unveil.evaluation.protocols import usual_negatives
from unveil.processes import threads
from unveil.studies import arms, rq4_report, tables
from unveil.studies.engine import Answer, Cell, Context, Source, Study, Work
from unveil.studies.paper import Published, paper_rows, read_log, recognised, size_of, tuned
from unveil.studies.presets import preset
from unveil.studies.results import BASE, BASELINES, CONTROL, STANDARD, Measure, RealResults, Results
from unveil.studies.tables import Records
from unveil.studies.trial import TrainingShare, TrialContext, arm_record, rank_rows
from unveil.training.fit import check_available
from unveil.training.recipe import Recipe, network_in
from unveil.training.trainer import CHECKPOINT, Keep

#: One thread a training: then no figure depends on how many are made side by side.
_ALWAYS: Mapping[str, Any] = {"training.device": "cpu", "training.threads": 1, "training.checkpoint_minutes": 1.0}
#: λ of the control arm: 0 is the naive model itself, 1 divides popularity out.
STRENGTHS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5)


class RQ4(Study):
    """The paper's estimators on a real log, with the paper's figures beside."""

    name: ClassVar[str] = "rq4"
    title: ClassVar[str] = "How well does each estimator rank real interactions?"
    template: ClassVar[str] = "rq4.md.j2"
    extent: ClassVar[frozenset[str]] = frozenset({"log", "min_item", "min_user", "replicates", "estimators"})
    results_type: ClassVar[type[Results]] = RealResults
    log: str
    min_item: int | None = None
    min_user: int | None = None
    replicates: AtLeastOne = 5
    estimators: tuple[str, ...] = ("naive", "ips", "itps")
    tuned_for: str = "ml-1m"  # whose settings and exponents
    preset: str = "paper"
    negatives: AtLeastOne = 100  # drawn by popularity, and as many uniformly
    strengths: tuple[float, ...] = STRENGTHS
    seed: int = 0
    changes: tuple[str, ...] = ()  # settings of all trainings, or of one estimator, as NAME=VALUE or ips:NAME=VALUE

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_ranges(self, "", seed="0 or more")
        if not self.strengths or self.strengths[0] != 0:
            raise UnveilError("the strengths of the control begin with 0, the naive model", found=self.strengths)
        if BASE not in self.estimators:
            found, hint = ", ".join(self.estimators), f"Add it: --estimators {','.join((BASE, *self.estimators))}."
            raise UnveilError("the naive estimator is what all others are compared with", found=found, hint=hint)
        arms.check_changes(self.estimators, self.changes)
        for arm in self.estimators:
            if estimator(arms.Variant.of(arm).estimator).needs == "truth":
                hint = "Leave it out: a real log has no ground truth."
                raise UnveilError(f"the estimator {arm!r} needs a world with known ground truth", hint=hint)
            self.recipe(arm, 0)
        return self

    @classmethod
    def of_log(cls, *, tuned_for: str | None = None, **fields: Any) -> Self:
        """With the settings of the data set of the paper that the log is by its size, unless one is named."""
        log, _ = log_parts(fields["log"], fields.get("min_item"), fields.get("min_user"))
        return cls(tuned_for=tuned_for or recognised(*size_of(log)) or "ml-1m", **fields)

    @property
    def recipes(self) -> dict[str, Recipe]:
        return {arm: self.recipe(arm, 0) for arm in dict.fromkeys(self.estimators)}

    @property
    def parts(self) -> tuple[Interactions, Split]:
        return log_parts(self.log, self.min_item, self.min_user)

    @property
    def about(self) -> str:
        return arms.with_changes(
            f"{preset(self.preset).about}; settings and exponents for {self.tuned_for}", self.changes
        )

    @property
    def popular(self) -> str:
        return f"popular-{self.negatives}"

    @property
    def validation(self) -> str:
        """The ranking that decides which epoch is kept: the paper's own in its preset, else full."""
        return self.popular if self.preset == "paper" else "full"

    @property
    def protocols(self) -> list[str]:
        return [self.popular, "full", f"uniform-{self.negatives}"]

    @property
    def headline(self) -> Measure:
        return Measure(STANDARD, self.popular, "NDCG", 10)

    def recipe(self, arm: str, replicate: int) -> Recipe:
        """How an arm is trained in a replicate: with popularity, unless its name or a setting names a propensity."""
        variant = arms.Variant.of(arm)
        authors = tuned(self.tuned_for, variant.estimator, self.preset)
        if variant.propensity not in (None, arms.POPULARITY):
            authors.pop("estimator.exponent", None)  # it is for popularity
        own = arms.settings(arm, self.changes, self.replicate_seed(replicate), arms.POPULARITY)
        changes = {**_ALWAYS, **authors, **own}
        shared = Recipe.preset(self.preset, network_in(changes) or "bert4rec")
        return shared.changed({"estimator.name": variant.estimator}).changed(changes)

    def replicate_seed(self, replicate: int) -> int:
        """Of all that is random in a replicate: initial weights, batches, masks, negatives; the same for all arms."""
        return int(np.random.SeedSequence([self.seed, replicate]).generate_state(1)[0])

    def open_data(self) -> Source:
        log, split = self.parts
        most = usual_negatives(split.test, split.whole, split.train.count_V, wanted=self.negatives)
        arms.check_negatives(self.negatives, min(most.values()))
        with convert_first(self.log):
            for arm in self.estimators:
                check_available(self.recipe(arm, 0), log)
        return Source(recognised(*size_of(log)) or "", log.fingerprint(), f"{log}; {split}")

    def cells(self) -> Iterable[Cell]:
        log, _ = self.parts
        for arm in (*BASELINES, *self.recipes):
            cost = 5.0 if arm in BASELINES else 10.0 + arms.seconds_of(self.recipe(arm, 0), size_of(log))
            for replicate in range(self.replicates):
                yield Cell(f"r{replicate}-{arm}", {"replicate": replicate, "estimator": arm}, cost)

    def stages(self, work: Work) -> Iterator[tuple[str, Sequence[Cell]]]:
        """All cells; then the checkpoints of their trainings are removed. What each epoch gave stays."""
        cells = list(self.cells())
        yield "cells", cells
        for cell in cells:
            (work.folder / "trainings" / cell.key / CHECKPOINT).unlink(missing_ok=True)

    def run_cell(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        replicate, name = cell.at["replicate"], cell.at["estimator"]
        recipe = self.recipe(BASE if name in BASELINES else name, replicate)
        trial = replicate_trial(self, replicate).of_length(recipe.model.length)
        keep = Keep(context.folder / "trainings" / cell.key, resume=True, identity={"log": trial.log.fingerprint()})
        if name not in BASELINES:
            keep.folder.mkdir(parents=True, exist_ok=True)
        arm = trial.arm(name, recipe, TrainingShare(context.on_progress), keep)
        found = {"replicate": replicate, "estimator": name, **arm_record(trial, arm)}
        found["weights"] = rq4_report.weights_record(arm.trainer)
        if name == BASE:
            with threads(1):
                found[CONTROL] = rq4_report.control_record(trial, arm, self.strengths, self.popular)
        return found

    def rows(self, cell: Cell, record: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
        by_user = self.replicates == 1
        yield from rank_rows(record, by_user=by_user)
        if CONTROL in record:
            yield from ({**row, "estimator": CONTROL} for row in rank_rows(record[CONTROL], by_user=by_user))

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        results = answer.results
        over = "Student's t over replicates" if results.units == "replicates" else "percentile bootstrap over users"
        return {
            "preset": self.preset,
            "worlds": 0,
            "interval": f"95%, {over}",
            "headline": self.headline._asdict(),
            "verdict": [each.as_json() for each in self.published(answer).compare(results)],
            "flips": [pair.as_json() for pair in rq4_report.pairs(results, self.headline)],
            "control": [{name: c[name] for name in ("strength", "strengths", "along")} for c in self._controls(answer)],
            "weights": {arm: [r["weights"] for r in records] for arm, records in answer.by_arm(self.recipes).items()},
        }

    def published(self, answer: Answer) -> Published:
        return Published.real(answer.source.name or None)

    def _controls(self, answer: Answer) -> Records:
        return [record[CONTROL] for record in answer.where(estimator=BASE)]

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        results, trained = answer.results, answer.by_arm(self.recipes)
        return {
            "measure": self.headline,
            "published": self.published(answer),
            "compared": self.published(answer).compare(results),
            "pairs": rq4_report.pairs(results, self.headline),
            "chosen": {name: [c["strength"][name] for c in self._controls(answer)] for name in self.protocols},
            "written": {arm: tables.ess_share(records, "as_written") for arm, records in trained.items()},
            "trained": trained,
            "weighting": tables.weight_means(trained),
            "warnings": tables.weight_warnings(trained),
            "proxies": rq4_report.proxies(self.recipes),
        }

    def figures(self, answer: Answer) -> Mapping[str, Any]:
        return {"along": rq4_report.control_figure(self._controls(answer), self.protocols)}

    def csv(self, answer: Answer) -> list[dict[str, Any]]:
        published = self.published(answer)
        rows = paper_rows(answer.results, self.preset, lambda *_: published)
        return [{**row, "worlds": 0} for _, row in rows]


@lru_cache(maxsize=1)
def replicate_trial(study: RQ4, replicate: int) -> TrialContext:
    """The arms of a replicate, one after another in the same process, share its cases; only negatives differ."""
    recipe = study.recipe(BASE, replicate)
    return TrialContext.real(*study.parts, recipe, negatives=study.negatives, validation=study.validation)


@lru_cache(maxsize=1)
def log_parts(data: str, min_item: int | None = None, min_user: int | None = None) -> tuple[Interactions, Split]:
    """A log by its name or path and its leave-one-out split, read once in a process."""
    log = read_log(data, min_item, min_user)
    return log, leave_one_out(Sequences.of(log))
