"""Real people: what do corrections help or harm where the test is without exposure bias, and what does a slice add?"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import model_validator

from unveil.data.fetch import data_home
from unveil.data.filters import Filters
from unveil.data.interactions import Interactions, Sequences
from unveil.data.splits import leave_one_out
from unveil.errors import AtLeastOne, UnveilError, check_ranges
from unveil.evaluation.labelled import LabelledTest, LabelledValidation, blocks, check_metric, evaluate
from unveil.evaluation.slice_calibration import Slice, SliceCalibration, calibrate, cross_fit, item_features
from unveil.models.baselines import fitted
from unveil.runs.labelled import read_test, similarity
from unveil.studies import arms, shipped
from unveil.studies.engine import Answer, Cell, Context, Source, Study
from unveil.studies.results import BASE, Measure, Results, verdict
from unveil.studies.trial import TrainingShare, resolved
from unveil.training.fit import prepare, validation_of
from unveil.training.recipe import Recipe
from unveil.wording import quantity

#: Arms that are fitted in seconds: the baseline, and its constants.
BASELINES: Mapping[str, Any] = {
    "most-popular": ("popularity", {}),
    "popularity-balanced": ("popularity", {"balance": 1.5}),
    "item-knn": ("item-knn", {"decay": 0.9}),
    "ease": ("ease", {"penalty": 5000.0, "decay": 1.0, "exact": 10**6}),
}
#: The network, where it is not SASRec, by the arm.
_NETWORKS = {"bert4rec": "bert4rec", "naive-validated": "sasrec"}
#: The arm whose epoch is chosen by the largest slice of half A, and not by held-out interactions.
_VALIDATED = "naive-validated"
#: β of the control arms: naive + β · log popularity, in standard deviations of it.
_CONTROLS = (-1.0, 0.5, 1.0, 4.0)
#: Arms that are calibrated too.
_CALIBRATED = (BASE, "wmf-distilled")
_WHOLE_HISTORY = 10**6
Data = tuple[Interactions, Sequences, LabelledTest]


class ByUser(Results):
    """Every value is the mean of a user over the replicates, so that units are users."""

    @classmethod
    def of(cls, frame: pl.DataFrame) -> "ByUser":
        others = [name for name in frame.columns if name not in ("replicate", "value")]
        mean = frame.group_by(others, maintain_order=True).agg(pl.col("value").mean())
        return super().of(mean.with_columns(pl.lit(0, pl.Int64).alias("replicate")).select(frame.columns))


class Unbiased(Study):
    """Arms trained on a log as it is, evaluated on users without exposure bias; half of them give the slices."""

    name: ClassVar[str] = "unbiased"
    title: ClassVar[str] = "What helps, and what harms, where there is no exposure bias?"
    template: ClassVar[str] = "unbiased.md.j2"
    extent: ClassVar[frozenset[str]] = frozenset({"log", "test", "candidates", "replicates", "estimators", "ordered"})
    defaults: ClassVar[Mapping[str, Any]] = {"min_rating": None}
    results_type: ClassVar[type[Results]] = ByUser
    log: str
    test: str
    candidates: str | None = None
    metric: str = "NDCG@10"
    min_rating: float | None = None  # ratings from which an item is liked, in the log and in the test
    ordered: bool = True  # whether the log says in which order things happened
    replicates: AtLeastOne = 3
    estimators: tuple[str, ...] = (*BASELINES, BASE, _VALIDATED)
    sizes: tuple[int, ...] = (10, 30, 100, 140)  # users of a slice
    preset: str = "quick"
    seed: int = 0
    changes: tuple[str, ...] = ()  # settings of all trainings, or of one estimator, as NAME=VALUE or ips:NAME=VALUE

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_ranges(self, "", seed="0 or more")
        if BASE not in self.estimators:
            found = ", ".join(self.estimators)
            raise UnveilError("all arms are compared with naive", where="--estimators", found=found, hint="Add naive.")
        check_metric(self.metric)
        if min(self.sizes, default=10) < 10:
            expected = "10 users or more"
            raise UnveilError("slices are too small", where="--sizes", found=min(self.sizes), expected=expected)
        for arm in self.estimators:
            if arm not in BASELINES:
                self.recipe(arm, 0)
        return self

    @property
    def headline(self) -> Measure:
        name, _, k = self.metric.partition("@")
        return Measure("labelled", "", name, int(k or 0))

    def open_data(self) -> Source:
        log, whole, test = data_of(self)
        usable = test.some(evaluate(fitted("popularity", whole), whole, test, 1).frame["user"].to_numpy())
        if min(map(len, self.halves(usable, log))) < 2:
            found, expected = len(np.unique(usable.user_R)), "two in each half with liked and other items"
            where = self.test or self.log
            raise UnveilError("too few users for two halves", where=where, found=found, expected=expected)
        own, other = map(len, self.halves(test, log))
        about = f"{log}; test: {quantity(own, 'user')} in half A, to learn or choose by, and {other:,} in half B"
        return Source(self.log, log.fingerprint() + test.fingerprint, about)

    def read(self) -> Data:
        """The log, its histories, and the test without the rows of what users have in them."""
        log = Filters(self.min_rating)(Interactions.read(self.log))
        whole = Sequences.of(log)
        how: Any = {"candidates": self.candidates, "seen": "skip", "min_rating": self.min_rating}
        return log, whole, read_test(self.test, log.users, log.items, whole, **how)

    def halves(self, test: LabelledTest, log: Interactions) -> tuple[NDArray[Any], NDArray[Any]]:
        """Users of half A, who give slices, and of half B, who are reported: by the first byte of SHA-256 of the id."""
        user_T = np.unique(test.user_R)
        even_T = np.array([sha256(raw.encode()).digest()[0] % 2 == 0 for raw in log.users.raw(user_T)], bool)
        return user_T[even_T], user_T[~even_T]

    def cells(self) -> Iterable[Cell]:
        """Every arm in every replicate; baselines once."""
        for arm in self.estimators:
            for replicate in range(1 if arm in BASELINES else self.replicates):
                at = {"replicate": replicate, "estimator": arm}
                yield Cell(f"r{replicate}-{arm}", at, 1.0 if arm in BASELINES else 10.0)

    def priority(self, cell: Cell) -> Any:
        return cell.at["replicate"]

    def recipe(self, arm: str, replicate: int) -> Recipe:
        """How an arm is trained: with popularity, unless its name or a setting names a propensity."""
        seed = int(np.random.SeedSequence([self.seed, replicate]).generate_state(1)[0])
        own = arms.settings(BASE if arm in _NETWORKS else arm, self.changes, seed, arms.POPULARITY)
        network = _NETWORKS.get(arm, "sasrec")
        return Recipe.preset(self.preset, network).changed({"model.name": network, "training.threads": 1}).changed(own)

    def fitted(self, cell: Cell, context: Context) -> tuple[Any, int]:
        """What scores items for an arm, a baseline or a network, and how much of a history it reads."""
        arm, (log, whole, test) = cell.at["estimator"], data_of(self)
        if arm in BASELINES:
            name, constants = BASELINES[arm]
            return fitted(name, whole, **constants), _WHOLE_HISTORY
        recipe, split = self.recipe(arm, cell.at["replicate"]), leave_one_out(whole)
        trainer = prepare(split.train, resolved(recipe, split.train, log), log=log)
        validation: Any = validation_of(split, recipe)
        if arm == _VALIDATED:
            own = np.random.default_rng([self.seed, cell.at["replicate"]]).permutation(self.halves(test, log)[0])
            validation = LabelledValidation(test.some(own[: max(self.sizes)]), split.train, self.metric)
        trainer.fit(validation, watch=TrainingShare(context.on_progress))
        return trainer.model, recipe.model.length

    def run_cell(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        """Fit an arm, and evaluate it on half B: as it is, with controls, and calibrated on slices of half A."""
        arm, (log, whole, test) = cell.at["estimator"], data_of(self)
        scorer, length = self.fitted(cell, context)
        vector_VD = similarity(log, log.items, whole) if arm in _CALIBRATED else None
        part = Slice.of(list(blocks(scorer, whole, test, length)), item_features(whole), vector_VD)
        own, other = (np.isin(part.user_T, half) for half in self.halves(test, log))
        reported, rng = part.some(other), np.random.default_rng([self.seed, cell.at["replicate"]])
        found, recipes = {arm: self._measured(reported)}, dict[str, str]()
        if arm == BASE:
            for beta in _CONTROLS:
                added = SliceCalibration("", 1.0, np.array([beta]), 0.0, beta * part.feature_VP[:, 0])
                found[f"{arm} (β = {beta:g})"] = self._measured(reported, added)
        if arm in _CALIBRATED:
            for size in (size for size in self.sizes if size <= own.sum()):
                small = part.some(own).some(rng.permutation(int(own.sum()))[:size])
                chosen = cross_fit([small], rng, self.metric)
                name = f"{arm} (slice of {size})"
                recipes[name] = chosen.names[chosen.best][1]
                found[name] = self._measured(reported, calibrate(small, rng, recipes[name]))
        return {"user": reported.user_T.tolist(), "found": found, "recipes": recipes}

    def _measured(self, part: Slice, calibration: SliceCalibration | None = None) -> dict[str, list[float]]:
        names = list(dict.fromkeys((self.metric, "NDCG@10", "Recall@100", "AUC")))
        return {name: value_T.round(6).tolist() for name, value_T in part.metrics(names, calibration).items()}

    def rows(self, cell: Cell, record: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
        for arm, measured in record["found"].items():
            for label, values in measured.items():
                metric, _, k = label.partition("@")
                shared = {"estimator": arm, "evaluation": "labelled", "metric": metric, "k": int(k or 0)}
                for user, value in zip(record["user"], values, strict=True):
                    yield {**shared, "user": user, "value": value}

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        tests = answer.results.against(self.headline)
        return {"against_naive": {arm: vars(test) for arm, test in tests.items()}}

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        tests = answer.results.against(self.headline)
        groups: dict[str, list[str]] = {"above": [], "below": [], "level": []}
        for arm, test in sorted(tests.items(), key=lambda pair: -pair[1].difference):
            groups[verdict(test)].append(arm)
        return {"headline": self.headline, "tests": tests, "groups": groups}


def settings_of(name: str, folder: Path | None) -> dict[str, Any]:
    """Files and settings of known data (unbiased.toml); without a folder, of the one that `unveil data fetch` makes."""
    known = shipped("unbiased")[name]
    folder = data_home() / known["home"] if folder is None else folder
    for each in known["files"]:
        if all((folder / file).is_file() for file in each.values()):
            return {**known.get("settings", {}), **{role: str(folder / file) for role, file in each.items()}}
    expected = ", or ".join(", ".join(each.values()) for each in known["files"])
    hint = "Name their folder after --data."
    raise UnveilError(f"not the files of {name}", where=folder, expected=expected, hint=hint)


@lru_cache(maxsize=1)
def data_of(study: Unbiased) -> Data:
    """Read once in a process."""
    return study.read()
