"""Ray, or what to do where it is not installed; and joining a cluster, or saying within seconds that there is none."""

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from unveil.errors import UnveilError
from unveil.experiment.grid.threads import ONE_THREAD

# Read when Ray is loaded: what it counts as its own processors is ours to say, and it sends nothing home.
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

try:
    import ray as untyped
except ModuleNotFoundError as error:
    raise UnveilError("the engine 'ray' needs Ray", hint="Run: pip install 'unveil[ray]'.") from error

#: Its own types do not know half of what it takes.
ray: Any = untyped

#: Ray itself would try for minutes.
_SECONDS_TO_ANSWER = 5.0
_HINT = "Start one with `ray start --head`, and give what it prints as --address; without --address Ray runs here."


def refuse_silent(address: str | None) -> None:
    """Before anything is read or written: an address where nobody answers."""
    if (meant := _meant(address)) is not None and not ray.is_initialized():
        _knock(meant)


@contextmanager
def joined(address: str | None, cores: int | None = None) -> Iterator[None]:
    """Inside, Ray is there: the cluster at an address, one of this machine's own, or the one that was joined before."""
    if ray.is_initialized():
        yield
        return
    _init(_meant(address), cores)
    try:
        yield
    finally:
        ray.shutdown()


def _meant(address: str | None) -> str | None:
    return address or os.environ.get("RAY_ADDRESS")


def _init(address: str | None, cores: int | None) -> None:
    ours = {name: value for name, value in os.environ.items() if name.startswith("UNVEIL_")}
    common: dict[str, Any] = {
        "runtime_env": {"env_vars": ours | ONE_THREAD},
        "log_to_driver": False,
        "logging_level": logging.ERROR,
    }
    if address is None:
        ray.init(num_cpus=cores, include_dashboard=False, **common)
        return
    _knock(address)
    try:
        ray.init(address=address, **common)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UnveilError(f"no Ray cluster can be joined: {first.rstrip('.')}", where=address, hint=_HINT) from None


def _knock(address: str) -> None:
    """Refuse an address where nobody listens. `auto` and `local` are Ray's own words."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if address in ("auto", "local"):
        return
    if not (colon and host and port.isdigit()):
        raise UnveilError("is no address of a Ray cluster", where=address, expected="HOST:PORT or ray://HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS_TO_ANSWER).close()
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UnveilError(f"no Ray cluster answers: {why}", where=address, hint=_HINT) from None
