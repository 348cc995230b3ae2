"""Arms of RQ4 beyond the paper's: any estimator, with any propensity that a real log can give."""

from pathlib import Path
from typing import Any

import pytest

from tests.run_folders import write_log
from unveil.errors import UnveilError
from unveil.runs.workers import Inline
from unveil.studies.engine import run, write
from unveil.studies.rq4 import RQ4
from unveil.studies.rq4_report import proxies

CHANGES = ("model.width=8", "model.blocks=1", "model.heads=1", "model.length=8", "training.epochs=1")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("log") / "log.csv")


@pytest.fixture(scope="module")
def study(log: Path) -> RQ4:
    fields: dict[str, Any] = {
        "preset": "converged",
        "negatives": 5,
        "strengths": (0.0, 0.5),
        "changes": CHANGES,
        "replicates": 1,
    }
    return RQ4(log=str(log), min_item=0, min_user=0, **fields)


def with_arms(study: RQ4, *arms: str) -> RQ4:
    return RQ4(**{**study.model_dump(), "estimators": arms})


def test_an_arm_is_told_what_its_word_names_and_popularity_otherwise(study: RQ4) -> None:
    assert study.recipe("corrected", 0).propensity == {"name": "popularity-temporal"}
    assert study.recipe("corrected@joint", 0).propensity["name"] == "joint-temporal"
    assert study.recipe("logit-adjustment", 0).propensity == {"name": "popularity-static"}
    assert study.recipe("itps@timing+clip=0.3", 0).estimator["clip"] == 0.3


def test_what_is_random_in_a_propensity_is_the_replicates_own(study: RQ4) -> None:
    first, second = (study.recipe("corrected@joint", replicate).propensity["seed"] for replicate in (0, 1))
    assert first == study.replicate_seed(0)
    assert second == study.replicate_seed(1)
    assert study.recipe("wmf-distilled", 1).estimator["seed"] == study.replicate_seed(1)


def test_the_authors_exponents_are_for_popularity_alone(study: RQ4) -> None:
    assert study.recipe("itps", 0).estimator["exponent"] == 0.2
    assert study.recipe("itps@popularity", 0).estimator["exponent"] == 0.2
    assert "exponent" not in study.recipe("itps@joint", 0).estimator


def test_a_setting_names_a_propensity_for_arms_that_name_none(study: RQ4) -> None:
    set_so = RQ4(**{**study.model_dump(), "changes": (*CHANGES, "itps:propensity.name=timing")})
    assert set_so.recipe("itps", 0).propensity["name"] == "timing"
    assert set_so.recipe("itps@joint", 0).propensity["name"] == "joint-temporal"


@pytest.mark.parametrize(
    ("arm", "says"),
    [
        ("corrected@true", "needs a world whose exposure is known"),
        ("itps@noisy:0.5", "needs a world whose exposure is known"),
        ("wmf-distilled-rated", "needs a log with ratings"),
        ("corrected@joint-rated", "needs a log with ratings"),
        ("corrected@recorded", "impressions without a click.*`unveil data convert .*` has the options.*--clicked-col"),
    ],
)
def test_what_the_log_cannot_give_is_refused_before_anything_is_trained(
    study: RQ4, tmp_path: Path, arm: str, says: str
) -> None:
    with pytest.raises(UnveilError, match=says):
        run(with_arms(study, "naive", arm), tmp_path / "run", Inline())
    assert not (tmp_path / "run").exists()


def test_without_naive_there_is_nothing_to_compare_with(study: RQ4) -> None:
    with pytest.raises(UnveilError) as refused:
        with_arms(study, "wmf-distilled", "itps@joint")
    assert str(refused.value) == (
        "the naive estimator is what all others are compared with: found 'wmf-distilled, itps@joint'. "
        "Add it: --estimators naive,wmf-distilled,itps@joint."
    )


def test_every_proxy_is_named(study: RQ4) -> None:
    def of(*arms: str) -> dict[str, Any]:
        return proxies({arm: study.recipe(arm, 0) for arm in arms})

    assert of("naive", "ips", "itps") == {"popular": ["ips", "itps"], "others": [], "recorded": False}
    found = of("naive", "itps", "corrected@joint")
    ((arm, name, assumes),) = found["others"]
    assert (found["popular"], arm, name) == (["itps"], "corrected@joint", "joint-temporal")
    assert assumes.startswith("that exposure is the same")
    assert of("naive", "wmf-distilled") == {"popular": [], "others": [], "recorded": False}
    assert of("naive", "corrected@recorded")["recorded"]


def test_such_arms_are_trained_evaluated_and_shown(study: RQ4, tmp_path: Path) -> None:
    arms = ("naive", "wmf-distilled", "corrected-tempered", "itps+clip=20%", "corrected@joint+strength=0.5")
    found = run(with_arms(study, *arms), tmp_path / "run", Inline())
    assert found.results.trained == [*arms, "control"]
    assert found.where(estimator=arms[-1])[0]["weights"] is None
    assert found.where(estimator="itps+clip=20%")[0]["weights"]["clipped"] >= 0.2
    write(found, tmp_path / "run", ["unveil", "reproduce", "rq4"])
    for name in ("README.md", "index.html"):
        assert "corrected · joint · strength 0.5" in (tmp_path / "run" / name).read_text()
