import pytest

from unveil.errors import UnveilError
from unveil.experiment.reproduce.study import Study
from unveil.experiment.rq4.log import LogChoice
from unveil.experiment.rq4.study import RealStudy
from unveil.studies.arms import changes_of, check_changes
from unveil.studies.presets import CONVERGED

CHANGES = ("model.width=8", "itps:model.width=16", "itps:estimator.clip=0.3", "training.epochs=2")


def test_what_is_said_of_one_arm_wins_over_what_is_said_of_all() -> None:
    assert changes_of("naive", CHANGES) == {"model.width": 8, "training.epochs": 2}
    assert changes_of("itps", CHANGES) == {"model.width": 16, "training.epochs": 2, "estimator.clip": 0.3}
    assert changes_of("itps", reversed(CHANGES)) == changes_of("itps", CHANGES)
    check_changes(["itps"], CHANGES)
    with pytest.raises(UnveilError, match="unknown option of the estimator 'naive'"):
        check_changes(["naive"], ["estimator.clip=0.1"])


def test_an_arm_of_a_study_has_settings_of_its_own() -> None:
    study = Study(preset="quick", changes=CHANGES)
    assert [study.recipe(arm, 0).model.width for arm in ("naive", "ips", "itps")] == [8, 8, 16]
    assert study.recipe("itps", 0).estimator["clip"] == 0.3


def test_what_a_preset_is_said_to_be_names_what_was_changed() -> None:
    told = "; changed: model.width=8, itps:model.width=16, itps:estimator.clip=0.3, training.epochs=2"
    assert Study(preset="converged").about == CONVERGED.about
    assert Study(preset="converged", changes=CHANGES).about == f"{CONVERGED.about}{told}"
    plain, changed = (RealStudy(LogChoice("log", 0, 0), preset="converged", changes=each) for each in ((), CHANGES))
    assert plain.about == f"{CONVERGED.about}; settings and exponents for ml-1m"
    assert changed.about == f"{plain.about}{told}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("itsp:model.width=8", "Did you mean 'itps'"),
        ("naive:estimator.clip=1", "unknown option"),
        ("itps:model.widht=8", "unknown setting"),
    ],
)
def test_a_change_of_nothing_is_refused(change: str, message: str) -> None:
    with pytest.raises(UnveilError, match=message):
        Study(preset="quick", changes=(change,))
