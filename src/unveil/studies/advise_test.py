"""`unveil advise` where a test without exposure bias judges: random rows of the log, or labels from elsewhere."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from pydantic import Field

from unveil.data.filters import LogSource
from unveil.data.interactions import Interactions, Sequences
from unveil.data.splits import leave_one_out
from unveil.errors import UnveilError
from unveil.evaluation.labelled import PROTOCOL, LabelledTest, evaluate
from unveil.evaluation.statistics import Paired
from unveil.report.page import Figures
from unveil.runs.labelled import read_test
from unveil.serving.recommendations import read_ids
from unveil.studies import arms, candidates, tables
from unveil.studies.advise_plan import CONFIG, config_of, write_advised
from unveil.studies.engine import Answer, Cell, Context, Report, Source
from unveil.studies.paper import Published
from unveil.studies.results import BASE, Measure, Results, verdict
from unveil.studies.trial import TrainingShare, resolved
from unveil.studies.unbiased import BASELINES, Unbiased
from unveil.training.fit import prepare, validation_of
from unveil.wording import quantity

#: Halves of the labelled users: one chooses, the other tests the choice.
CHOICE, TEST = "A", "B"
#: What is tried, unless options say otherwise.
DEFAULTS: Mapping[str, tuple[str, ...]] = {
    "estimators": ("itps", "corrected", "wmf-distilled", "wmf-distilled-rated"),
    "propensities": ("logged", "recorded", "popularity"),
    "clips": ("5%",),
}
_WHOLE_HISTORY = 10**6
#: With fewer positives of a user than a list has places, most lists of ten have none: AUC says more.
_LIST = 10


class Choice(NamedTuple):
    """The arm with the highest mean on half A, and its test against naive on half B."""

    arm: str
    test: Paired

    @classmethod
    def of(cls, results: Results, names: Iterable[str], measure: Measure) -> "Choice":
        """One choice, one test: nothing is to be corrected."""
        arm = max(names, key=lambda name: results.at(half=CHOICE).mean(name, measure))
        return cls(arm, results.at(half=TEST).difference(arm, BASE, measure))

    @property
    def advised(self) -> str:
        """The arm, if it is significantly above naive; else naive."""
        return self.arm if verdict(self.test) == "above" else BASE


class AdviseByTest(Unbiased):
    """Baselines and estimators on the log as it is; chosen on half of the labelled users, tested on the others."""

    name: ClassVar[str] = "advise-test"
    title: ClassVar[str] = "Which model for this log?"
    template: ClassVar[str] = "advise_test.md.j2"
    source: LogSource = Field(default_factory=LogSource, exclude=True)  # `log` is its name
    refused: dict[str, str] = Field(default_factory=dict, exclude=True)

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    @classmethod
    def of(cls, source: LogSource, test: str = "", *, metric: str | None = None, **options: Any) -> Self:
        """The study of a log and a test, by default its own random rows; of options, None is as usual."""
        given = {name: value for name, value in options.items() if value is not None}
        tried = {name: given.pop(name, value) for name, value in DEFAULTS.items()}
        fixed = {"log": source.log, "test": test, "source": source, "sizes": (), **given}
        bare = cls(**fixed, estimators=(BASE,))
        log, _, labels = data_of(bare)
        names = [name for name in candidates.from_a_log() if arms.family(name) in tried["propensities"]]
        names = names if tried["propensities"] else candidates.from_a_log()
        refused = candidates.probe(names, log, bare.recipe(BASE, 0).model.length)
        able = dict.fromkeys(arms.family(name) for name, why in refused.items() if not why)
        found, unfit = candidates.for_log(tried["estimators"], sorted(able), tried["clips"], log)
        why = {arms.family(name): reason for name, reason in refused.items() if reason} | unfit
        if metric is None:
            few = np.median(np.bincount(labels.user_R, labels.label_R)[np.unique(labels.user_R)]) < _LIST
            metric = "AUC" if few else f"NDCG@{_LIST}"
        return cls(**fixed, metric=metric, refused=why, estimators=(*BASELINES, *found.usable))

    def open_data(self) -> Source:
        """The log without its random rows, and the test, read before any training."""
        log, _, test = data_of(self)
        own, other = self.halves(test, log)
        if len(own) < 2 or len(other) < 2:
            found = f"{len(own)} and {len(other)} users"
            raise UnveilError("too few users for two halves", where=self.test or self.log, found=found)
        about = f"{log}; test: {quantity(len(own), 'user')} to choose by, {quantity(len(other), 'user')} to test on"
        return Source(self.log, log.fingerprint() + test.fingerprint, about)

    @property
    def shown(self) -> list[str]:
        """The metrics that are reported, that of the choice first."""
        return list(dict.fromkeys((self.metric, f"NDCG@{_LIST}", "Recall@100", "AUC")))

    def run_cell(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        """Fit an arm, and evaluate it on all labelled users."""
        arm, (log, whole, test) = cell.at["estimator"], data_of(self)
        if arm in BASELINES:
            scorer, length = BASELINES[arm](whole), _WHOLE_HISTORY
        else:
            split, recipe = leave_one_out(whole), self.recipe(arm, cell.at["replicate"])
            trainer = prepare(split.train, resolved(recipe, split.train, log), log=log)
            trainer.fit(validation_of(split, recipe), watch=TrainingShare(context.on_progress))
            scorer, length = trainer.model, recipe.model.length
        ks = sorted({int(name.partition("@")[2] or _LIST) for name in self.shown})
        measured = evaluate(scorer, whole, test, length, ks=ks).frame
        user_T = measured["user"].to_numpy()
        first = np.isin(user_T, self.halves(test, log)[0]).tolist()
        found = {name: measured[f"{PROTOCOL}:{name}"].round(6).to_list() for name in self.shown}
        return {"user": user_T.tolist(), "first": first, "found": {arm: found}}

    def rows(self, cell: Cell, record: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
        """Each metric of each user, by half."""
        half = {user: CHOICE if first else TEST for user, first in zip(record["user"], record["first"], strict=True)}
        for row in super().rows(cell, record):
            yield {"half": half[row["user"]], **row}

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        """The choice among all, and that among networks, each with its test."""
        networks = [arm for arm in self.estimators if arm not in BASELINES]
        chosen = {"all": self.estimators, "networks": networks}
        found = {name: Choice.of(answer.results, names, self.headline) for name, names in chosen.items()}
        return {
            "advice": {
                name: {"chosen": each.arm, "advised": each.advised, "test": vars(each.test)}
                for name, each in found.items()
            }
        }

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        """The choices, the means of both halves, and the commands that come next."""
        networks = [arm for arm in self.estimators if arm not in BASELINES]
        results, run = answer.results, Path("run")
        halves = {half: results.at(half=half) for half in (CHOICE, TEST)}
        slice_of = ["--slice", self.test or self.log, *(["--candidates", self.candidates] if self.candidates else [])]
        return {
            "choice": Choice.of(results, self.estimators, self.headline),
            "network": Choice.of(results, networks, self.headline),
            "headline": self.headline,
            "halves": halves,
            "order": sorted(self.estimators, key=lambda arm: -halves[CHOICE].mean(arm, self.headline)),
            "users": {half: len(part.sample(BASE, self.headline)) for half, part in halves.items()},
            "baselines": BASELINES,
            "train": ["unveil", "train", self.log, "--config", str(answer.folder / CONFIG), "-o", str(run)],
            "calibrate": ["unveil", "calibrate", str(run), *slice_of, "--metric", self.metric],
        }

    def tables(self, answer: Answer) -> Mapping[str, Any]:
        """Every arm under every metric, on the half that tests."""
        measures = [self.headline, *(each for each in answer.results.measures if each != self.headline)]
        return {"arms": tables.arms_table(answer.results.at(half=TEST), measures)}

    def figures(self, answer: Answer) -> Mapping[str, Any]:
        """The headline of every arm, on the half that tests."""
        figure = tables.dots_figure(answer.results.at(half=TEST), self.headline, Published.real(None))
        return {"means": Figures([figure])}


def has_random_rows(log: Interactions) -> bool:
    """Whether some rows, not all, were shown by a random policy."""
    return log.randomised is not None and bool(log.randomised.any()) and not log.randomised.all()


@lru_cache(maxsize=1)
def data_of(study: AdviseByTest) -> tuple[Interactions, Sequences, LabelledTest]:
    """The log without its random rows, its histories, and the test. Read once in a process."""
    log, rows = study.source.load(), None
    if has_random_rows(log) and log.randomised is not None:
        log, rows = log.where(~log.randomised).compact(), log.where(log.randomised)
    sequences, given = Sequences.of(log), study._candidates
    if study.test:
        return log, sequences, read_test(study.test, log.users, log.items, sequences, candidates=given, seen="skip")
    if rows is None:
        raise UnveilError("no row was shown at random", where=study.log, hint="Name a labelled test with --test.")
    named = None if given is None else read_ids(given, "item")
    known = {"candidates": named, "keep_seen": False, "where": study.log}
    return log, sequences, LabelledTest.of(rows, log.users, log.items, sequences, **known)


def write_test_config(report: Report) -> None:
    """The network that is advised, or the best of them where a baseline is, for `unveil train LOG --config`."""
    study = report.answer.study
    arm = report.findings["advice"]["networks"]["advised"]
    config = config_of(study.recipe(arm, 0), study.source, data_of(study)[0], study.preset)
    write_advised(config, report)
