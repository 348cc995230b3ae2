import os
import random
import socket
import ssl
import subprocess
from hashlib import md5, sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.fetch.server import Served, Server, serving
from unveil.data.fetch.download import Retries, Source, Watcher, download, well_formed
from unveil.errors import UnveilError
from unveil.files import alone_in

BODY = random.Random(7).randbytes(400_000)
SHA = f"sha256:{sha256(BODY).hexdigest()}"
QUICK = Retries(timeout=5, tries=2, pause=0.0)


class StopsAt(Watcher):
    """Presses Ctrl-C once so many bytes are there."""

    def __init__(self, bytes_: int) -> None:
        self.bytes = bytes_

    def at(self, done: int, total: int | None) -> None:
        if done >= self.bytes:
            raise KeyboardInterrupt


class Watches(Watcher):
    def __init__(self) -> None:
        self.places: list[tuple[int, int | None]] = []
        self.notes: list[str] = []

    def at(self, done: int, total: int | None) -> None:
        self.places.append((done, total))

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def part(tmp_path: Path) -> Path:
    return tmp_path / "home" / "set.part"


def stopped_midway(url: str, part: Path) -> int:
    """Download until Ctrl-C and say how much is there."""
    with pytest.raises(KeyboardInterrupt):
        download(Source(url), part, StopsAt(150_000), QUICK)
    return part.stat().st_size


def refusal(source: Source, part: Path, retries: Retries = QUICK) -> str:
    with pytest.raises(UnveilError) as caught:
        download(source, part, Watcher(), retries)
    return str(caught.value)


@pytest.mark.parametrize("checksum", [SHA, f"md5:{md5(BODY).hexdigest()}", None])
def test_a_whole_file_arrives_in_one_request(server: Server, part: Path, checksum: str | None) -> None:
    url, watcher = server.put("/set", Served(BODY)), Watches()
    download(Source(url, len(BODY), checksum), part, watcher, QUICK)
    assert part.read_bytes() == BODY
    assert len(server.seen) == 1
    assert watcher.places[0] == (0, len(BODY))
    assert watcher.places[-1] == (len(BODY), len(BODY))


def test_after_ctrl_c_only_the_rest_is_sent(server: Server, part: Path) -> None:
    url = server.put("/set", Served(BODY))
    have = stopped_midway(url, part)
    assert 150_000 <= have < len(BODY)
    download(Source(url, len(BODY), SHA), part, Watcher(), QUICK)
    assert part.read_bytes() == BODY
    assert (server.seen[-1].range, server.seen[-1].status) == (f"bytes={have}-", 206)
    assert server.seen[-1].sent == len(BODY) - have


def test_a_dropped_connection_is_taken_up_again(server: Server, part: Path) -> None:
    url, watcher = server.put("/set", Served(BODY, drops=[100_000, 0, 50_000])), Watches()
    download(Source(url, len(BODY), SHA), part, watcher, QUICK)
    assert part.read_bytes() == BODY
    assert [seen.range for seen in server.seen] == [None, "bytes=100000-", "bytes=100000-", "bytes=150000-"]
    assert len(watcher.notes) == 3


def test_a_body_that_is_always_too_short_is_given_up_but_kept(server: Server, part: Path) -> None:
    url = server.put("/set", Served(BODY, claims=len(BODY) + 1000, ranges=False))
    message = refusal(Source(url), part)
    assert "broke before the end: found '400,000 of 401,000 bytes'" in message
    assert part.stat().st_size == len(BODY)
    assert len(server.seen) == 1 + QUICK.tries


@settings(max_examples=15, deadline=None)
@given(
    body=st.binary(min_size=1, max_size=3000).filter(lambda body: not body.lstrip().startswith(b"<")),  # no web page
    drops=st.lists(st.integers(0, 2000), max_size=4),
    ranges=st.booleans(),
    etag=st.sampled_from(['"v1"', 'W/"v1"', None]),
    known=st.booleans(),
)
def test_whatever_drops_the_bytes_are_right(
    body: bytes, drops: list[int], ranges: bool, etag: str | None, known: bool
) -> None:
    with serving() as server, TemporaryDirectory() as folder:
        url = server.put("/set", Served(body, ranges, etag, drops=drops))
        source = Source(url, len(body) if known else None, f"sha256:{sha256(body).hexdigest()}" if known else None)
        download(source, Path(folder, "part"), Watcher(), Retries(5, 6, 0.0))
        assert Path(folder, "part").read_bytes() == body


def test_a_wrong_checksum_deletes_the_file_and_says_both(server: Server, part: Path) -> None:
    corrupted = BODY[:-1] + bytes([BODY[-1] ^ 1])
    message = refusal(Source(server.put("/set", Served(corrupted)), len(BODY), SHA), part)
    assert sha256(corrupted).hexdigest() in message
    assert SHA in message
    assert list(part.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("status", "says"),
    [(404, "no such file on the server"), (403, "refuses access"), (410, "has been removed"), (418, "HTTP 418")],
)
def test_final_refusals_are_not_tried_again(server: Server, part: Path, status: int, says: str) -> None:
    url = server.put("/set", Served(BODY, statuses=[status] * 9))
    assert says in refusal(Source(url), part)
    assert len(server.seen) == 1
    assert list(part.parent.iterdir()) == []


def test_a_failing_server_is_tried_again_and_then_given_up(server: Server, part: Path) -> None:
    url = server.put("/set", Served(BODY, statuses=[500] * 9))
    assert "HTTP 500" in refusal(Source(url), part)
    assert len(server.seen) == QUICK.tries


def test_a_server_that_recovers_is_forgiven(server: Server, part: Path) -> None:
    url = server.put("/set", Served(BODY, statuses=[503]))
    download(Source(url), part, Watcher(), QUICK)
    assert part.read_bytes() == BODY


def test_a_server_without_ranges_starts_from_nothing(server: Server, part: Path) -> None:
    url = server.put("/set", Served(BODY, ranges=False))
    stopped_midway(url, part)
    download(Source(url, len(BODY), SHA), part, Watcher(), QUICK)
    assert part.read_bytes() == BODY
    assert (server.seen[-1].status, server.seen[-1].sent) == (200, len(BODY))


@pytest.mark.parametrize("dated", [False, True])
def test_a_file_that_changed_in_between_is_not_mixed(server: Server, part: Path, dated: bool) -> None:
    first, second = ("Mon, 05 Jan 2026 00:00:00 GMT", "Tue, 06 Jan 2026 00:00:00 GMT") if dated else ('"v1"', '"v2"')
    url = server.put("/set", Served(BODY, etag=None if dated else first, modified=first if dated else None))
    stopped_midway(url, part)
    changed = BODY[::-1]
    server.put("/set", Served(changed, etag=None if dated else second, modified=second if dated else None))
    download(Source(url), part, Watcher(), QUICK)
    assert part.read_bytes() == changed
    assert server.seen[-1].range is not None


def test_bytes_of_unknown_version_are_not_built_upon(server: Server, part: Path) -> None:
    url = server.put("/set", Served(BODY, etag='W/"weak"'))
    stopped_midway(url, part)
    download(Source(url), part, Watcher(), QUICK)
    assert part.read_bytes() == BODY
    assert server.seen[-1].range is None


def test_bytes_from_another_address_are_not_built_upon(server: Server, part: Path) -> None:
    stopped_midway(server.put("/other", Served(BODY[::-1])), part)
    download(Source(server.put("/set", Served(BODY)), len(BODY), SHA), part, Watcher(), QUICK)
    assert part.read_bytes() == BODY
    assert server.seen[-1].range is None


def test_a_whole_part_of_known_size_needs_no_request(server: Server, part: Path) -> None:
    url = server.put("/set", Served(BODY))
    download(Source(url), part, Watcher(), QUICK)
    server.seen.clear()
    download(Source(url, len(BODY), SHA), part, Watcher(), QUICK)
    assert server.seen == []


def test_a_whole_part_of_unknown_size_is_confirmed_by_the_server(server: Server, part: Path) -> None:
    url = server.put("/set", Served(BODY))
    download(Source(url), part, Watcher(), QUICK)
    download(Source(url), part, Watcher(), QUICK)
    assert (server.seen[-1].status, server.seen[-1].sent) == (416, 0)
    assert part.read_bytes() == BODY


@pytest.mark.parametrize("known", [True, False])
def test_a_part_longer_than_the_whole_is_begun_again(server: Server, part: Path, known: bool) -> None:
    url = server.put("/set", Served(BODY))
    download(Source(url), part, Watcher(), QUICK)
    with part.open("ab") as file:
        file.write(b"too much")
    download(Source(url, len(BODY) if known else None, SHA), part, Watcher(), QUICK)
    assert part.read_bytes() == BODY


def test_a_range_nobody_asked_for_is_refused(server: Server, part: Path) -> None:
    url = server.put("/set", Served(BODY))
    stopped_midway(url, part)
    server.put("/set", Served(BODY, shift=10))
    assert "another part of the file" in refusal(Source(url), part)


def test_another_size_is_refused_before_a_byte_is_kept(server: Server, part: Path) -> None:
    url = server.put("/set", Served(BODY))
    assert "found '400,000 bytes', expected 5,917,549 bytes" in refusal(Source(url, 5_917_549, SHA), part)
    assert list(part.parent.iterdir()) == []


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "text/csv"])
def test_a_web_page_is_not_data(server: Server, part: Path, kind: str) -> None:
    page = b"\n<!DOCTYPE html><html><body>Please sign in</body></html>"
    assert "sent a web page" in refusal(Source(server.put("/set", Served(page, kind=kind))), part)
    assert list(part.parent.iterdir()) == []


def test_a_file_that_the_disk_cannot_hold_is_not_begun(server: Server, part: Path) -> None:
    message = refusal(Source(server.put("/set", Served(BODY, claims=10**17))), part)
    assert "not enough room" in message
    assert "expected 100,000,000,000,000,000 bytes" in message
    assert list(part.parent.iterdir()) == []


def test_an_unreachable_server(part: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/set"
        assert "cannot be reached" in refusal(Source(url), part)


def test_a_name_that_does_not_resolve(part: Path) -> None:
    assert "cannot find the server" in refusal(Source("http://data.invalid/set"), part, Retries(5, 1, 0.0))


def test_a_server_that_says_nothing(server: Server, part: Path) -> None:
    url = server.put("/set", Served(BODY, hang=0.5))
    assert "does not answer in time" in refusal(Source(url), part, Retries(0.1, 1, 0.0))


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/set", "set.zip", "http:///set", ""])
def test_other_addresses_are_refused(part: Path, url: str) -> None:
    assert "expected an http, https or file URL" in refusal(Source(url), part)


def test_a_file_on_this_machine_is_a_source_too(tmp_path: Path, part: Path) -> None:
    (tmp_path / "set").write_bytes(BODY)
    download(Source((tmp_path / "set").as_uri(), len(BODY), SHA), part, Watcher(), QUICK)
    assert part.read_bytes() == BODY
    assert "cannot read the source" in refusal(Source((tmp_path / "none").as_uri()), part.with_name("none.part"))


def test_two_at_once_do_not_write_into_one_file(server: Server, part: Path) -> None:
    part.parent.mkdir()
    part.touch()
    with alone_in(part):
        assert "another process is at work on this file" in refusal(Source(server.put("/set", Served(BODY))), part)


def test_below_a_file_there_is_no_folder(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    url = server.put("/set", Served(BODY))
    message = refusal(Source(url), tmp_path / "file" / "set.part")
    assert "cannot write" in message
    assert server.seen == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only(server: Server, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    url = server.put("/set", Served(BODY))
    assert "permission denied" in refusal(Source(url), tmp_path / "locked" / "set.part")


def test_an_untrusted_certificate_is_refused_unless_the_checksum_vouches(tmp_path: Path, part: Path) -> None:
    with serving(_self_signed(tmp_path)) as server:
        url = server.put("/set", Served(BODY))
        assert "certificate is not valid" in refusal(Source(url, len(BODY), SHA), part)
        download(Source(url, len(BODY), SHA, certificate=False), part, Watcher(), QUICK)
    assert part.read_bytes() == BODY


def _self_signed(folder: Path) -> ssl.SSLContext:
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    name = ("-subj", "/CN=127.0.0.1", "-days", "1", "-keyout", str(key), "-out", str(certificate))
    try:
        command = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        subprocess.run([*command, *name], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no openssl to make a certificate with")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


@pytest.mark.parametrize("text", ["", "sha256:", "sha256:abc", "sha1:" + "0" * 40, "md5:" + "g" * 32, "0" * 64])
def test_a_malformed_checksum_is_refused(text: str) -> None:
    with pytest.raises(UnveilError, match="not a checksum"):
        well_formed(text)


def test_a_checksum_may_be_written_in_capitals() -> None:
    assert well_formed("MD5:" + "AB" * 16) == "md5:" + "ab" * 16
