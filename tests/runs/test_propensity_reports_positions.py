"""`unveil propensity positions`: every position with its interval, in a table and as JSON; real ones too."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.propensity.placed import drawn, log_of
from unveil.cli.main import app
from unveil.data.interactions import Interactions
from unveil.data.writers import write
from unveil.errors import UnveilError
from unveil.runs.propensity_reports import examine_positions, positions_prose

E_K = np.array([1, 0.5, 0.3])


@pytest.fixture(scope="module")
def log() -> Interactions:
    return drawn(E_K, np.linspace(0.05, 0.5, 20), 20_000, 50, np.random.default_rng(0))


def test_intervals_hold_the_truth_and_plain_shares_do_not(log: Interactions) -> None:
    found = examine_positions(log, draws=60)
    assert found["best"] == 1
    assert [each["position"] for each in found["places"]] == [1, 2, 3]
    assert sum(each["shown"] for each in found["places"]) == len(log)
    for each, true in zip(found["places"][1:], E_K[1:], strict=True):
        assert each["low"] < true < each["high"]
        assert each["relative"] < each["low"], "what is liked is on top, and makes the rest look unseen"
        assert each["rate"] == each["clicked"] / each["shown"]
    assert found["p"] < 1e-6
    assert f"p = {found['p']:.1g}" in positions_prose(found).paragraphs("findings")[0]
    assert len(positions_prose(found).table("table").rows) == 3


def test_the_same_seed_gives_the_same_intervals(log: Interactions) -> None:
    assert examine_positions(log, draws=5) == examine_positions(log, draws=5)
    assert examine_positions(log, draws=5, seed=1) != examine_positions(log, draws=5)


def test_what_was_not_shown_does_not_count(log: Interactions) -> None:
    shown = np.random.default_rng(1).random(len(log)) < 0.7
    assert examine_positions(replace(log, exposed=shown), draws=3) == examine_positions(log.where(shown), draws=3)


def test_a_position_without_clicks_that_nothing_links_is_left_out() -> None:
    item, position = np.tile([0, 0, 1], 20), np.tile([1, 2, 3], 20)
    log = log_of(np.zeros(60, int), item, position, (item == 0) & (np.arange(60) % 4 == 0), (1, 2))
    found = examine_positions(log, draws=3)
    assert [each["position"] for each in found["places"]] == [1, 2]
    assert found["items"] == 1


def test_as_typed(log: Interactions, tmp_path: Path) -> None:
    write(log, tmp_path / "log.csv")
    asked = ["propensity", "positions", str(tmp_path / "log.csv"), "--draws", "20"]
    shown = CliRunner().invoke(app, asked, env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    assert "examined" in shown.output
    assert "propensity.name=position" in shown.output
    told = json.loads(CliRunner().invoke(app, [*asked, "--json", "--deepest", "2"]).output)
    assert [each["position"] for each in told["places"]] == [1, 2]
    refused = CliRunner().invoke(app, [*asked, "--clicked-col", "none"])
    assert isinstance(refused.exception, UnveilError)
    assert "no impressions without a click" in str(refused.exception)


def test_a_row_without_a_position_is_named_with_its_file(log: Interactions, tmp_path: Path) -> None:
    write(log.where(np.arange(100)), tmp_path / "log.csv")
    lines = (tmp_path / "log.csv").read_text().splitlines()
    place = lines[0].split(",").index("position")
    cells = lines[3].split(",")
    lines[3] = ",".join([*cells[:place], "", *cells[place + 1 :]])
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    refused = CliRunner().invoke(app, ["propensity", "positions", str(tmp_path / "log.csv")])
    assert isinstance(refused.exception, UnveilError)
    assert "log.csv, row 4, column position" in str(refused.exception)


def test_under_a_random_policy_it_is_the_plain_share(shared_data: Path) -> None:
    """Real clicks, few of them: nothing is placed with intent, so both tell the same."""
    source = shared_data / "obd" / "random" / "men" / "men.csv.gz"
    found = examine_positions(Interactions.read(source, columns={"user": "user_feature_0"}), draws=2)
    assert [each["clicked"] for each in found["places"]] == [10, 22, 14]
    for each in found["places"]:
        assert each["examined"] == pytest.approx(each["relative"], abs=0.05)
    assert found["p"] > 0.05
    assert f"{found['p']:.2g}" in positions_prose(found).paragraphs("findings")[0]


def test_where_nothing_is_placed_with_intent_it_is_the_plain_share() -> None:
    log = drawn(E_K, np.linspace(0.05, 0.5, 20), 40_000, 50, np.random.default_rng(2), strength=0.0)
    for each in examine_positions(log, draws=2)["places"]:
        assert each["examined"] == pytest.approx(each["relative"], rel=0.03)
