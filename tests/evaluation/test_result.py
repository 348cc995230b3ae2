"""Tests."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import ttest_rel

from tests.evaluation.small import Table, random_histories
from tests.scorers import Constant
from unveil.data.splits import leave_one_out
from unveil.errors import UnveilError
from unveil.evaluation.evaluator import Evaluator
from unveil.evaluation.ranking import Scorer
from unveil.evaluation.result import Evaluation, column, compare, parts
from unveil.evaluation.statistics import holm
from unveil.models.baselines import Random, fitted


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


SPLIT = leave_one_out(random_histories(np.random.default_rng(0), n_users=200))
EVALUATOR = Evaluator.of(SPLIT.test, SPLIT.whole, SPLIT.train, length=8, uniform=10, popular=5)


@pytest.fixture(scope="module")
def evaluations() -> dict[str, Evaluation]:
    scorers: dict[str, Scorer] = {
        "popular": fitted("popularity", SPLIT.train),
        "random": Random(40),
        "constant": Constant(40),
    }
    return {name: EVALUATOR.evaluate(scorer, resamples=50) for name, scorer in scorers.items()}


def test_one_family_of_tests_over_the_whole_table(evaluations: dict[str, Evaluation]) -> None:
    tests = compare(evaluations).tests
    assert len(tests) == (3 * 3 * 2 + 2) * 3  # figures per user × pairs
    for row in tests.iter_rows(named=True):
        column = f"{row['protocol']}:{row['metric']}@{row['k']}"
        a, b = (evaluations[row[side]].frame.sort("user")[column].to_numpy() for side in "ab")
        assert row["difference"] == pytest.approx(a.mean() - b.mean())
        assert row["n"] == 200
        if not np.array_equal(a, b):
            assert row["p"] == pytest.approx(ttest_rel(a, b).pvalue)
    assert tests["p_holm"].to_list() == holm(tests["p"].to_numpy()).tolist()


def test_places_and_marks(evaluations: dict[str, Evaluation]) -> None:
    comparison = compare(evaluations)
    figure = comparison.table.filter(
        (pl.col("protocol") == "full") & (pl.col("metric") == "Recall") & (pl.col("k") == 10)
    )
    places = dict(figure.select("model", "place").rows())
    assert places["popular"] == 1
    assert places["constant"] == 3
    assert dict(figure.select("model", "significant").rows()) == {"popular": True, "random": False, "constant": False}
    assert figure["mean"].to_list() == [e.value("full", "Recall", 10) for e in evaluations.values()]


def test_a_mark_is_the_test_of_best_against_next_best(evaluations: dict[str, Evaluation]) -> None:
    comparison = compare(evaluations)
    p_holm = {
        (*row[:3], frozenset(row[3:5])): row[5]
        for row in comparison.tests.select("protocol", "metric", "k", "a", "b", "p_holm").rows()
    }
    for figure, group in comparison.table.group_by("protocol", "metric", "k"):
        order = group.sort("place")
        marked = order.filter("significant")["model"].to_list()
        if order["place"].to_list()[:2] == [1, 2] and figure[1] not in ("Coverage", "Gini"):
            p = p_holm[(*figure, frozenset(order["model"].to_list()[:2]))]
            assert marked == ([order["model"][0]] if p < 0.05 else [])
        else:
            assert marked == []


def test_some_metrics_are_better_when_lower(evaluations: dict[str, Evaluation]) -> None:
    table = compare(evaluations).table
    for metric in ("ARP", "Gini"):
        figure = table.filter(pl.col("metric") == metric).sort("place")
        assert figure["mean"].is_sorted()
    assert table.filter(pl.col("metric") == "EFD").sort("place")["mean"].is_sorted(descending=True)


def test_no_asterisk_for_equals() -> None:
    same = EVALUATOR.evaluate(Table.drawn(np.random.default_rng(1), 40), resamples=5)
    comparison = compare({"one": same, "two": same})
    assert not comparison.table["significant"].any()
    assert set(comparison.table["place"]) == {1}
    assert set(comparison.tests["p_holm"]) == {1.0}


def test_the_best_must_beat_all_who_share_the_second_place(evaluations: dict[str, Evaluation]) -> None:
    pair = {"first": evaluations["random"], "second": evaluations["random"]}
    table = compare({"popular": evaluations["popular"], **pair}).table
    figure = table.filter((pl.col("protocol") == "full") & (pl.col("metric") == "NDCG") & (pl.col("k") == 10))
    assert figure["place"].to_list() == [1, 2, 2]
    assert figure["significant"].to_list() == [True, False, False]


def test_figures_must_be_shared(evaluations: dict[str, Evaluation]) -> None:
    other = EVALUATOR.evaluate(Constant(40), k=(3,), top=3, resamples=5)
    with pytest.raises(UnveilError, match="no figure in common"):
        compare({"popular": evaluations["popular"], "other": other})


def test_the_order_of_the_models_changes_no_finding(evaluations: dict[str, Evaluation]) -> None:
    turned = compare(dict(reversed(evaluations.items())))
    keys = ["protocol", "metric", "k", "model"]
    assert compare(evaluations).table.sort(keys).equals(turned.table.sort(keys))


def test_users_are_paired_by_who_they_are(evaluations: dict[str, Evaluation]) -> None:
    shuffled = {
        name: replace(e, frame=e.frame.sample(fraction=1, shuffle=True, seed=i))
        for i, (name, e) in enumerate(evaluations.items())
    }
    assert compare(shuffled).tests["p"].to_list() == pytest.approx(compare(evaluations).tests["p"].to_list())


def test_other_cases_or_negatives_are_refused(evaluations: dict[str, Evaluation]) -> None:
    split, scorer = SPLIT, Constant(40)
    other_negatives = Evaluator.of(split.test, split.whole, split.train, length=8, uniform=10, popular=5, seed=1)
    other_cases = Evaluator.of(split.valid, split.whole, split.train, length=8, uniform=10, popular=5)
    for other in (other_negatives, other_cases):
        with pytest.raises(UnveilError, match=r"popular and other: .* different cases or negatives"):
            compare({"popular": evaluations["popular"], "other": other.evaluate(scorer, resamples=5)})


def test_one_alone_cannot_be_compared(evaluations: dict[str, Evaluation]) -> None:
    with pytest.raises(UnveilError, match="nothing to compare with"):
        compare({"popular": evaluations["popular"]})


def test_more_models_need_more_evidence(evaluations: dict[str, Evaluation]) -> None:
    few = compare({name: evaluations[name] for name in ("popular", "random")}).tests
    many = compare(evaluations).tests.filter((pl.col("a") == "popular") & (pl.col("b") == "random"))
    assert few["p"].to_list() == many["p"].to_list()
    assert (many["p_holm"] >= few["p_holm"]).all()
    assert len(list(combinations(evaluations, 2))) == 3
