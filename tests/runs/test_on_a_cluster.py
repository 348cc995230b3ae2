"""The same tables from a cluster as from this process, though one of its two machines is killed on the way."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.clusters import lose_one, two_machines
from tests.experiment.reproduce.small import tiny_plan, tiny_world
from tests.run_folders import experiment_on, small_log, write_log
from tests.runs.tune.studies import TIMING, quickest, space
from tests.studies.loop.conftest import plan_of
from unveil.experiment.reproduce.files import write
from unveil.experiment.reproduce.rq1 import RQ1
from unveil.experiment.reproduce.run import answer
from unveil.runs.train import run
from unveil.runs.tune.search import Location, Workers, tune
from unveil.runs.tune.study import Plan
from unveil.runs.tune.trainings import Training
from unveil.runs.workers import Begun, Done, Event, Inline, Job
from unveil.studies.loop import run_loop
from unveil.training.checkpoint import Best, Epoch
from unveil.training.process_group import WorkerLostError
from unveil.training.progress import Plan as Ahead

pytest.importorskip("ray", reason="Ray is not installed: pip install 'unveil[ray]'")

from unveil.runs.on_ray import OnRay
from unveil.runs.parallel import run_on_ray

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # what Ray's own code warns of is not ours to mend
]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with two_machines(monkeypatch) as found:
        yield found


class LosesAMachine:
    """The engine of the cluster; the other machine is killed after so many events of a kind."""

    def __init__(self, cluster: Any, after: type[Event], count: int) -> None:
        self.cluster, self.after, self.left, self.lost = cluster, after, count, False

    def workers(self) -> int:
        return 2

    def run(self, jobs: Sequence[Job]) -> Iterator[Event]:
        for event in OnRay(self.cluster.address).run(jobs):
            self.left -= isinstance(event, self.after)
            if self.left == 0 and not self.lost:
                lose_one(self.cluster)
                self.lost = True
            yield event


def test_a_question_has_the_same_tables(cluster: Any, tmp_path: Path) -> None:
    plan = tiny_plan(tiny_world(tmp_path / "world"))
    engine = LosesAMachine(cluster, Done, 3)
    for folder, workers in (("here", Inline()), ("there", engine)):
        write(answer(RQ1(), plan, tmp_path / folder, workers), tmp_path / folder, ["unveil"])
    assert engine.lost
    for name in ("results.json", "results.csv", "index.html"):
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes(), name


def test_a_study_has_the_same_trials(cluster: Any, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.csv")
    plan, experiment = Plan(space(tmp_path), trials=6, replicates=1), quickest(log)
    alone = tune(Training(experiment), plan, Location(tmp_path / "here", None, TIMING), tell=lambda _: None)
    engine = LosesAMachine(cluster, Begun, 2)  # both are at work: trials may end between two looks at them
    shared = tune(
        Training(experiment),
        plan,
        Location(tmp_path / "there", None, TIMING),
        tell=lambda _: None,
        workers=Workers(engine, 2),
    )
    assert engine.lost
    assert [each.value for each in shared.trials] == [each.value for each in alone.trials]
    assert [each.settings for each in shared.trials] == [each.settings for each in alone.trials]


def test_a_loop_has_the_same_rounds(cluster: Any, tmp_path: Path) -> None:
    plan = plan_of(replicates=1)
    alone = run_loop(plan, small_log(), tmp_path / "here", Inline())
    engine = LosesAMachine(cluster, Begun, 2)
    shared = run_loop(plan, small_log(), tmp_path / "there", engine)
    assert engine.lost
    assert shared.outcome.records == alone.outcome.records


def test_workers_of_a_cluster_train_as_one_process(cluster: Any, tmp_path: Path) -> None:
    experiment = experiment_on(write_log(tmp_path / "log.csv"), {"model.dropout": 0.0})
    alone = run(experiment, tmp_path / "here", tell=lambda _: None).fitted
    said: list[str] = []
    shared = run_on_ray(experiment, tmp_path / "there", 2, cluster.address, tell=said.append).fitted
    assert "workers    2, 1 thread each, on 2 machines" in said
    curves = [[epoch.validation["NDCG@10"] for epoch in each.epochs if epoch.validation] for each in (alone, shared)]
    assert curves[1] == pytest.approx(curves[0], abs=1e-6)
    assert len(curves[0]) == 3


def test_a_worker_of_several_threads_finds_its_cores_here(tmp_path: Path) -> None:
    """Without an address: a cluster of this machine alone, with as many cores as its workers ask for."""
    experiment = experiment_on(write_log(tmp_path / "log.csv"), {"training.threads": 3, "training.epochs": 1})
    said: list[str] = []
    run_on_ray(experiment, tmp_path / "run", 2, tell=said.append)
    assert "workers    2, 3 threads each, on 1 machine" in said


def test_a_run_whose_worker_is_lost_goes_on_from_its_checkpoint(cluster: Any, tmp_path: Path) -> None:
    changes = {"model.dropout": 0.0, "training.epochs": 60, "training.patience": None}
    experiment = experiment_on(write_log(tmp_path / "log.csv"), changes)
    folder = tmp_path / "run"
    with pytest.raises(WorkerLostError, match="worker"):
        run_on_ray(experiment, folder, 3, cluster.address, watch=LosesAMachineAfter(cluster, 5), tell=lambda _: None)
    resumed = run(experiment, folder, resume=True, tell=lambda _: None).fitted
    alone = run(experiment, tmp_path / "alone", tell=lambda _: None).fitted
    assert resumed.best is not None
    assert alone.best is not None
    assert resumed.best.value == pytest.approx(alone.best.value, abs=1e-6)


class LosesAMachineAfter:
    """Watches a training; after some epochs the other machine is gone."""

    def __init__(self, cluster: Any, epochs: int) -> None:
        self.cluster, self.epochs = cluster, epochs

    def start(self, plan: Ahead) -> None:
        pass

    def batch(self, loss: float) -> None:
        pass

    def epoch(self, epoch: Epoch, best: Best | None) -> None:
        if epoch.epoch == self.epochs:
            lose_one(self.cluster)

    def stop(self) -> None:
        pass
