"""The same tables from a cluster as from this process, though one of its two machines is killed on the way."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.clusters import lose_one, two_machines
from tests.run_folders import write_log
from tests.runs.tune.studies import TIMING, quickest, space
from tests.studies.loop.conftest import records, small_study
from tests.studies.small import tiny, tiny_world
from unveil.runs.tune.search import Location, tune
from unveil.runs.tune.study import Plan
from unveil.runs.tune.subjects import Training
from unveil.runs.workers import Advanced, Done, Event, Inline, Job
from unveil.studies.engine import run as run_study
from unveil.studies.engine import write
from unveil.studies.rq1 import RQ1

pytest.importorskip("ray", reason="Ray is not installed: pip install 'unveil[ray]'")

from unveil.runs.on_ray import OnRay

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # what Ray's own code warns of is not ours to mend
]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with two_machines(monkeypatch) as found:
        yield found


class LosesAMachine:
    """The engine of the cluster; the other machine is killed after so many jobs have begun, or have ended."""

    workers = 2

    def __init__(self, cluster: Any, after: type[Event], count: int) -> None:
        self.cluster, self.after, self.left, self.lost = cluster, after, count, False

    def run(self, jobs: Sequence[Job]) -> Iterator[Event]:
        for event in OnRay(self.cluster.address).run(jobs):
            self.left -= isinstance(event, self.after) and getattr(event, "share", 0.0) == 0
            if self.left == 0 and not self.lost:
                lose_one(self.cluster)
                self.lost = True
            yield event


def test_a_question_has_the_same_tables(cluster: Any, tmp_path: Path) -> None:
    study = tiny(RQ1, tiny_world(tmp_path / "world"))
    engine = LosesAMachine(cluster, Done, 3)
    for folder, workers in (("here", Inline()), ("there", engine)):
        write(run_study(study, tmp_path / folder, workers), tmp_path / folder, ["unveil"])
    assert engine.lost
    for name in ("results.json", "results.csv", "index.html"):
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes(), name


def test_a_study_has_the_same_trials(cluster: Any, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.csv")
    plan, experiment = Plan(space(tmp_path), trials=6, replicates=1), quickest(log)
    alone = tune(Training(experiment), plan, Location(tmp_path / "here", **TIMING), tell=lambda _: None)
    engine = LosesAMachine(cluster, Advanced, 2)  # both are at work: trials may end between two looks at them
    shared = tune(
        Training(experiment),
        plan,
        Location(tmp_path / "there", **TIMING),
        tell=lambda _: None,
        engine=engine,
        workers=2,
    )
    assert engine.lost
    assert [each.value for each in shared.trials] == [each.value for each in alone.trials]
    assert [each.settings for each in shared.trials] == [each.settings for each in alone.trials]


def test_a_loop_has_the_same_rounds(cluster: Any, tmp_path: Path) -> None:
    study = small_study(tmp_path, replicates=1)
    alone = run_study(study, tmp_path / "here", Inline())
    engine = LosesAMachine(cluster, Advanced, 2)
    shared = run_study(study, tmp_path / "there", engine)
    assert engine.lost
    assert all(records(shared, model) == records(alone, model) for model in study.estimators)
