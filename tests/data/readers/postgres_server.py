"""A PostgreSQL server of our own: made, started, stopped and removed by the test."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

PASSWORD = "s3cret p@ss"


@dataclass(frozen=True)
class Server:
    """Where the server listens."""

    port: int

    def url(self, password: str = "s3cret%20p%40ss", database: str = "postgres") -> str:
        return f"postgresql://keeper:{password}@127.0.0.1:{self.port}/{database}"


@contextmanager
def running() -> Iterator[Server]:
    """A server on a free port of this machine; the test is skipped where PostgreSQL is not installed."""
    initdb, pg_ctl = _program("initdb"), _program("pg_ctl")
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    try:
        data, secret, port = folder / "data", folder / "password", _free_port()
        secret.write_text(PASSWORD)
        _give_away(folder, secret)
        _run(initdb, "-D", data, "-U", "keeper", "-A", "scram-sha-256", f"--pwfile={secret}", "-E", "UTF8", "--no-sync")
        options = f"-p {port} -h 127.0.0.1 -k {folder} -c fsync=off"
        _run(pg_ctl, "-D", data, "-o", options, "-l", folder / "log", "-w", "-t", "60", "start")
        try:
            yield Server(port)
        finally:
            _run(pg_ctl, "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _program(name: str) -> Path:
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    on_path = shutil.which(name)
    if on_path is None and not installed:
        pytest.skip(f"PostgreSQL is not installed: no {name} on the PATH or under /usr/lib/postgresql")
    return installed[0] if installed else Path(str(on_path))


def _run(*command: object) -> None:
    """As another user where the tests run as root, which PostgreSQL refuses."""
    account = _account()
    done = subprocess.run(
        [str(part) for part in command],
        user=account.pw_uid if account else None,
        group=account.pw_gid if account else None,
        extra_groups=[] if account else None,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE if "start" not in command else subprocess.DEVNULL,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode:
        pytest.fail(f"{command[0]} failed: {done.stderr}")


def _account() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    names = {account.pw_name: account for account in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]


def _give_away(*paths: Path) -> None:
    account = _account()
    for path in paths:
        if account:
            os.chown(path, account.pw_uid, account.pw_gid)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
