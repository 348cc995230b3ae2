"""Scores of propensities: the truth scores best, by hand and as typed."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from tests.estimators.toys import Toy, random_world
from tests.pages import faults
from unveil.cli.main import app
from unveil.data.slots import Slots
from unveil.data.writers import write as write_log
from unveil.errors import UnveilError
from unveil.propensity.build import build
from unveil.propensity.known import KnownTemporal
from unveil.report.prose import percent as share
from unveil.runs.propensity_reports import (
    Truth,
    correlation,
    relevance_of_first,
    score,
    score_all,
    scores_prose,
    usable,
)

TOY = Toy.drawn(random_world(users=30, items=25, moving=False))
TRUTH = Truth.of(TOY.world, TOY.train, 60, np.random.default_rng(0))


def test_the_truth_itself_has_nothing_to_be_said_against_it() -> None:
    found = score(KnownTemporal(TOY.world), TRUTH)
    assert found["correlation"] == pytest.approx(1, abs=1e-6)
    assert found["top"] == pytest.approx(1, abs=1e-6)
    assert found["mass"] == pytest.approx(1, abs=1e-5)
    assert found["gap"] == pytest.approx(1)
    assert found["ece"] == pytest.approx(0, abs=1e-5)
    assert found["log_loss"] == pytest.approx(0, abs=1e-4)
    assert found["misplaced"] == pytest.approx(0, abs=1e-6)


def test_noise_is_worse_and_more_noise_worse_still() -> None:
    quiet, loud = (score(build("noisy-temporal", {"sd": sd}, TOY.train, world=TOY.world), TRUTH) for sd in (0.3, 3.0))
    assert 1 > quiet["correlation"] > loud["correlation"]
    assert 0 < quiet["log_loss"] < loud["log_loss"]
    assert 0 < quiet["misplaced"] < loud["misplaced"]
    assert 1 > quiet["gap"] > loud["gap"]


def test_all_alike_corrects_nothing() -> None:
    found = score(build("damped-static", {"exponent": 0.0}, TOY.train), TRUTH)
    assert found["correlation"] == 0
    assert found["gap"] == pytest.approx(0)
    assert found["ess"] == pytest.approx(1)


def test_what_is_taken_worked_by_hand() -> None:
    theta, logit = np.array([[0.5, 0.2, 0.8]]), np.array([[0.0, 1.0, -1.0]])
    slots = Slots(torch.tensor([0]), torch.tensor([1]), torch.tensor([0]))
    taken = np.exp(Truth(slots, theta, logit).log_chosen_MV)[0]
    gamma = 1 / (1 + np.exp(-logit[0]))
    np.testing.assert_allclose(taken, gamma * [0.5 * 0.8, 0.2, 0.8 * 0.5 * 0.8], rtol=1e-6)


def test_the_relevance_of_those_ranked_first_by_hand() -> None:
    logit = np.arange(12.0)[None]
    assert relevance_of_first(logit, logit) == np.arange(2, 12).mean()
    assert relevance_of_first(-logit, logit) == np.arange(10).mean()
    assert correlation(logit, np.ones_like(logit)) == 0


def test_ratings_are_used_where_there_are_some() -> None:
    assert "joint-rated-static" not in usable(replace(TOY.log, rating=None))
    assert {"joint-rated-static", "popularity-static", "timing", "known-static"} <= set(usable(TOY.log))


def test_the_truth_with_noise_is_no_estimate() -> None:
    figures = {"top": 0.1, "gap": 0.1, "misplaced": 0.1}
    scores = dict.fromkeys(("known-temporal", "noisy-static", "timing"), figures)
    assert list(scores_prose({"scores": scores}).figures["estimated"]) == ["timing"]
    del scores["timing"]
    assert scores_prose({"scores": scores}).figures["estimated"] == scores, "there is nothing else to speak of"


def test_an_option_of_a_propensity_that_is_not_scored_is_refused() -> None:
    with pytest.raises(UnveilError, match="unknown propensity that is scored"):
        score_all(TOY.world, TOY.log, ["damped-static"], ["damped:exponent=1"])


@pytest.mark.parametrize("name", ["logged", "position"])
def test_what_is_known_of_events_alone_is_refused_before_anything_is_fitted(name: str) -> None:
    fitted: list[str] = []
    with pytest.raises(UnveilError) as refused:
        score_all(TOY.world, TOY.log, ["popularity-static", name], tell=fitted.append)
    told = f"--propensity: the propensity '{name}' is known for chosen items only, and scores are over all items."
    assert str(refused.value) == f"{told} Leave it out."
    assert not fitted


@pytest.mark.parametrize(
    ("typed", "hint"),
    [("exponent=1", " For example damped-static:exponent=1."), ("path=C:out", ""), ("damped-static", "")],
)
def test_an_option_says_of_which_propensity_it_is(typed: str, hint: str) -> None:
    with pytest.raises(UnveilError) as refused:
        score_all(TOY.world, TOY.log, ["timing", "damped-static"], [typed])
    problem = f"--set: this option does not say of which propensity it is: found '{typed}'"
    assert str(refused.value) == f"{problem}, expected PROPENSITY:NAME=VALUE.{hint}"


def test_as_it_is_typed(tmp_path: Path) -> None:
    TOY.world.save(tmp_path / "world")
    write_log(TOY.log, tmp_path / "log.csv")
    asked = ["propensity", "score", str(tmp_path / "log.csv"), "--world", str(tmp_path / "world")]
    names = ["--propensity", "damped-temporal", "--propensity", "popularity-static", "--propensity", "known-static"]
    options = ["--set", "damped-temporal:exponent=0.3", "--slots", "50", "-o", str(tmp_path / "scores")]
    done = CliRunner().invoke(app, [*asked, *names, *options])
    assert done.exit_code == 0, done.output
    assert "damped-temporal" in done.output
    assert "known-static" in done.output
    assert "top: the 30 most relevant · chosen: of the events" in " ".join(done.output.split())
    about = json.loads((tmp_path / "scores" / "scores.json").read_text())
    assert list(about["scores"]) == ["damped-temporal", "popularity-static", "known-static"]
    assert about["scores"]["known-static"]["top"] > about["scores"]["popularity-static"]["top"]
    page = (tmp_path / "scores" / "index.html").read_text()
    assert about["assumes"]["popularity-static"] in page
    assert not faults(page)
    closed = max(about["scores"][name]["gap"] for name in ("damped-temporal", "popularity-static"))
    assert closed < about["scores"]["known-static"]["gap"], "the reference is the truth, and no estimate"
    assert scores_prose(about).key_figures("keys")[1].value == share(closed)
    again = CliRunner().invoke(app, [*asked, *options])
    assert "not empty" in str(again.exception)
