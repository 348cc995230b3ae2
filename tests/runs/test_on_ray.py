"""A cluster does what processes of one machine do, also when one of its machines is lost."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clusters import lose_one, two_machines
from tests.runs.jobs import Toy, Waits
from unveil.errors import UnveilError
from unveil.files import is_gone
from unveil.runs.workers import Advanced, Done, Failed, Processes, engine

pytest.importorskip("ray", reason="Ray is not installed: pip install 'unveil[ray]'")

from unveil.runs.on_ray import OnRay, ray


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:1", "no Ray cluster answers"),
        ("ray://127.0.0.1:1", "no Ray cluster answers"),
        ("127.0.0.1:99999", "no Ray cluster answers"),
        ("somewhere", "is no address of a Ray cluster"),
        (":6379", "is no address of a Ray cluster"),
    ],
)
def test_an_address_where_nobody_is_is_refused_within_seconds(address: str, message: str) -> None:
    start = time.monotonic()
    with pytest.raises(UnveilError, match=message):
        list(OnRay(address).run([Toy(1)]))
    assert time.monotonic() - start < 20
    assert not ray.is_initialized()


def test_engines_by_name() -> None:
    assert engine("processes", 3) == Processes(3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert engine("ray", 2, address) == OnRay(address, 2)
    with pytest.raises(UnveilError, match="no Ray cluster answers"):
        engine("ray", 2, address)
    with pytest.raises(UnveilError, match="an address is for the engine 'ray'"):
        engine("processes", address="h:1")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with two_machines(monkeypatch) as found:
        yield found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what Ray's own code warns of is not ours to mend
def test_every_job_begins_once_and_ends_once(cluster: Any) -> None:
    jobs = [Toy(0), Toy(1, "refused"), Toy(2, "bug"), Toy(3), Toy(4)]
    events = list(OnRay(cluster.address).run(jobs))
    assert not ray.is_initialized()
    assert sorted(event.key for event in events if event == Advanced(event.key, 0.0)) == [job.key for job in jobs]
    done = {event.key: event.result for event in events if isinstance(event, Done)}
    assert {key: result["square"] for key, result in done.items()} == {"n0": 0, "n3": 9, "n4": 16}
    assert {result["threads"] for result in done.values()} == {"1"}
    failed = {event.key: event.why for event in events if isinstance(event, Failed)}
    assert failed == {"n1": "this cannot be squared: found 1.", "n2": "ZeroDivisionError: a bug."}


def wait_for_a_death(folder: Path) -> None:
    """Until one of the processes that began a job there is gone."""
    begun_by = [int(path.name.partition("-")[2]) for path in folder.glob("w*-*")]
    deadline = time.monotonic() + 120
    while not any(is_gone(process) for process in begun_by):
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_jobs_of_a_machine_that_is_lost_are_done_elsewhere(cluster: Any, tmp_path: Path) -> None:
    jobs = [Waits(number, tmp_path) for number in range(6)]
    events, at_work, lost = [], set[str](), False
    for event in OnRay(cluster.address).run(jobs):
        events.append(event)
        at_work = at_work | {event.key} if event == Advanced(event.key, 0.0) else at_work
        if len(at_work) == 2 and not lost:  # one job on each machine
            lost = True
            lose_one(cluster)
            wait_for_a_death(tmp_path)
            (tmp_path / "go").touch()
    assert lost
    assert {event.key: event.result for event in events if isinstance(event, Done)} == {
        f"w{number}": {"cube": number**3} for number in range(6)
    }
    assert not [event for event in events if isinstance(event, Failed)]
    every = [path.name.split("-")[0] for path in tmp_path.glob("w*-*")]
    assert len(every) > len(set(every)) == 6  # a job was begun again


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_closing_the_events_stops_the_jobs(cluster: Any) -> None:
    events = OnRay(cluster.address).run([Toy(7, "sleeps")])
    assert next(events) == Advanced("n7", 0.0)
    assert next(events) == Advanced("n7", 0.5)
    start = time.monotonic()
    events.close()  # type: ignore[attr-defined]
    assert time.monotonic() - start < 20
