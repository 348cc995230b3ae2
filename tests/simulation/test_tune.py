import json
from pathlib import Path

import pytest

from tests.simulation.rated import rated
from unveil.errors import UnveilError
from unveil.simulation.fit import Fit
from unveil.simulation.fitting.tune import tuned

LOG = rated(users=30, items=20, longest=10)
FIT = Fit(steps=10, relevance={"sweeps": 4, "burn_in": 2}, exposure={"sweeps": 2, "burn_in": 1, "width": 3})


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_options_of_the_lowest_mean_validation_loss_are_chosen(tmp_path: Path) -> None:
    kept = tmp_path / "tuning.jsonl"
    chosen = tuned(LOG, FIT, 2, kept)
    head, *cells = lines(kept)
    assert head["recipe"] == "posterior"
    assert len(cells) == 2 * (4 + 1)  # four widths of relevance; the width of exposure was given
    loss: dict[int, float] = {}
    for cell in cells:
        if cell["task"] == "relevance":
            width = cell["options"]["width"]  # type: ignore[index]
            loss[width] = loss.get(width, 0) + cell["loss"]  # type: ignore[operator]
    assert chosen.relevance == {"sweeps": 4, "burn_in": 2, "width": min(loss, key=loss.__getitem__)}
    assert chosen.exposure == FIT.exposure
    assert len(set(loss.values())) == 4


def test_what_was_stopped_goes_on_and_ends_alike(tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    def stop(done: int, total: int) -> None:
        if done > total / 2:
            raise StopError

    whole, part = tmp_path / "whole.jsonl", tmp_path / "part.jsonl"
    chosen = tuned(LOG, FIT, 2, whole)
    with pytest.raises(StopError):
        tuned(LOG, FIT, 2, part, stop)
    done = len(lines(part))
    assert 1 < done < len(lines(whole))
    told: list[int] = []
    again = tuned(LOG, FIT, 2, part, lambda done, total: told.append(total))
    assert (again.relevance, again.exposure) == (chosen.relevance, chosen.exposure)
    assert lines(part) == lines(whole)
    assert told[0] > 0
    told.clear()
    tuned(LOG, FIT, 2, part, lambda done, total: told.append(total))
    assert not told


def test_results_of_something_else_are_not_taken(tmp_path: Path) -> None:
    kept = tmp_path / "tuning.jsonl"
    tuned(LOG, FIT, 1, kept)
    with pytest.raises(UnveilError, match=r"tuning\.jsonl: these results are of another log, recipe or seed"):
        tuned(rated(users=30, items=20, longest=10, seed=9), FIT, 1, kept)
    kept.write_text("not json\n")
    with pytest.raises(UnveilError, match="not a record of tuning"):
        tuned(LOG, FIT, 1, kept)
