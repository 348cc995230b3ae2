"""What of a user's log is refused before any work is done."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.simulation.rated import rated
from unveil.data.filters import LogSource
from unveil.data.interactions import Interactions
from unveil.data.writers import write as write_log
from unveil.errors import UnveilError
from unveil.experiment.advise.plan import AdvicePlan
from unveil.experiment.advise.run import advise
from unveil.experiment.advise.scenarios import scenarios
from unveil.experiment.advise.source import refuse_no_impressions
from unveil.experiment.advise.study import AdviceStudy
from unveil.runs.workers import Inline
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World


def refusal(log: Interactions, study: AdviceStudy, folder: Path) -> str:
    """What the advice says of a log that it refuses."""
    write_log(log, folder / "log.csv")
    tried = scenarios(("rational_exposed",), (1.0,))
    plan = AdvicePlan(LogSource(log=str(folder / "log.csv")), study, tried, 1, 1, ("ever",), ("",))
    with pytest.raises(UnveilError) as refused:
        advise(plan, folder / "advice", Inline())
    return str(refused.value)


def test_a_share_of_impressions_is_refused_where_there_are_none(tmp_path: Path) -> None:
    assert refusal(rated(), AdviceStudy(impressions=0.1), tmp_path) == (
        "--impressions: the log has too little that was shown and left for this to matter: found '0 such rows', "
        "expected at least 30 to learn from. Leave the option out, or name the column that says whether a row was "
        "taken with --clicked-col."
    )
    assert not (tmp_path / "advice").exists()


def test_a_few_impressions_are_too_few_and_counted() -> None:
    clicked = np.ones(len(rated()), np.bool_)
    clicked[:3] = False
    with pytest.raises(UnveilError, match="found '3 such rows'"):
        refuse_no_impressions(replace(rated(), clicked=clicked), kept=0.1, left=0.0)
    refuse_no_impressions(replace(rated(), clicked=clicked), kept=0.1, left=0.4)
    refuse_no_impressions(rated(), kept=1.0, left=0.0)


def test_users_with_too_few_items_to_rank_are_refused_at_once(tmp_path: Path) -> None:
    assert refusal(rated(items=30, longest=6), AdviceStudy(users=1), tmp_path).startswith(
        "too few items to be ranked in what the users that are drawn took: found "
    )
    assert not (tmp_path / "advice").exists()


def test_a_drawn_log_with_too_few_items_is_refused_before_anything_is_fitted_to_it(tmp_path: Path) -> None:
    World.builtin(WorldSpec(users=12, items=9, steps=8), seed=0).save(tmp_path / "world")
    study = AdviceStudy(world=str(tmp_path / "world"))
    said = refusal(rated(), study, tmp_path)
    assert said.startswith("too few items to be ranked in a log that was drawn from the world: found ")
    assert said.endswith("expected at least 10. Take more users with --users, or a log or world with more items.")
    assert not list((tmp_path / "advice" / "cells").glob("propensities-*"))
