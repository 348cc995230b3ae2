from pathlib import Path

import numpy as np
import pytest

from tests.evaluation.small import random_histories
from unveil.data.splits import leave_one_out
from unveil.errors import UnveilError
from unveil.evaluation.evaluator import Evaluator
from unveil.evaluation.result import Evaluation, column, parts
from unveil.models.baselines import Random


@pytest.fixture
def evaluation() -> Evaluation:
    split = leave_one_out(random_histories(np.random.default_rng(0)))
    evaluator = Evaluator.of(split.test, split.whole, split.train, length=8, uniform=10, popular=5)
    return evaluator.evaluate(Random(split.whole.n_items))


def test_names_of_columns() -> None:
    assert parts("uniform-100:NDCG@10") == ("uniform-100", "NDCG", 10)
    assert parts("truth:RankCorrelation") == ("truth", "RankCorrelation", 0)
    for name in ("uniform-100:NDCG@10", "truth:RankCorrelation"):
        assert column(*parts(name)) == name


def test_every_mean_lies_in_its_interval_and_is_the_mean_of_its_column(evaluation: Evaluation) -> None:
    for protocol, metric, k, mean, low, high, n in evaluation.summary.rows():
        assert n == 30
        if metric in ("Coverage", "Gini"):
            assert low is high is None
            continue
        assert low <= mean <= high
        assert mean == pytest.approx(evaluation.frame[f"{protocol}:{metric}@{k}"].mean())
        assert evaluation.value(protocol, metric, k) == mean


def test_written_and_read_it_is_the_same(evaluation: Evaluation, tmp_path: Path) -> None:
    evaluation.write(tmp_path / "run")
    again = Evaluation.read(tmp_path / "run")
    assert again.frame.equals(evaluation.frame)
    assert again.summary.equals(evaluation.summary)
    assert again.fingerprint == evaluation.fingerprint
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["cases.parquet", "metrics.json"]


def test_an_unknown_figure_is_refused(evaluation: Evaluation) -> None:
    with pytest.raises(UnveilError, match="no such figure: found 'full:NDCG@7'"):
        evaluation.value("full", "NDCG", 7)


@pytest.mark.parametrize(
    "damage",
    ["nothing", "no cases", "not json", "nested", "not an evaluation", "no fingerprint", "words", "other cases", "cut"],
)
def test_a_folder_that_is_no_evaluation_is_refused(evaluation: Evaluation, tmp_path: Path, damage: str) -> None:
    evaluation.write(tmp_path)
    cases, metrics = tmp_path / "cases.parquet", tmp_path / "metrics.json"
    match damage:
        case "nothing":
            metrics.unlink()
        case "no cases":
            cases.unlink()
        case "not json":
            metrics.write_text("{")
        case "nested":
            metrics.write_text("[" * 100_000)
        case "no fingerprint":
            metrics.write_text(metrics.read_text().replace("fingerprint", "fingers"))
        case "words":
            metrics.write_text(metrics.read_text().replace('"n": ', '"n": "so many", "m": '))
        case "not an evaluation":
            metrics.write_text("[1, 2]")
        case "other cases":
            evaluation.frame.head(3).write_parquet(cases)
        case "cut":
            cases.write_bytes(cases.read_bytes()[:-10])
    with pytest.raises(UnveilError, match=r"no evaluation here|not an evaluation|damaged"):
        Evaluation.read(tmp_path)
