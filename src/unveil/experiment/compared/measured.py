"""What has to be asked of the models again: how far their probabilities can be believed, and what the dial gives."""

from collections.abc import Sequence
from dataclasses import dataclass

from unveil.evaluation.calibration import Calibration, calibration
from unveil.experiment.compared.runs import Judged
from unveil.runs import dial
from unveil.runs.folder import read_split
from unveil.serving.folder import read_dial
from unveil.serving.recommender import Recommender


@dataclass(frozen=True)
class Measured:
    """Of one run, on its test cases; no dial where it was not asked for."""

    calibration: Calibration
    dial: Sequence[dial.Point]


def measured(run: Judged, *, with_dial: bool) -> Measured:
    """Ask the model again. A dial that was measured before is read from the run's folder."""
    recommender = Recommender.load(run.folder)
    split = read_split(run.folder, recommender.sequences)
    found = calibration(
        recommender.model,
        split.test,
        split.whole,
        recommender.length,
        exclude_seen=run.experiment.evaluation.exclude_seen,
    )
    return Measured(found, (_kept(run) or dial.measured(run.folder)) if with_dial else ())


def _kept(run: Judged) -> list[dial.Point]:
    """What `unveil recommend --dial` has left, where it holds all that is drawn."""
    points = read_dial(run.folder)
    return points if all(set(point) >= dial.FIGURES for point in points) else []
