"""Shares of the gap that pages quote are those of the results that are kept beside them."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.docs import DOCS, ROOT

RESULTS = DOCS / "results"
#: What a row is called on the pages → its arm.
ARMS = {
    "IPS, true mean θ over the steps": "ips",
    "ITPS, true θ": "itps",
    "ITPS, self-normalised, true θ": "itps+self_normalised=true",
    "ITPS, weights shrunk, true θ": "itps-shrunk",
    "ITPS, popularity": "itps@popularity",
    "doubly robust, true θ": "doubly-robust",
    "corrected, true θ": "corrected",
    "corrected, over a sample of 256 items, true θ": "corrected-sampled",
    "corrected, θ learnt from a tenth of the impressions": "corrected@recorded",
    "corrected, popularity": "corrected@popularity",
    "corrected-distilled, true θ": "corrected-taught",
    "corrected-distilled, θ learnt from a tenth of the impressions": "corrected-taught@recorded",
    "consideration, true θ": "consideration",
    "rational, true θ": "rational",
    "corrected-tempered, true θ": "tempered",
    "corrected-tempered, popularity": "tempered@popularity",
    "logit adjustment, true mean θ over the steps": "logit-adjustment",
    "wmf-distilled, no θ": "ever",
    "wmf-distilled-rated, no θ": "ever-rated",
    "`itps`, the paper's, true propensities": "itps",
    "`corrected`, true propensities": "corrected",
    "`corrected-distilled`, true propensities": "corrected-taught",
    "`corrected`, exposure learnt from a tenth of the impressions": "corrected@recorded",
    "`wmf-distilled-rated`, nothing known of exposure": "ever-rated",
}


@dataclass(frozen=True)
class Row:
    """A row of shares at p = 1 … 4: where it stands, and what it says."""

    folder: str
    protocol: str
    label: str
    cells: tuple[str, ...]


def quoted(page: Path, first: str, folder_of: dict[str, str]) -> Iterator[Row]:
    """The rows of all tables whose head is p = 1 … 4. A table belongs to the folder of its heading, or to the first."""
    folder, protocol = first, ""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            folder, protocol = folder_of.get(line.lstrip("# "), first), ""
            continue
        label, *cells = (cell.strip() for cell in line.strip("|").split("|")) if line.startswith("|") else ("",)
        if [*cells] == ["p = 1", "p = 2", "p = 3", "p = 4"]:
            shares = label == "" or "gap closed" in label or label.startswith("the same against")
            protocol = ("full" if "all items" in label else "uniform-100") if shares else ""
        elif not cells:
            protocol = ""
        elif protocol and not label.startswith("-"):
            yield Row(folder, protocol, label, tuple(cells))


@cache
def shares(folder: str) -> dict[tuple[str, str, float], dict[str, Any]]:
    told = json.loads((RESULTS / folder / "results.json").read_text(encoding="utf-8"))["shares"]
    ndcg = (each for each in told if (each["metric"], each["k"]) == ("NDCG", 10))
    return {(each["estimator"], each["protocol"], each["severity"]): each["gap_closed"] for each in ndcg}


def written(share: dict[str, Any], *, interval: bool) -> str:
    mean, low, high = (
        f"{100 * share[name]:.0f}".replace("-0", "0").replace("-", "−") for name in ("mean", "low", "high")
    )
    return f"{mean}% [{low}, {high}]" if interval else f"{mean}%"


ROWS = [
    *quoted(ROOT / "README.md", "beyond", {}),
    *quoted(RESULTS / "README.md", "beyond", {"Every estimator": "beyond-every-arm", "In one replicate": "beyond-one"}),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.folder}-{row.protocol}-{row.label}")
def test_a_share_is_quoted_as_it_was_found(row: Row) -> None:
    for severity, cell in enumerate(row.cells, start=1):
        share = shares(row.folder)[ARMS[row.label], row.protocol, float(severity)]
        said = re.sub(r"\*\*", "", cell)
        assert said == written(share, interval="[" in said)


ESTIMATES = re.search(
    r"^\| θ \| ITPS, p = 1 .*?\n\n", (DOCS / "propensities.md").read_text(encoding="utf-8"), re.M | re.S
)


@pytest.mark.parametrize("line", ESTIMATES[0].split("\n")[2:-2] if ESTIMATES else [])
def test_what_networks_make_of_an_estimate_is_quoted_as_it_was_found(line: str) -> None:
    theta, *cells = (cell.strip(" `") for cell in line.strip("|").split("|"))
    told = "" if theta == "true" else f"@{theta}"
    arms = [(f"{name}{told}", "uniform-100", severity) for severity in (1.0, 3.0) for name in ("itps", "corrected")]
    assert cells == [written(shares("estimates")[arm], interval=True) for arm in arms]


def test_the_tables_are_found() -> None:
    assert ESTIMATES
    places = {(row.folder, row.protocol) for row in ROWS}
    folders, protocols = ("beyond", "beyond-every-arm", "beyond-one"), ("uniform-100", "full")
    assert places == {(folder, protocol) for folder in folders for protocol in protocols}
    assert {ARMS[row.label] for row in ROWS} == set(ARMS.values())


#: The columns of scores on the page of propensities → their names where they are kept, and how they are written.
SCORES = {
    "top": ("top", ".2f"),
    "chosen": ("taken", ".2f"),
    "ECE": ("ece", ".2f"),
    "loss": ("log_loss", ",.0f"),
    "mass": ("mass", ".2f"),
    "moved": ("misplaced", ".0%"),
    "gap": ("gap", ".0%"),
}


def scores_on_the_page() -> Iterator[tuple[str, str, dict[str, str]]]:
    """The rows of the tables of scores: p, the propensity, its figures by column."""
    severity, columns = "", []
    for line in (DOCS / "propensities.md").read_text(encoding="utf-8").splitlines():
        label, *cells = (cell.strip() for cell in line.strip("|").split("|")) if line.startswith("|") else ("",)
        if found := re.fullmatch(r"ml-100k world, p = (\d)", label):
            severity, columns = found[1], cells
        elif not cells:
            severity = ""
        elif severity and label.startswith("`"):
            yield severity, label.split("`")[1], dict(zip(columns, cells, strict=True))


@pytest.mark.parametrize(("severity", "propensity", "cells"), [*scores_on_the_page()])
def test_a_score_is_quoted_as_it_was_found(severity: str, propensity: str, cells: dict[str, str]) -> None:
    kept = [RESULTS / "propensities" / f"p{severity}{log}" / "scores.json" for log in ("", "-impressions")]
    told = [json.loads(path.read_text(encoding="utf-8"))["scores"] for path in kept]
    score = next(each[propensity] for each in told if propensity in each)
    for column, (name, form) in SCORES.items():
        found = re.sub(r"^-(?=0(\.0+)?%?$)", "", format(score[name], form))  # no minus before nothing
        assert cells[column] == re.sub(r"^(-?)0\.", r"\1.", found).replace("-", "−"), (column, score[name])


def test_every_score_that_is_kept_is_on_the_page() -> None:
    rows = [(severity, propensity) for severity, propensity, _ in scores_on_the_page()]
    kept = {
        (severity, name)
        for severity in "13"
        for log in ("", "-impressions")
        for name in json.loads((RESULTS / "propensities" / f"p{severity}{log}" / "scores.json").read_text())["scores"]
    }
    assert sorted(rows) == sorted(kept)
