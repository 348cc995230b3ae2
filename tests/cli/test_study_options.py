"""The options of a question on semi-synthetic data, as a plan."""

from pathlib import Path

from unveil.cli.study_options import StudyOptions


def test_each_severity_is_asked_for_once_and_in_order() -> None:
    """A slope over a severity that stands there twice would be no number."""
    assert StudyOptions(output=Path("out")).plan((4.0, 1.0, 4.0, 2.0)).severities == (1.0, 2.0, 4.0)
