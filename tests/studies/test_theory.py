"""The study of the theory in small: figures, files, a page, and sentences that follow the figures."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.pages import Outline, faults
from unveil.errors import UnveilError
from unveil.report.page import render
from unveil.runs.workers import Inline
from unveil.studies.engine import Answer, Report, run, write
from unveil.studies.theory import Theory, relative

SMALL = Theory(users=12, items=8, steps=4, draws=4, logs=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("theory")


@pytest.fixture(scope="module")
def answer(folder: Path) -> Answer:
    return run(SMALL, folder, Inline())


@pytest.fixture(scope="module")
def results(answer: Answer, folder: Path) -> dict[str, Any]:
    write(answer, folder, ["unveil", "theory"])
    return dict(json.loads((folder / "results.json").read_text(encoding="utf-8")))


def changed(answer: Answer, cell: str, part: str, **values: object) -> str:
    """All sentences, if rows of a record had other values."""
    rows = [{**row, **values} for row in answer.records[cell][part]]
    records = {**answer.records, cell: {**answer.records[cell], part: rows}}
    return " ".join(Report(Answer(SMALL, answer.source, answer.cells, records)).paragraphs)


def test_the_page_is_well_formed(answer: Answer) -> None:
    html = render(Report(answer).page())
    assert faults(html) == []
    assert Outline(html).tags["svg"] == 3


def test_the_json_has_every_part(results: dict[str, Any]) -> None:
    assert {"topic", "claim", "setting", "claimed", "found", "holds", "bias", "formula"} <= set(results["findings"][0])
    assert {row["choice"] for row in results["choices"]} == {row["choice"] for row in results["monte_carlo"]}
    assert {row["severity"] for row in results["minimisers"]} == {1.0, 2.0, 3.0, 4.0}


def test_the_table_has_every_number(folder: Path, results: dict[str, Any]) -> None:
    table = pl.read_csv(folder / "results.csv")
    counted = dict(table.group_by(pl.col("part").str.split(":").list.first()).len().iter_rows())
    assert counted == {
        "claim": len(results["findings"]),
        "choice": 3 * len(results["choices"]),
        "drawn logs": len(results["monte_carlo"]),
        "minimiser": 6 * len(results["minimisers"]) - 4,  # the corrected softmax estimates no ideal loss
    }
    assert table["value"].null_count() == 0


def test_sentences_follow_the_figures(answer: Answer) -> None:
    whole = " ".join(Report(answer).paragraphs)
    assert "15 of 18 claims" in whole
    unbiased = sum(each["claimed"] == "unbiased" for each in SMALL.findings(answer)["findings"])
    broken = changed(answer, "exact", "claims", compared={"expected": 2.0, "ideal": 1.0}, formula=None)
    assert f"{18 - unbiased} of 18 claims" in broken
    assert "ITPS is unbiased wherever" in whole
    assert "ITPS is off by up to +25%" in changed(
        answer, "exact", "choosers", bias={"ITPS": 0.25, "naive": 0, "IPS": 0}
    )
    assert "Use more draws" in changed(answer, "draws-rational_all", "estimated", formula=100.0)


@pytest.mark.parametrize(("low", "high", "position"), [(0.6, 0.7, "above"), (0.1, 0.2, "below"), (0.4, 0.6, "not ")])
def test_one_log_is_read_by_its_intervals(answer: Answer, low: float, high: float, position: str) -> None:
    rows = [
        {**row, "low": low, "high": high} if row["estimator"] == "ITPS" else {**row, "low": 0.45, "high": 0.55}
        for row in answer.records["minima-p1"]["minimisers"]
    ]
    records = {**answer.records, "minima-p1": {**answer.records["minima-p1"], "minimisers": rows}}
    first = SMALL.facts(Answer(SMALL, answer.source, answer.cells, records))["one_log"][0]
    assert first[2].startswith(position)


@pytest.mark.parametrize(
    ("bias", "text"), [(0.366, "+37%"), (-0.0123, "−1.2%"), (0.00277, "+0.277%"), (3e-8, "0"), (4.31, "+431%")]
)
def test_biases_as_people_write_them(bias: float, text: str) -> None:
    assert relative(bias) == text


@pytest.mark.parametrize("severity", [0.0, -1.0, 10.5, float("nan"), float("inf")])
def test_a_severity_out_of_range_is_refused(severity: float) -> None:
    with pytest.raises(UnveilError, match="the severity is out of range"):
        Theory(severity=severity)


def test_an_interval_needs_draws() -> None:
    with pytest.raises(UnveilError, match="an interval needs draws"):
        Theory(draws=1)
