"""Arms in one word, taken apart; clips that are shares of the events."""

import numpy as np
import pytest

from unveil.data.interactions import Sequences
from unveil.errors import UnveilError
from unveil.estimators.base import ESTIMATORS, estimator, events
from unveil.estimators.inverse import InversePropensity, share_of
from unveil.propensity.popularity import TemporalPopularity
from unveil.report.names import named
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World
from unveil.studies.advise import Advise
from unveil.studies.arms import (
    Variant,
    changes_of,
    check_changes,
    families,
    propensity_settings,
    with_propensity,
)
from unveil.studies.rq1 import RQ1
from unveil.studies.trial import quantile, resolved
from unveil.training.recipe import Recipe


def test_a_word_says_estimator_propensity_and_options() -> None:
    assert Variant.of("itps@noisy:0.5+clip=0.02+training.lr=1e-3") == Variant(
        "itps", "noisy:0.5", (("estimator.clip", 0.02), ("training.lr", 1e-3))
    )
    assert Variant.of("naive") == Variant("naive")
    assert [Variant.of(arm).estimator for arm in ("itps@true", "naive", "itps@popularity")] == ["itps", "naive", "itps"]


def test_a_word_is_said_as_people_say_it() -> None:
    assert named("itps@noisy:0.5+clip=5%") == "ITPS · noisy 0.5 · clip 5%"
    assert named("corrected@popularity") == "corrected · popularity"
    assert named("itps+clip=5%+self_normalised=true") == "ITPS · clip 5% · self-normalised"
    assert named("ips") == "IPS"


@pytest.mark.parametrize(
    ("arm", "says"),
    [
        ("corected", "Did you mean 'corrected'"),
        ("naive@true", "uses no propensity"),
        ("itps@populrity", "Did you mean 'popularity'"),
        ("ips@popularity-temporal", "a static propensity is needed"),
        ("itps+clipp=1", "Did you mean 'clip'"),
        ("itps+estimator.clipp=1", "Did you mean 'clip'"),
        ("itps+propensity=joint", "unknown option of the estimator 'itps'"),
        ("itps@noisy:-1", "0 or more"),
    ],
)
def test_what_nobody_knows_is_refused(arm: str, says: str) -> None:
    with pytest.raises(UnveilError, match=says):
        Variant.of(arm)


def test_a_propensity_goes_by_its_whole_name_or_its_family() -> None:
    for choice in ("popularity", "popularity-temporal", "estimated"):
        assert propensity_settings(choice, "temporal", 0) == {"propensity.name": "popularity-temporal"}
    assert "popularity" in families()
    assert "known" in families()


def test_an_arm_of_a_study_may_have_a_propensity_and_options_of_its_own() -> None:
    study = RQ1(data="builtin", preset="quick", propensity="noisy:1")
    assert study.recipe("itps", 3).propensity == {"name": "noisy-temporal", "sd": 1.0, "seed": 3}
    assert study.recipe("itps@joint", 3).propensity == {"name": "joint-temporal", "seed": 3}
    assert study.recipe("itps@popularity", 3).propensity == {"name": "popularity-temporal"}, "nothing in it is random"
    assert study.recipe("wmf-distilled", 3).estimator["seed"] == 3
    assert Advise().recipe("wmf-distilled", 3).estimator["seed"] == 3
    assert "seed" not in study.recipe("naive", 3).estimator
    own = study.recipe("itps@popularity+exponent=0.5", 3)
    assert own.propensity == {"name": "popularity-temporal"}
    assert own.estimator == {"name": "itps", "exponent": 0.5}
    assert study.recipe("itps", 3).estimator["clip"] == 0.02, "the preset's clip is for true propensities"
    assert study.recipe("itps@true+clip=0.1", 3).estimator["clip"] == 0.1
    for estimated in ("popularity", "estimated"):
        told = RQ1(data="builtin", preset="quick", propensity=estimated)
        assert "clip" not in told.recipe("itps", 3).estimator, "0.02 is above all popularities: nothing would be left"
        assert told.recipe("itps@true", 3).estimator["clip"] == 0.02


@pytest.mark.parametrize("preset", ["quick", "converged"])
def test_all_that_weigh_by_the_inverse_have_one_clip(preset: str) -> None:
    """Or one of them would win or lose by its clip alone."""
    study = RQ1(data="builtin", preset=preset)
    by_inverse = [n for n in ESTIMATORS if issubclass(estimator(n), InversePropensity) and n != "itps-shrunk"]
    assert set(by_inverse) == {"ips", "itps", "doubly-robust"}
    assert {study.recipe(name, 0).estimator["clip"] for name in by_inverse} == {0.02}
    assert "clip" not in study.recipe("doubly-robust@popularity", 0).estimator


@pytest.mark.parametrize(
    ("arm", "propensity", "expected"),
    [
        ("itps", "timing", "itps@timing"),
        ("itps+clip=5%+exponent=0.5", "popularity", "itps@popularity+clip=5%+exponent=0.5"),
        ("ips", "timing", None),
        ("ips", "noisy:1", "ips@noisy:1"),
        ("itps@true", "timing", None),
        ("naive", "timing", None),
    ],
)
def test_an_arm_told_another_propensity(arm: str, propensity: str, expected: str | None) -> None:
    assert with_propensity(arm, propensity) == expected


def test_a_propensity_that_nobody_knows_is_refused() -> None:
    with pytest.raises(UnveilError, match="Did you mean 'timing'"):
        with_propensity("ips", "timming")


def test_a_share_of_the_events_becomes_the_quantile_of_their_propensities() -> None:
    log = World.builtin(WorldSpec(users=20, items=15, steps=10), 0).log(np.random.default_rng(0))
    train = Sequences.of(log)
    recipe = Recipe().changed(
        {"estimator.name": "itps", "estimator.clip": "25%", "propensity.name": "popularity-temporal"}
    )
    found = resolved(recipe, train, log)
    theta_N = TemporalPopularity(window=recipe.model.length).fit(train)(events(train)).numpy()
    assert found.estimator["clip"] == pytest.approx(np.quantile(theta_N, 0.25), rel=1e-5)
    assert (theta_N < found.estimator["clip"]).mean() <= 0.25
    assert quantile(TemporalPopularity().fit(train), train, 0.5) == pytest.approx(np.median(theta_N), rel=1e-5)
    same = recipe.changed({"estimator.clip": 0.1})
    assert resolved(same, train, log) is same


@pytest.mark.parametrize("clip", ["x%", "0%", "100%"])
def test_other_words_for_a_share_are_refused(clip: str) -> None:
    with pytest.raises(UnveilError, match="a share of the events"):
        share_of(clip)


def test_only_a_text_in_percent_is_a_share() -> None:
    assert share_of("5%") == 0.05
    assert share_of("5") is share_of(5) is share_of(None) is None


@pytest.mark.parametrize(
    ("arm", "says"),
    [
        ("itps+clip=abc", r"itps\.clip: not a valid value: found 'abc', expected a number"),
        ("itps+estimator.clip=abc", r"itps\.clip: not a valid value: found 'abc', expected a number"),
        ("itps+clip=200%", r"estimator\.clip: not a valid value: found '200%', expected a share of the events"),
        ("itps@popularity+exponent=x", r"itps\.exponent: not a valid value: found 'x', expected a number"),
        ("itps+self_normalised=1", r"itps\.self_normalised: not a valid value: found 1, expected true or false"),
        ("itps+clip=nan", r"itps\.clip: out of range: found nan"),
        ("corrected-distilled@recorded+trust=2", r"corrected-distilled\.trust: out of range: found 2"),
        ("wmf-distilled-rated+liking=-1", r"wmf-distilled-rated\.liking: out of range: found -1"),
        ("wmf-distilled+seed=-1", r"wmf-distilled\.seed: out of range: found -1"),
        ("itps@joint+propensity.blocks=x", r"joint-temporal\.blocks: not a valid value: found 'x'"),
        ("itps@joint+propensity.blocks=0", r"joint-temporal\.blocks: out of range: found 0"),
        ("itps@joint+propensity.penalty=-1", r"joint-temporal\.penalty: out of range: found -1"),
        ("itps@joint-rated+propensity.sharpness=0", r"joint-rated-temporal\.sharpness: out of range: found 0"),
        ("corrected@recorded+propensity.penalty=-1", r"recorded-temporal\.penalty: out of range: found -1"),
        ("corrected@popularity+propensity.window=0", r"popularity-temporal\.window: out of range: found 0"),
        ("itps@popularity+propensity.nonsense=1", "unknown option of the propensity 'popularity-temporal'"),
    ],
)
def test_values_that_do_not_fit_are_refused_when_the_plan_is_made(arm: str, says: str) -> None:
    with pytest.raises(UnveilError, match=says):
        RQ1(data="builtin", preset="quick", estimators=("naive", arm))
    assert RQ1(data="builtin", preset="quick", estimators=("naive", "itps@popularity+clip=5%+exponent=1")).estimators


def test_two_words_for_one_arm_are_refused() -> None:
    with pytest.raises(UnveilError, match=r"two arms are the same: found 'itps\+clip=0.02 and itps\+clip=2e-2'"):
        RQ1(data="builtin", preset="quick", estimators=("naive", "itps+clip=0.02", "itps+clip=2e-2"))
    assert RQ1(data="builtin", preset="quick", estimators=("naive", "itps", "itps")).recipes.keys() == {"naive", "itps"}


def test_severities_that_would_share_their_cells_are_refused() -> None:
    with pytest.raises(UnveilError, match=r"--severity: too near to be told apart: found '1.0 and 1.0000001'"):
        RQ1(data="builtin", preset="quick", severities=(1.0, 1.0000001))
    assert RQ1(data="builtin", preset="quick", severities=(1.0, 1.00001)).severities


CHANGES = ("model.width=8", "itps:model.width=16", "itps:estimator.clip=0.3", "training.epochs=2")


def test_what_is_said_of_one_arm_wins_over_what_is_said_of_all() -> None:
    assert changes_of("naive", CHANGES) == {"model.width": 8, "training.epochs": 2}
    assert changes_of("itps", CHANGES) == {"model.width": 16, "training.epochs": 2, "estimator.clip": 0.3}
    assert changes_of("itps", reversed(CHANGES)) == changes_of("itps", CHANGES)
    check_changes(["itps"], CHANGES)
    with pytest.raises(UnveilError, match="unknown option of the estimator 'naive'"):
        check_changes(["naive"], ["estimator.clip=0.1"])
