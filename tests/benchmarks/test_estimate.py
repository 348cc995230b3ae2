"""An estimate from made-up slopes by hand; and the page says what the kept figures say."""

import json
from pathlib import Path

import pytest

from benchmarks.estimate import Asked, Figures, estimate, replaced, shown
from benchmarks.slopes import Growth, table

ROOT = Path(__file__).parents[2]
PAGE, KEPT = ROOT / "docs" / "scale.md", ROOT / "docs" / "results" / "scale" / "slopes.json"
MIDDLE = {"users": 1000, "items": 100, "length": 50, "width": 64}
SIZES = [1000, 2000, 4000, 8000]


def line(job: str, dimension: str, seconds: float, size: float, rest: float = 0.0) -> Growth:
    """A job that takes `seconds` and `size` bytes for each, and `rest` seconds besides."""
    mib = [size * each / 2**20 for each in SIZES]
    return Growth(job, dimension, SIZES, [rest + seconds * each for each in SIZES], mib)


FIGURES = Figures(
    [
        line("pack", "users", 50e-6, 1),
        line("pass", "users", 50e-9, 1),
        line("ids", "users", 1e-6, 100),
        line("step", "items", 740e-9, 1024, rest=0.32),
        line("sampled", "items", 100e-9, 1024),
        line("rank", "items", 1e-6, 1),
        line("cases", "users", 1e-6, 200),
        line("serve", "items", 2e-9, 500),
        line("serve", "users", 1e-9, 1040),
    ],
    dict.fromkeys(("pack", "step", "rank", "serve"), MIDDLE),
)


@pytest.mark.parametrize(
    ("what", "result"),
    [
        ("events", "2 G"),
        ("packed log on disk", "56 GB"),
        ("pack: one pass", "33.3 minutes"),  # 2e9 × 1 µs
        ("pack: histories, 4 M events per pass", "15.9 minutes"),  # 477 × 2e9 × 1 ns
        ("pack: ids as text, in memory", "11 GB"),
        ("train: embeddings, gradient, both moments", "10.2 GB"),
        ("train: row offsets and masks", "15.2 GB"),
        ("epoch: network without the softmax", "2.31 days"),  # 0.32 s / 3,200 events = 100 µs
        ("epoch: softmax over all items", "46.3 days"),  # 640 ns / 640 slots = 1 ns; 4e8 slots × 1e7
        ("epoch: update of all embeddings, batches of 64", "18.1 days"),  # 1,562,500 steps × 1 s
        ("epoch: the same, batches of 8,192", "3.39 hours"),
        ("workers: gradient sent per step", "2.56 GB"),
        ("rank all items for all users", "11.6 days"),
        ("rank: results in memory", "20 GB"),
        ("serve: one request", "20 ms"),
        ("serve: items in memory", "5 GB"),
        ("serve: users and their histories in memory", "40 GB"),
    ],
)
def test_by_hand(what: str, result: str) -> None:
    found = {name: told for name, _, told in estimate(FIGURES, Asked(1e8, 1e7, 20))}
    assert found[what] == result


def test_marks_of_a_page_are_filled_and_missing_ones_told() -> None:
    page = "a\n<!-- slopes -->\nold\nolder\n<!-- /slopes -->\nb\n"
    assert replaced(page, "slopes", ["new"]) == "a\n<!-- slopes -->\nnew\n<!-- /slopes -->\nb\n"
    with pytest.raises(SystemExit, match="no place for estimate"):
        replaced(page, "estimate", [])


def test_the_page_says_what_the_kept_figures_say() -> None:
    figures, page = Figures.read(KEPT), PAGE.read_text()
    for name, lines in (
        ("slopes", table(figures.growths)),
        ("estimate", shown(estimate(figures, Asked(1e8, 1e7, 20)))),
    ):
        assert replaced(page, name, lines) == page
    assert all(len(point["costs"]) >= 1 for point in json.loads(KEPT.read_text())["points"])
