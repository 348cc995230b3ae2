"""RQ4: how well does each estimator rank real interactions? Three rankings, and a control that avoids popular items."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
import torch
from pydantic import model_validator

from unveil.data.readers import convert_first
from unveil.errors import UnveilError, check_ranges, unknown
from unveil.estimators.base import estimator
from unveil.evaluation.evaluator import Evaluator
from unveil.evaluation.ranking import Scorer
from unveil.models.baselines import Popularity, Random
from unveil.processes import threads
from unveil.propensity.weights import diagnose, inverse
from unveil.report.names import named
from unveil.report.page import Figures, KeyFigure
from unveil.studies import rq4_report
from unveil.studies.arms import (
    POPULARITY,
    Variant,
    changes_of,
    check_changes,
    estimator_seed,
    propensity_settings,
    seconds_of,
    with_changes,
)
from unveil.studies.engine import Answer, Cell, Context, Source, Study, Work
from unveil.studies.paper import Published, paper, paper_rows, recognised, size_of, tuned
from unveil.studies.results import BASE, BASELINES, STANDARD, Measure, Results
from unveil.studies.rq4_data import CONTROL, LogChoice, RealCases, check_items, choose_strength, evaluate_control
from unveil.studies.tables import (
    Records,
    arms_table,
    dots_figure,
    epochs_table,
    ess_share,
    learning_figure,
    lists_table,
    paper_table,
    settings_table,
    weight_warnings,
    weights_table,
)
from unveil.studies.trial import TrainingShare, list_metrics, rank_rows, ranks, resolved, training_record
from unveil.training.fit import check_available, prepare
from unveil.training.recipe import PRESETS, Recipe, network_in
from unveil.training.trainer import CHECKPOINT, Keep, Trainer

#: One thread a training: then no figure depends on how many are made side by side.
_ALWAYS: Mapping[str, Any] = {"training.device": "cpu", "training.threads": 1, "training.checkpoint_minutes": 1.0}
#: λ of the control arm: 0 is the naive model itself, 1 divides popularity out.
STRENGTHS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5)
#: Slots whose propensity is looked up together.
_BLOCK = 1 << 16
_ABOUT = {
    "paper": "the authors' settings, tuned for each estimator apart",
    "converged": "one backbone for all estimators, trained until validation no longer rises",
    "quick": "a small backbone for all estimators and few epochs, for a trial",
}


class RQ4(Study):
    """The paper's estimators on a real log, with the paper's figures beside."""

    name: ClassVar[str] = "rq4"
    title: ClassVar[str] = "How well does each estimator rank real interactions?"
    template: ClassVar[str] = "rq4.md.j2"
    extent: ClassVar[frozenset[str]] = frozenset({"log", "min_item", "min_user", "replicates", "estimators"})
    results_type: ClassVar[type[Results]] = rq4_report.RealResults
    log: str
    min_item: int | None = None
    min_user: int | None = None
    replicates: int = 5
    estimators: tuple[str, ...] = ("naive", "ips", "itps")
    tuned_for: str = "ml-1m"  # whose settings and exponents
    preset: str = "paper"
    negatives: int = 100  # drawn by popularity, and as many uniformly
    strengths: tuple[float, ...] = STRENGTHS
    seed: int = 0
    changes: tuple[str, ...] = ()  # settings of all trainings, or of one estimator, as NAME=VALUE or ips:NAME=VALUE

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_ranges(self, "", negatives="at least 1", seed="0 or more", replicates="at least 1")
        if self.tuned_for not in paper()["real"]["data"]:
            raise unknown("data set with the authors' settings", self.tuned_for, paper()["real"]["data"])
        if self.preset not in PRESETS:
            raise unknown("preset", self.preset, PRESETS)
        if not self.strengths or self.strengths[0] != 0:
            raise UnveilError("the strengths of the control begin with 0, the naive model", found=self.strengths)
        if BASE not in self.estimators:
            hint = f"Add it: --estimators {','.join((BASE, *self.estimators))}."
            found = ", ".join(self.estimators)
            raise UnveilError("the naive estimator is what all others are compared with", found=found, hint=hint)
        check_changes(self.estimators, self.changes)
        for arm in self.estimators:
            if estimator(Variant.of(arm).estimator).needs == "truth":
                hint = "Leave it out: a real log has no ground truth."
                raise UnveilError(f"the estimator {arm!r} needs a world with known ground truth", hint=hint)
            self.recipe(arm, 0)
        return self

    @classmethod
    def of_log(cls, *, tuned_for: str | None = None, **fields: Any) -> Self:
        """With the settings of the data set of the paper that the log is by its size, unless one is named."""
        log, _ = LogChoice(fields["log"], fields.get("min_item"), fields.get("min_user")).parts()
        return cls(tuned_for=tuned_for or recognised(*size_of(log)) or "ml-1m", **fields)

    @property
    def recipes(self) -> dict[str, Recipe]:
        """How each estimator is trained in the first replicate."""
        return {arm: self.recipe(arm, 0) for arm in dict.fromkeys(self.estimators)}

    @property
    def choice(self) -> LogChoice:
        """The log, and its filters."""
        return LogChoice(self.log, self.min_item, self.min_user)

    @property
    def about(self) -> str:
        """How networks are trained, in words."""
        return with_changes(f"{_ABOUT[self.preset]}; settings and exponents for {self.tuned_for}", self.changes)

    @property
    def popular(self) -> str:
        """The ranking of the paper."""
        return f"popular-{self.negatives}"

    @property
    def validation(self) -> str:
        """The ranking that decides which epoch is kept: the paper's own in its preset, else full."""
        return self.popular if self.preset == "paper" else "full"

    @property
    def protocols(self) -> list[str]:
        """The paper's ranking first, then all items, then uniform negatives."""
        return [self.popular, "full", f"uniform-{self.negatives}"]

    @property
    def headline(self) -> Measure:
        """The measure that the paper's conclusions are drawn from."""
        return Measure(STANDARD, self.popular, "NDCG", 10)

    def recipe(self, arm: str, replicate: int) -> Recipe:
        """How an arm is trained in a replicate: with popularity, unless its name or a setting names a propensity."""
        variant, seed = Variant.of(arm), self.replicate_seed(replicate)
        name, needs = variant.estimator, estimator(variant.estimator).needs
        said = changes_of(name, self.changes)
        exposure = {}
        if needs in ("static", "temporal"):
            exposure = propensity_settings(variant.propensity or POPULARITY, needs, seed)
        changes = {**_ALWAYS, **self._tuned(variant), **estimator_seed(name, seed)}
        changes |= exposure | said if variant.propensity is None else said | exposure
        changes |= variant.settings | {"training.seed": seed, "estimator.name": name}
        return (
            Recipe.preset(self.preset, network_in(changes) or "bert4rec")
            .changed({"estimator.name": name})
            .changed(changes)
        )

    def _tuned(self, variant: Variant) -> dict[str, Any]:
        """The authors' exponents are for popularity: an arm with another propensity has none of them."""
        settings = tuned(self.tuned_for, variant.estimator, self.preset)
        if variant.propensity not in (None, POPULARITY):
            settings.pop("estimator.exponent", None)
        return settings

    def replicate_seed(self, replicate: int) -> int:
        """Of all that is random in a replicate: initial weights, batches, masks, negatives; the same for all arms."""
        return int(np.random.SeedSequence([self.seed, replicate]).generate_state(1)[0])

    def open_data(self) -> Source:
        """The log, filtered as the paper's was."""
        log, split = self.choice.parts()
        check_items(split, self.negatives)
        with convert_first(self.log):
            for arm in self.estimators:
                check_available(self.recipe(arm, 0), log)
        return Source(recognised(*size_of(log)) or "", log.fingerprint(), f"{log}; {split}")

    def cells(self) -> Iterable[Cell]:
        """Every arm in every replicate."""
        log, _ = self.choice.parts()
        for arm in (*BASELINES, *self.recipes):
            cost = 5.0 if arm in BASELINES else 10.0 + seconds_of(self.recipe(arm, 0), size_of(log))
            for replicate in range(self.replicates):
                yield Cell(f"r{replicate}-{arm}", {"replicate": replicate, "estimator": arm}, cost)

    def priority(self, cell: Cell) -> Any:
        """Whole replicates first; within one the longest first, so that none ends alone."""
        return cell.at["replicate"], -cell.cost

    def stages(self, work: Work) -> Iterator[tuple[str, Sequence[Cell]]]:
        """All cells; then the checkpoints of their trainings are removed. What each epoch gave stays."""
        cells = list(self.cells())
        yield "cells", cells
        for cell in cells:
            (work.folder / "trainings" / cell.key / CHECKPOINT).unlink(missing_ok=True)

    def run_cell(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        """Train an arm and evaluate it; the naive one with its control. A stopped training goes on."""
        replicate, arm = cell.at["replicate"], cell.at["estimator"]
        cases = _cases(self, replicate)
        fingerprint = cases.log.fingerprint()
        about = {"replicate": replicate, "estimator": arm, "log": {"fingerprint": fingerprint}}
        with threads(1):
            if arm in BASELINES:
                items, train = cases.split.train.n_items, cases.split.train
                baseline = Random(items, self.replicate_seed(replicate)) if arm == "random" else Popularity.fit(train)
                return {**about, **_metrics(baseline, cases.test), "training": None, "weights": None}
            recipe = resolved(self.recipe(arm, replicate), cases.split.train, cases.log)
            ready, cases = prepare(cases.split.train, recipe, log=cases.log), cases.of_length(recipe.model.length)
            folder = context.folder / "trainings" / cell.key
            folder.mkdir(parents=True, exist_ok=True)
            keep = Keep(folder, resume=True, identity={"log": fingerprint})
            fitted = ready.fit(cases.validation, keep=keep, watch=TrainingShare(context.on_progress))
            found = {**about, **_metrics(ready.model, cases.test), "training": training_record(fitted)}
            found["weights"] = _weights(ready)
            if arm == BASE:
                along = choose_strength(ready.model, cases.validation, self.strengths)
                found[CONTROL] = evaluate_control(ready.model, cases.test, self.strengths, along, self.popular)
            return found

    def rows(self, cell: Cell, record: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
        """All metrics, of each user where there is one replicate; the control's beside those of the naive model."""
        by_user = self.replicates == 1
        yield from rank_rows(record, by_user=by_user)
        if CONTROL in record:
            yield from ({**row, "estimator": CONTROL} for row in rank_rows(record[CONTROL], by_user=by_user))

    def key_figures(self, answer: Answer) -> Sequence[KeyFigure]:
        """The paper's NDCG@10 of all trained arms."""
        results, label = answer.results, f"NDCG@10 against {self.negatives} popular items"
        return [KeyFigure(f"{results.mean(a, self.headline):.3f}", f"{named(a)}: {label}") for a in results.trained]

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        """The paper's figures beside ours, what flips between rankings, the control and the weights."""
        results = answer.results
        over = "Student's t over replicates" if results.units == "replicates" else "percentile bootstrap over users"
        controls = rq4_report.controls(answer)
        return {
            "preset": self.preset,
            "worlds": 0,
            "interval": f"95%, {over}",
            "headline": self.headline._asdict(),
            "verdict": [each.as_json() for each in self.published(answer).compare(results)],
            "flips": [pair.as_json() for pair in rq4_report.pairs(results, self.headline)],
            "control": [{name: each[name] for name in ("strength", "strengths", "along")} for each in controls],
            "weights": {arm: [r["weights"] for r in records] for arm, records in self._trained(answer).items()},
        }

    def published(self, answer: Answer) -> Published:
        """The paper's table for a log of this size."""
        return Published.real(answer.source.name or None)

    def _trained(self, answer: Answer) -> dict[str, Records]:
        return {arm: answer.where(estimator=arm) for arm in self.recipes}

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        """What sentences are chosen by."""
        results, every = answer.results, rq4_report.pairs(answer.results, self.headline)
        trained = self._trained(answer)
        return {
            "measure": self.headline,
            "published": self.published(answer),
            "compared": self.published(answer).compare(results),
            "pairs": every,
            "doubted": rq4_report.doubted(results, every, self.headline),
            "chosen": {name: [c["strength"][name] for c in rq4_report.controls(answer)] for name in self.protocols},
            "samples": [
                (arm, own, written)
                for arm, records in trained.items()
                if (own := ess_share(records)) is not None and (written := ess_share(records, "as_written")) is not None
            ],
            "warnings": weight_warnings(trained),
            "proxies": rq4_report.proxies(self.recipes),
        }

    def tables(self, answer: Answer) -> Mapping[str, Any]:
        """Three rankings, all pairs, the paper's figures, the control, weights, training, recommendations."""
        results, published = answer.results, self.published(answer)
        trained = self._trained(answer)
        by_protocol = {
            protocol: arms_table(results, published.under(protocol), published if protocol == self.popular else None)
            for protocol in self.protocols
        }
        return {
            **by_protocol,
            "pairs": rq4_report.pairs_table(results, rq4_report.pairs(results, self.headline)),
            "paper": paper_table(published.compare(results)),
            "weights": weights_table({"": trained}, as_written=True),
            "epochs": epochs_table(trained),
            "recommendations": lists_table(results),
            "settings": settings_table(self.recipes),
        }

    def figures(self, answer: Answer) -> Mapping[str, Any]:
        """The paper's four metrics, validation along λ, training curves."""
        results, published = answer.results, self.published(answer)
        trained = self._trained(answer)
        dots = [dots_figure(results, measure, published) for measure in published.under(self.popular)]
        return {
            "beside": Figures(dots),
            "along": rq4_report.control_figure(answer),
            "learning": Figures([learning_figure(trained, "each epoch", "learning")]),
        }

    def csv(self, answer: Answer) -> list[dict[str, Any]]:
        """A row for each arm and measure, with the paper's figure."""
        published = self.published(answer)
        rows = paper_rows(answer.results, self.preset, lambda *_: published)
        return [{**row, "worlds": 0} for _, row in rows]


@lru_cache(maxsize=1)
def _cases(study: RQ4, replicate: int) -> RealCases:
    """The arms of a replicate, one after another in the same process, share its cases."""
    length, seed = study.recipe(BASE, replicate).model.length, study.replicate_seed(replicate)
    return RealCases.of(study.choice, study.negatives, study.validation, length, seed)


def _metrics(scorer: Scorer, test: Evaluator) -> dict[str, Any]:
    found = test.evaluate(scorer, resamples=1)
    return {"ranks": {STANDARD: ranks(found)}, "lists": list_metrics(found)}


def _weights(ready: Trainer) -> dict[str, Any] | None:
    """The weights as they were, and as the paper writes them: 1/θ̂, with no exponent and no clip."""
    if ready.weights is None or ready.propensity is None:
        return None
    slots = ready.task.slots
    parts = [ready.propensity(slots.part(at, at + _BLOCK)) for at in range(0, len(slots), _BLOCK)]
    as_written = diagnose(inverse(torch.cat(parts), 0.0, 1.0))
    return {**asdict(ready.weights), "as_written": asdict(as_written)}
