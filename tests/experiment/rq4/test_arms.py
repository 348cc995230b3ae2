"""Arms of RQ4 beyond the paper's: any estimator, with any propensity that a real log can give."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.run_folders import write_log
from unveil.errors import UnveilError
from unveil.experiment.rq4.files import write
from unveil.experiment.rq4.log import LogChoice
from unveil.experiment.rq4.proxies import proxies
from unveil.experiment.rq4.results import AS_IT_IS
from unveil.experiment.rq4.run import RealPlan, answer
from unveil.experiment.rq4.study import RealStudy
from unveil.runs.workers import Inline

CHANGES = ("model.width=8", "model.blocks=1", "model.heads=1", "model.length=8", "training.epochs=1")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("log") / "log.csv")


@pytest.fixture(scope="module")
def study(log: Path) -> RealStudy:
    return RealStudy(LogChoice(str(log), 0, 0), "ml-1m", "converged", 5, strengths=(0.0, 0.5), changes=CHANGES)


def test_an_arm_is_told_what_its_word_names_and_popularity_otherwise(study: RealStudy) -> None:
    assert study.recipe("corrected", 0).propensity == {"name": "popularity-temporal"}
    assert study.recipe("corrected@joint", 0).propensity["name"] == "joint-temporal"
    assert study.recipe("logit-adjustment", 0).propensity == {"name": "popularity-static"}
    assert study.recipe("itps@timing+clip=0.3", 0).estimator["clip"] == 0.3


def test_what_is_random_in_a_propensity_is_the_replicates_own(study: RealStudy) -> None:
    first, second = (study.recipe("corrected@joint", replicate).propensity["seed"] for replicate in (0, 1))
    assert first == study.replicate_seed(0)
    assert second == study.replicate_seed(1)
    assert study.recipe("ever", 1).estimator["seed"] == study.replicate_seed(1)


def test_the_authors_exponents_are_for_popularity_alone(study: RealStudy) -> None:
    assert study.recipe("itps", 0).estimator["exponent"] == 0.2
    assert study.recipe("itps@popularity", 0).estimator["exponent"] == 0.2
    assert "exponent" not in study.recipe("itps@joint", 0).estimator


def test_a_setting_names_a_propensity_for_arms_that_name_none(study: RealStudy) -> None:
    set_so = replace(study, changes=(*CHANGES, "itps:propensity.name=timing"))
    assert set_so.recipe("itps", 0).propensity["name"] == "timing"
    assert set_so.recipe("itps@joint", 0).propensity["name"] == "joint-temporal"


@pytest.mark.parametrize(
    ("arm", "says"),
    [
        ("corrected@true", "needs a world whose exposure is known"),
        ("itps@noisy:0.5", "needs a world whose exposure is known"),
        ("ever-rated", "needs a log with ratings"),
        ("corrected@joint-rated", "needs a log with ratings"),
        ("corrected@recorded", "shown and left.*`unveil data convert .*` has the options for it.*--clicked-col"),
    ],
)
def test_what_the_log_cannot_give_is_refused_before_anything_is_trained(
    study: RealStudy, tmp_path: Path, arm: str, says: str
) -> None:
    with pytest.raises(UnveilError, match=says):
        answer(RealPlan(study, 1, ("naive", arm)), tmp_path / "run", Inline())
    assert not (tmp_path / "run").exists()


def test_without_naive_there_is_nothing_to_compare_with(study: RealStudy) -> None:
    with pytest.raises(UnveilError) as refused:
        RealPlan(study, 1, ("ever", "itps@joint"))
    assert str(refused.value) == (
        "the naive estimator is what all others are compared with: found 'ever, itps@joint'. "
        "Add it: --estimators naive,ever,itps@joint."
    )


def test_every_proxy_is_named(study: RealStudy) -> None:
    (alone,) = proxies(RealPlan(study, 1, ("naive", "ips", "itps")))
    assert alone.startswith("Nobody recorded what users were shown here.")
    assert "Popularity stands in for exposure, in what IPS, ITPS are told and in the negatives alike" in alone
    first, second = proxies(RealPlan(study, 1, ("naive", "itps", "corrected@joint")))
    assert "in what ITPS is told" in first
    assert second.startswith("corrected · joint is told θ̂ by joint-temporal, assuming that exposure is the same")
    (without,) = proxies(RealPlan(study, 1, ("naive", "ever")))
    assert "in the negatives: what is ranked against them" in without
    first, second = proxies(RealPlan(study, 1, ("naive", "corrected@recorded")))
    assert "Nobody" not in first
    assert "the log’s own record" in second


def test_such_arms_are_trained_judged_and_shown(study: RealStudy, tmp_path: Path) -> None:
    arms = ("naive", "ever", "tempered", "itps+clip=20%", "corrected@joint+strength=0.5")
    found = answer(RealPlan(study, 1, arms), tmp_path / "run", Inline())
    assert found.results.trained == [*arms, "control"]
    assert found.results.cell(AS_IT_IS, arms[-1])["weights"] is None
    assert found.results.cell(AS_IT_IS, "itps+clip=20%")["weights"]["clipped"] >= 0.2
    write(found, tmp_path / "run", ["unveil", "reproduce", "rq4"])
    for name in ("README.md", "index.html"):
        assert "corrected · joint · strength 0.5" in (tmp_path / "run" / name).read_text()
