"""Workers of one machine: all jobs are done, whatever becomes of some of them."""

import os
import signal
import time
from multiprocessing import active_children

import pytest

from tests.runs.jobs import Toy
from unveil.runs.workers import Advanced, Done, Engine, Failed, Inline, Processes, cores


@pytest.mark.parametrize("engine", [Inline(), Processes(2)], ids=["inline", "processes"])
def test_every_job_begins_once_and_ends_once(engine: Engine) -> None:
    jobs = [Toy(0), Toy(1, "refused"), Toy(2, "bug"), Toy(3), Toy(4)]
    events = list(engine.run(jobs))
    assert sorted(event.key for event in events if event == Advanced(event.key, 0.0)) == [job.key for job in jobs]
    done = {event.key: event.result["square"] for event in events if isinstance(event, Done)}
    assert done == {"n0": 0, "n3": 9, "n4": 16}
    failed = {event.key: event for event in events if isinstance(event, Failed)}
    assert failed.keys() == {"n1", "n2"}
    assert failed["n1"].why == "this cannot be squared: found 1."
    assert failed["n1"].detail == ""
    assert failed["n2"].why == "ZeroDivisionError: a bug."
    assert "Traceback" in failed["n2"].detail


def test_workers_have_one_thread_tell_how_far_they_are_and_are_replaced_when_they_die() -> None:
    before = os.environ.get("OMP_NUM_THREADS")
    events = list(Processes(1).run([Toy(1), Toy(2, "dies"), Toy(3)]))
    assert os.environ.get("OMP_NUM_THREADS") == before
    done = {event.key: event.result for event in events if isinstance(event, Done)}
    assert done.keys() == {"n1", "n3"}
    assert {result["threads"] for result in done.values()} == {"1"}
    assert done["n1"]["pid"] != done["n3"]["pid"]
    assert [event.share for event in events if isinstance(event, Advanced) and event.key == "n1"] == [0.0, 0.5]
    (failure,) = [event for event in events if isinstance(event, Failed)]
    assert failure.key == "n2"
    assert "its process died (killed, most likely for want of memory)" in failure.why


def test_closing_the_events_stops_the_workers_at_once() -> None:
    events = Processes(1).run([Toy(7, "sleeps")])
    assert next(events) == Advanced("n7", 0.0)
    assert next(events) == Advanced("n7", 0.5)
    start = time.monotonic()
    events.close()  # type: ignore[attr-defined]
    assert time.monotonic() - start < 10


def test_a_worker_never_hears_a_ctrl_c_not_even_while_it_begins() -> None:
    events = Processes(1).run([Toy(3)])
    assert next(events) == Advanced("n3", 0.0)
    (worker,) = active_children()
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGINT)
    assert isinstance(list(events)[-1], Done)


def test_there_is_a_core() -> None:
    assert 1 <= cores() <= (os.cpu_count() or 1)


def test_workers_do_not_repeat_what_whoever_sent_the_jobs_was_warned_of(capfd: pytest.CaptureFixture[str]) -> None:
    assert isinstance(list(Processes(1).run([Toy(1, "warns")]))[-1], Done)
    assert capfd.readouterr().err == ""
