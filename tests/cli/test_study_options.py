"""The options of a question on semi-synthetic data, as a plan."""

from pathlib import Path

import pytest

from tests.cli.conftest import Command
from unveil.cli.study_options import StudyOptions


def test_each_severity_is_asked_for_once_and_in_order() -> None:
    """A slope over a severity that stands there twice would be no number."""
    assert StudyOptions(output=Path("out")).plan((4.0, 1.0, 4.0, 2.0)).severities == (1.0, 2.0, 4.0)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("beyond", "--estimators", "naive"), "--estimators: a gap has two ends: found 'naive'"),
        (("beyond", "--estimators", "itps,ideal"), "--estimators: a gap has two ends"),
        (("recipe", "--estimators", "itps@popularity"), "--estimators: a gain is over naive"),
        (("rq1", "--estimators", "naive,itps+clip=abc"), "itps.clip: not a valid value: found 'abc'"),
        (("beyond", "--estimators", "naive,itps+exponent=x,ideal"), "itps.exponent: not a valid value: found 'x'"),
        (("rq2", "--set", "itps:estimator.clip=abc"), "itps.clip: not a valid value: found 'abc'"),
        (("assumptions", "--severities", "abc"), "--severities: not numbers: found 'abc'"),
        (("assumptions", "--foresights", "0,x"), "--foresights: not numbers: found '0,x'"),
    ],
)
def test_what_cannot_be_answered_is_refused_before_a_folder_is_made(
    unveil: Command, tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    given = ("-o", tmp_path / "out", "--data", "builtin", "--preset", "quick", "--replicates", 1)
    assert says in unveil("reproduce", *words, *given).failure()
    assert not (tmp_path / "out").exists()
