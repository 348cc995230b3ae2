"""Jobs on a Ray cluster, a task of one core each. Ray does again elsewhere what a lost machine was doing."""

import logging
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from unveil.errors import UnveilError
from unveil.runs.workers import ONE_THREAD, Done, Event, Failed, Job, attempt

# Read when Ray is loaded: what it counts as its own processors is ours to say, and it sends nothing home.
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

try:
    import ray as untyped
except ModuleNotFoundError as error:
    raise UnveilError("the engine 'ray' needs Ray", hint="Run: pip install 'unveil[ray]'.") from error

ray: Any = untyped  # its types do not know half of what it accepts

_HINT = "Start one with `ray start --head`, and give what it prints as --address; without --address Ray runs here."


def check_address(address: str | None) -> None:
    """Before anything is read or written: an address where nobody answers is an error."""
    address = address or os.environ.get("RAY_ADDRESS")
    if address in (None, "auto", "local") or ray.is_initialized():  # Ray's own words
        return
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not (colon and host and port.isdigit()):
        raise UnveilError("is no address of a Ray cluster", where=address, expected="HOST:PORT or ray://HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5.0).close()  # Ray would try for minutes
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UnveilError(f"no Ray cluster answers: {why}", where=address, hint=_HINT) from None


@contextmanager
def joined(address: str | None, cores: int | None = None) -> Iterator[None]:
    """Inside, Ray is there: the cluster at an address, one of this machine's own, or the one that was joined before."""
    if ray.is_initialized():
        yield
        return
    check_address(address)
    address = address or os.environ.get("RAY_ADDRESS")
    ours = {name: value for name, value in os.environ.items() if name.startswith("UNVEIL_")}
    where = {"num_cpus": cores, "include_dashboard": False} if address is None else {"address": address}
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        ray.init(runtime_env={"env_vars": ours | ONE_THREAD}, **quiet, **where)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        if address is None:
            raise
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UnveilError(f"no Ray cluster can be joined: {first.rstrip('.')}", where=address, hint=_HINT) from None
    try:
        yield
    finally:
        ray.shutdown()


def work(job: Job, events: Any, folder: str) -> Done | Failed:
    """One task, in the folder where the command was given, on machines that have it."""
    with suppress(OSError):
        os.chdir(folder)
    return attempt(job, events.put)


@dataclass(frozen=True)
class OnRay:
    """A cluster by its address; without one, a cluster of this machine alone with so many cores."""

    address: str | None = None
    cores: int | None = None

    @property
    def workers(self) -> int:
        """As many as the cluster has cores now."""
        with joined(self.address, self.cores):
            return max(1, int(ray.cluster_resources().get("CPU", 1)))

    def run(self, jobs: Sequence[Job]) -> Iterator[Event]:
        from ray.util.queue import Queue
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        with joined(self.address, self.cores):
            # The events lie with us, not on a machine that may be lost.
            here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
            events = Queue(actor_options={"num_cpus": 0, "scheduling_strategy": here})
            task = ray.remote(num_cpus=1, max_retries=5, scheduling_strategy="SPREAD")(work)
            left = {task.remote(job, events, os.getcwd()): job for job in jobs}
            try:
                while left:
                    over, _ = ray.wait(list(left), timeout=0.5)
                    yield from events.get_nowait_batch(events.qsize())
                    for reference in over:
                        yield _outcome(reference, left.pop(reference))
            finally:
                for reference in left:
                    ray.cancel(reference, force=True)
                events.shutdown(force=True)


def _outcome(reference: Any, job: Job) -> Done | Failed:
    """The job's end. Ray's errors are long, and say what matters last."""
    try:
        event: Done | Failed = ray.get(reference)
        return event
    except ray.exceptions.OutOfMemoryError as error:
        return Failed(job.key, "there is not enough memory.", str(error))
    except ray.exceptions.RayTaskError as error:
        cause = (str(error.cause or error).strip().splitlines() or [""])[-1].rstrip(".")
        hint = "Is the same version of unveil installed on every machine?"
        return Failed(job.key, f"it could not be begun: {cause}. {hint}", str(error))
    except ray.exceptions.RayError as error:
        return Failed(job.key, f"its process or machine was lost ({type(error).__name__}).", str(error))
