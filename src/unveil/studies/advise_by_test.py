"""`unveil advise` where a test without exposure bias judges: random rows of the log, or labels from elsewhere."""

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from pydantic import Field

from unveil.data.filters import LogSource
from unveil.data.indexing import read_ids
from unveil.data.interactions import Interactions, Sequences
from unveil.evaluation.labelled import PROTOCOL, LabelledTest, evaluate
from unveil.evaluation.statistics import Paired
from unveil.runs.labelled import read_test
from unveil.studies import arms, candidates, shipped
from unveil.studies.decision import CONFIG, config_of, write_advised
from unveil.studies.engine import Answer, Cell, Context, Report
from unveil.studies.results import BASE, Measure, Results, verdict
from unveil.studies.unbiased import BASELINES, Data, Unbiased, data_of

#: Places of a list: with fewer positives of a user most lists have none, and AUC says more.
_LIST = 10
#: Users that propensities are fitted to, to find out which can be.
_LOOKED_AT = 500


class Choice(NamedTuple):
    """The arm with the highest mean on half A, and its test against naive on half B: one choice, one test."""

    arm: str
    test: Paired

    @classmethod
    def of(cls, results: Results, names: Iterable[str], measure: Measure) -> Self:
        arm = max(names, key=lambda name: results.at(half="A").mean(name, measure))
        return cls(arm, results.at(half="B").difference(arm, BASE, measure))

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
        """The study of a log and a test, by default its own random rows."""
        tried = {name: options.pop(name, value) for name, value in shipped("defaults")["advise-test"].items()}
        fixed = {"log": source.log, "test": test, "source": source, "sizes": (), **options}
        bare = cls(**fixed, estimators=(BASE,))
        log, _, labels = data_of(bare)
        wanted = tried["propensities"] or arms.families()
        names = [name for name in candidates.from_a_log() if arms.family(name) in wanted]
        some = candidates.some_users(log, _LOOKED_AT, bare.seed)
        why = candidates.probe(names, some, bare.recipe(BASE, 0).model.length)
        able = sorted({arms.family(name) for name in names if not why[name]})
        found, unfit = candidates.for_log(tried["estimators"], able, tried["clips"], log)
        unfit |= {arms.family(name): reason for name, reason in why.items() if reason}
        if metric is None:
            metric = "AUC" if labels.label_R.sum() < _LIST * len(np.unique(labels.user_R)) else f"NDCG@{_LIST}"
        return cls(**fixed, metric=metric, refused=unfit, estimators=(*BASELINES, *found.usable))

    def read(self) -> Data:
        """The log without its random rows, its histories, and the test."""
        log, random, given = self.source.load(), None, self.candidates
        if has_random_rows(log) and log.randomised is not None:
            random, log = log.where(log.randomised), log.where(~log.randomised).compact()
        sequences = Sequences.of(log)
        known = (log.users, log.items, sequences)
        if self.test or random is None:
            return log, sequences, read_test(self.test, *known, candidates=given, seen="skip")
        named = None if given is None else read_ids(Path(given), "item")
        return log, sequences, LabelledTest.of(random, *known, candidates=named, keep_seen=False, where=self.log)

    def run_cell(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        """Fit an arm, and evaluate it on all labelled users."""
        log, whole, test = data_of(self)
        scorer, length = self.fitted(cell, context)
        names = dict.fromkeys((self.metric, f"NDCG@{_LIST}", "AUC"))
        measured = evaluate(scorer, whole, test, length, ks=(_LIST, self.headline.k or _LIST)).frame
        user_T = measured["user"].to_numpy()
        half_T = np.where(np.isin(user_T, self.halves(test, log)[0]), "A", "B")
        found = {name: measured[f"{PROTOCOL}:{name}"].round(6).to_list() for name in names}
        return {"user": user_T.tolist(), "half": half_T.tolist(), "found": {cell.at["estimator"]: found}}

    def rows(self, cell: Cell, record: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
        half = dict(zip(record["user"], record["half"], strict=True))
        return ({"half": half[row["user"]], **row} for row in super().rows(cell, record))

    def choices(self, results: Results) -> dict[str, Choice]:
        """Among all arms, and among those that are networks."""
        networks = [arm for arm in self.estimators if arm not in BASELINES]
        return {
            name: Choice.of(results, names, self.headline)
            for name, names in {"choice": self.estimators, "network": networks}.items()
        }

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        found = self.choices(answer.results).items()
        return {"advice": {name: {**each._asdict(), "test": vars(each.test)} for name, each in found}}

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        halves = {half: answer.results.at(half=half) for half in ("A", "B")}
        named = ["--candidates", self.candidates] if self.candidates else []
        slice_of = ["--slice", self.test or self.log, *named, "--metric", self.metric]
        return {
            **self.choices(answer.results),
            "headline": self.headline,
            "halves": halves,
            "order": sorted(self.estimators, key=lambda arm: -halves["A"].mean(arm, self.headline)),
            "baselines": BASELINES,
            "train": shlex.join(["unveil", "train", self.log, "--config", str(answer.folder / CONFIG), "-o", "run"]),
            "calibrate": shlex.join(["unveil", "calibrate", "run", *slice_of]),
        }


def has_random_rows(log: Interactions) -> bool:
    """Whether some rows, not all, were shown by a random policy."""
    return log.randomised is not None and bool(log.randomised.any()) and not log.randomised.all()


def write_test_config(report: Report) -> None:
    """The network that is advised, or the best of them where a baseline is, for `unveil train LOG --config`."""
    study = report.answer.study
    recipe = study.recipe(study.choices(report.answer.results)["network"].advised, 0)
    write_advised(config_of(recipe, study.source, data_of(study)[0], study.preset), report)
