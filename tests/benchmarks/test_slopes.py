"""Slopes by hand, and every job whose growth is measured at a size that takes no time."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks import jobs
from benchmarks.jobs import Cost, Shape
from benchmarks.slopes import DIMENSIONS, SWEEPS, Growth, Point, growths, points, saved, smaller, table

TINY = Shape(30, 20, 4, 4)


def test_a_power_and_a_line_are_found_again() -> None:
    sizes = [10, 20, 40, 80]
    growth = Growth("job", "items", sizes, [3e-3 * size**2 for size in sizes], [7 + 0.5 * size for size in sizes])
    assert growth.slope("seconds") == pytest.approx(2)
    assert 0 < growth.slope("mib") < 1
    assert growth.line("mib") == pytest.approx((7, 0.5))


def test_the_median_of_the_rounds_counts() -> None:
    assert Point("job", TINY, [Cost(1, 30), Cost(9, 10), Cost(2, 20)]).cost == Cost(2, 20)


@pytest.mark.parametrize("name", SWEEPS)
def test_each_job_does_its_work(name: str, tmp_path: Path) -> None:
    jobs.write_log(TINY, tmp_path / "log.parquet")
    cost = SWEEPS[name].job(TINY, tmp_path / "log.parquet")
    assert cost.seconds > 0


def test_every_sweep_has_sizes_about_its_middle_and_every_point_is_measured_once() -> None:
    for sweep in SWEEPS.values():
        for dimension, sizes in sweep.sizes.items():
            assert dimension in DIMENSIONS
            assert list(sizes) == sorted(set(sizes))
            assert len(sizes) >= 4
    found = points(SWEEPS)
    assert len({(point.job, point.shape) for point in found}) == len(found)


def test_figures_become_a_table_and_are_kept() -> None:
    chosen = {name: smaller(sweep) for name, sweep in SWEEPS.items()}
    found = [Point(point.job, point.shape, [_made_up(point.shape)]) for point in points(chosen)]
    told = growths(chosen, found)
    assert [(growth.job, growth.dimension) for growth in told] == [
        (name, dimension) for name, sweep in SWEEPS.items() for dimension in sweep.sizes
    ]
    (row,) = [line for line in table(told) if line.startswith("| step | items")]
    assert row == "| step | items | 20 … 40 | 0.02 … 0.04 | 1.00 | 1,000 | 60 … 60 | 0.00 | – |"
    kept = json.loads(json.dumps(saved(chosen, found)))
    assert kept["points"][0]["shape"] == asdict(found[0].shape)
    assert len(kept["growths"]) == len(told)


def _made_up(shape: Shape) -> Cost:
    return Cost(shape.items / 1000, float(shape.users))
