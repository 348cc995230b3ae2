"""The real command in a process of its own, against the loopback server."""

import json
import os
import pty
import random
import resource
import signal
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import pytest

from tests.data.fetch.archives import tar_link, zip_of
from tests.data.fetch.server import Served, Server

UNVEIL = str(Path(sys.executable).with_name("unveil"))
RATINGS = random.Random(3).randbytes(600_000).hex().encode()
ML_1M = zip_of({"ml-1m/ratings.dat": RATINGS})
ROWS = b"A39HTATAQ9V7YF,0205616461,5.0,1369699200\n"


def run(*arguments: str, limited: bool = False) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [UNVEIL, "data", "fetch", *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        stdin=subprocess.DEVNULL,
        preexec_fn=_small_files_only if limited else None,
    )


def from_server(server: Server, packed: bytes, path: str = "/ml-1m.zip") -> tuple[str, ...]:
    """The options that make the loopback server the source of `packed`."""
    url = server.put(path, Served(packed))
    return "--url", url, "--checksum", f"sha256:{sha256(packed).hexdigest()}", "--accept-terms", "--retries", "1"


def failed(result: "subprocess.CompletedProcess[str]") -> str:
    """The one message of a run that failed as it should."""
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert result.stderr.count("unveil: ") == 1
    return result.stderr


@pytest.fixture(autouse=True)
def _own_home(home: Path) -> None:
    """Every run writes into the test's own folder."""


def test_fetch_then_again_then_list(server: Server, home: Path) -> None:
    first = run("ml-1m", *from_server(server, ML_1M))
    assert first.returncode == 0, first.stderr
    for shown in ("Source:", server.root, "Terms:", "do not pass the data on", "Cite:", str(home / "ml-1m")):
        assert shown in first.stdout
    assert (home / "ml-1m" / "ratings.dat").read_bytes() == RATINGS
    assert first.stderr == ""

    again = run("ml-1m")
    assert again.returncode == 0
    assert again.stdout == f"ml-1m is here already: {home / 'ml-1m' / 'ratings.dat'}\n"

    listed = run("--list").stdout
    assert [line.split()[0] for line in listed.splitlines() if " here " in line] == ["ml-1m"]
    assert "kuairand-pure" in listed


def test_the_name_stands_for_the_log(server: Server, home: Path) -> None:
    log = b"".join(f"{user}::{item}::5::{978300000 + item}\n".encode() for user in range(1, 6) for item in range(1, 8))
    absent = subprocess.run([UNVEIL, "data", "describe", "ml-1m"], capture_output=True, text=True, timeout=60)
    assert "Run `unveil data fetch ml-1m`." in failed(absent)
    assert run("ml-1m", *from_server(server, zip_of({"ml-1m/ratings.dat": log}))).returncode == 0
    command = [UNVEIL, "data", "describe", "ml-1m", "--json"]
    described = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout)
    figures = described["as it is"]
    assert (figures["users"], figures["items"], figures["interactions"]) == (5, 7, 35)


def test_nobody_to_ask(server: Server, home: Path) -> None:
    message = failed(run("ml-1m", "--url", server.put("/x", Served(ML_1M))))
    assert "Pass --accept-terms" in message
    assert server.seen == []
    assert not home.exists()


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("y\n", 0)])
def test_someone_to_ask(server: Server, home: Path, answer: str, code: int) -> None:
    url = server.put("/ratings_Beauty.csv", Served(ROWS))
    ours, theirs = pty.openpty()
    try:
        os.write(ours, answer.encode())
        command = [UNVEIL, "data", "fetch", "amazon-beauty", "--url", url]
        result = subprocess.run(command, stdin=theirs, capture_output=True, text=True, timeout=30)
    finally:
        os.close(ours)
        os.close(theirs)
    assert result.returncode == code
    assert "Accept these terms" in result.stdout + result.stderr
    assert (home / "amazon-beauty" / "ratings_Beauty.csv").is_file() == (code == 0)


def test_ctrl_c_in_the_middle_then_on_to_the_end(server: Server, home: Path) -> None:
    options = from_server(server, ML_1M)
    server.files["/ml-1m.zip"].pause = 0.1
    process = subprocess.Popen(
        [UNVEIL, "data", "fetch", "ml-1m", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    part = home / "ml-1m.part"
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not (part.exists() and part.stat().st_size > 100_000):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "continues when the command is run again" in errors
    assert "Traceback" not in errors
    have = part.stat().st_size
    assert 100_000 < have < len(ML_1M)

    server.files["/ml-1m.zip"].pause = 0.0
    assert run("ml-1m", *options).returncode == 0
    assert server.seen[-1].range == f"bytes={have}-"
    assert server.seen[-1].sent == len(ML_1M) - have
    assert (home / "ml-1m" / "ratings.dat").read_bytes() == RATINGS
    assert not part.exists()


@pytest.mark.parametrize(
    ("served", "says"),
    [
        (Served(ML_1M, statuses=[404]), "no such file on the server"),
        (Served(b"<html>sign in</html>", kind="text/html"), "sent a web page"),
        (Served(ML_1M[:-1] + b"?"), "checksum does not match"),
    ],
    ids=["404", "web page", "corrupted"],
)
def test_each_failure_is_one_message(server: Server, home: Path, served: Served, says: str) -> None:
    options = from_server(server, ML_1M)
    server.put("/ml-1m.zip", served)
    assert says in failed(run("ml-1m", *options))
    assert not (home / "ml-1m").exists()


def test_a_hostile_archive_is_one_message(server: Server, home: Path) -> None:
    message = failed(run("kuairand-pure", *from_server(server, tar_link("etc", "/etc"))))
    assert "not safe to unpack: a link or a device" in message
    assert list(home.iterdir()) == []


def test_the_checksum_of_the_catalogue_holds_for_mirrors(server: Server, home: Path) -> None:
    url = server.put("/ml-1m.zip", Served(ML_1M))
    message = failed(run("ml-1m", "--url", url, "--accept-terms"))
    assert "expected 5,917,549 bytes" in message
    assert list(home.iterdir()) == []


def test_a_full_disk_is_one_message(server: Server, home: Path) -> None:
    message = failed(run("ml-1m", *from_server(server, ML_1M), limited=True))
    assert "cannot write" in message
    assert not (home / "ml-1m").exists()


def _small_files_only() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))


def test_a_place_that_cannot_be(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    message = failed(run("ml-1m", *from_server(server, ML_1M), "--to", str(tmp_path / "file" / "inside")))
    assert "a part of the path is a file" in message


def test_a_repository_is_refused(server: Server, tmp_path: Path) -> None:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    message = failed(run("ml-1m", *from_server(server, ML_1M), "--to", str(tmp_path / "project" / "data")))
    assert "not fetched into a source repository" in message
    assert "UNVEIL_DATA" in message
    assert server.seen == []


def test_another_place_is_named_to_the_user(server: Server, tmp_path: Path) -> None:
    url = server.put("/ratings_Beauty.csv", Served(ROWS))
    result = run("amazon-beauty", "--url", url, "--accept-terms", "--to", str(tmp_path / "else"))
    assert result.returncode == 0, result.stderr
    assert f"Set UNVEIL_DATA={tmp_path / 'else'}" in result.stdout


def test_an_unknown_name(home: Path) -> None:
    assert "Did you mean 'ml-100k'?" in failed(run("ml-100"))
