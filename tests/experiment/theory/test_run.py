"""The whole of it in small: the same every time, on file, on a page, and in words that the figures choose."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from tests.pages import Outline, faults
from unveil.errors import UnveilError
from unveil.experiment.theory import words
from unveil.experiment.theory.enumerated import Compared
from unveil.experiment.theory.files import results, table
from unveil.experiment.theory.page import theory_page
from unveil.experiment.theory.run import Settings, Theory, compute, run_theory
from unveil.experiment.theory.text import interval, relative
from unveil.report.page import render

SMALL = Settings(users=12, items=8, steps=4, draws=4, logs=2)


@pytest.fixture(scope="module")
def told() -> list[tuple[int, int]]:
    return []


@pytest.fixture(scope="module")
def theory(told: list[tuple[int, int]]) -> Theory:
    return compute(SMALL, lambda done, total: told.append((done, total)))


FILES = ["figures", "index.html", "theory.csv", "theory.json"]


def test_the_same_settings_give_the_same_files(theory: Theory, tmp_path: Path) -> None:
    run_theory(SMALL, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES
    assert (tmp_path / "out" / "index.html").read_text(encoding="utf-8") == render(theory_page(theory))
    assert json.loads((tmp_path / "out" / "theory.json").read_text()) == json.loads(json.dumps(results(theory)))
    assert (tmp_path / "out" / "theory.csv").read_text() == table(theory).write_csv()


def test_the_page_is_well_formed(theory: Theory) -> None:
    html = render(theory_page(theory))
    assert faults(html) == []
    outline = Outline(html)
    assert outline.tags["svg"] == 3
    assert outline.tags["h2"] == 6


def test_the_json_says_what_a_program_needs(theory: Theory) -> None:
    found = json.loads(json.dumps(results(theory)))
    assert found["command"] == "unveil theory --severity 1 --seed 0 --draws 4"
    assert {"topic", "claim", "setting", "claimed", "found", "holds", "bias", "formula"} <= set(found["findings"][0])
    assert {row["choice"] for row in found["choices"]} == {row["choice"] for row in found["monte_carlo"]}
    assert {row["severity"] for row in found["minimisers"]} == {1.0, 2.0, 3.0, 4.0}


def test_the_table_has_every_number(theory: Theory) -> None:
    found = table(theory)
    counted = dict(found.group_by(pl.col("part").str.split(":").list.first()).len().iter_rows())
    assert counted == {
        "claim": len(theory.findings),
        "choice": 3 * len(theory.choosers),
        "drawn logs": len(theory.estimated),
        "minimiser": 6 * len(theory.minimisers) - 4,  # the corrected softmax estimates no ideal loss
    }
    assert found["value"].null_count() == 0


def test_the_words_follow_the_figures(theory: Theory) -> None:
    assert "15 of 18 claims hold." in words.claims(theory.findings)
    broken = [replace(finding, compared=Compared(2.0, 1.0), formula=None) for finding in theory.findings]
    unbiased = sum(finding.claimed == "unbiased" for finding in broken)
    assert f"{len(broken) - unbiased} of {len(broken)} claims hold." in words.claims(broken)
    assert "ITPS is unbiased wherever the choice does not depend on exposure" in words.by_users(theory)
    off = [replace(row, bias={**row.bias, "ITPS": 0.25}) for row in theory.choosers]
    assert "ITPS is off by up to +25%" in words.by_users(replace(theory, choosers=off))
    wrong = [replace(row, formula=row.high + 1) for row in theory.estimated]
    assert f"0 of {len(wrong)} intervals hold" in words.drawn(replace(theory, estimated=wrong))
    assert "Draw more" in words.drawn(replace(theory, estimated=wrong))
    right = [replace(row, formula=row.mean) for row in theory.estimated]
    assert "Draw more" not in words.drawn(replace(theory, estimated=right))
    learns = {choice: {**row, "naive": 0.5} for choice, row in theory.distances.items()}
    assert "nothing but favourites" in words.minima(theory)
    assert "nothing but favourites" not in words.minima(replace(theory, distances=learns))


def test_one_log_is_read_by_its_intervals(theory: Theory) -> None:
    def with_itps(low: float, high: float) -> str:
        rows = [
            replace(row, log_first=(low + high) / 2, low=low, high=high)
            if row.estimator == "ITPS"
            else replace(row, log_first=0.5, low=0.45, high=0.55)
            for row in theory.minimisers
        ]
        return words.severities(replace(theory, minimisers=rows))[-1]

    assert "above the naive 50%" in with_itps(0.6, 0.7)
    assert "below the naive 50%" in with_itps(0.1, 0.2)
    assert "not to be told from the naive 50%" in with_itps(0.4, 0.6)


@pytest.mark.parametrize(
    ("bias", "text"), [(0.366, "+37%"), (-0.0123, "−1.2%"), (0.00277, "+0.277%"), (3e-8, "0"), (4.31, "+431%")]
)
def test_biases_as_people_write_them(bias: float, text: str) -> None:
    assert relative(bias) == text


def test_intervals_as_people_write_them() -> None:
    assert interval(-0.0151, 0.2) == "[−1.5%, +20.0%]"


@pytest.mark.parametrize("severity", [0.0, -1.0, 10.5, float("nan"), float("inf")])
def test_a_severity_out_of_range_is_refused(severity: float) -> None:
    with pytest.raises(UnveilError, match="the severity is out of range"):
        Settings(severity=severity)


def test_an_interval_needs_draws() -> None:
    with pytest.raises(UnveilError, match="an interval needs draws"):
        Settings(draws=1)


def test_an_occupied_folder_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UnveilError, match="not empty"):
        run_theory(Settings(), tmp_path)  # the full size: would take long
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_progress_reaches_its_end(theory: Theory, told: list[tuple[int, int]]) -> None:
    done = [done for done, _ in told]
    assert done == sorted(set(done))
    assert len({total for _, total in told}) == 1
    assert told[-1][0] == told[-1][1]
