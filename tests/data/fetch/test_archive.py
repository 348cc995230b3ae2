import tarfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.data.fetch.archives import tar_link, tar_of, tar_of_members, tar_with_endless_header, zip_link, zip_of
from unveil.data.fetch import unpack
from unveil.errors import UnveilError

BOTH = pytest.mark.parametrize("pack", [zip_of, tar_of])
Pack = Callable[[Mapping[str, bytes]], bytes]
names = st.lists(st.sampled_from(["a", "b", "ß", "data", "x.csv", "ml-1m"]), min_size=1, max_size=3).map("/".join)


def unpacked(packed: bytes, folder: Path, top: str = "") -> dict[str, bytes]:
    """What an archive holds, once unpacked into folder/inside."""
    inside = folder / "inside"
    inside.mkdir()
    (folder / "archive").write_bytes(packed)
    unpack(folder / "archive", inside, top=top)
    return {str(path.relative_to(inside)): path.read_bytes() for path in inside.rglob("*") if path.is_file()}


def refusal(packed: bytes, folder: Path) -> str:
    with pytest.raises(UnveilError) as caught:
        unpacked(packed, folder)
    assert sorted(path.name for path in folder.iterdir()) == ["archive", "inside"]
    return str(caught.value)


@BOTH
def test_the_wrapping_folder_is_left_out(pack: Pack, tmp_path: Path) -> None:
    files = {"ml-1m/ratings.dat": b"1::1::5::0\n", "ml-1m/more/README": b"read me", "beside": b""}
    assert unpacked(pack(files), tmp_path, top="ml-1m") == {
        "ratings.dat": b"1::1::5::0\n",
        "more/README": b"read me",
        "beside": b"",
    }


@BOTH
@settings(max_examples=40, deadline=None)
@given(files=st.dictionaries(names, st.binary(max_size=200), max_size=5))
def test_what_was_packed_comes_out_or_is_refused(pack: Pack, files: dict[str, bytes]) -> None:
    clash = any(other.startswith(name + "/") for name in files for other in files)
    with TemporaryDirectory() as folder:
        if not files and pack is zip_of:
            return
        if clash:
            assert "clash" in refusal(pack(files), Path(folder))
        else:
            assert unpacked(pack(files), Path(folder)) == files


@BOTH
@pytest.mark.parametrize(
    "name", ["../escape", "/unveil-escape", "in/../../escape", "C:\\escape", "..\\escape", "C:/escape"]
)
def test_no_member_leads_out_of_the_folder(pack: Pack, name: str, tmp_path: Path) -> None:
    message = refusal(pack({"good": b"good", name: b"bad"}), tmp_path)
    assert "leads out of the folder" in message
    assert "escape" in message
    assert not Path("/unveil-escape").exists()


@pytest.mark.parametrize(
    "packed",
    [
        tar_link("etc", "/etc"),
        tar_link("up", ".."),
        tar_link("hard", "../archive", tarfile.LNKTYPE),
        tar_link("pipe", "", tarfile.FIFOTYPE),
        tar_link("device", "", tarfile.CHRTYPE),
        zip_link("etc", "/etc"),
    ],
)
def test_links_and_devices_are_refused(packed: bytes, tmp_path: Path) -> None:
    assert "a link or a device" in refusal(packed, tmp_path)
    assert list((tmp_path / "inside").iterdir()) == []


@pytest.mark.parametrize(
    "packed",
    [
        zip_of({"bomb": bytes(8 << 20)}),
        tar_of({"bomb": bytes(8 << 20)}),
        zip_of({f"bomb{n}": bytes(600 << 10) for n in range(20)}),
        tar_with_endless_header(),
    ],
)
def test_bombs_do_not_unfold(packed: bytes, tmp_path: Path) -> None:
    assert "absurd size" in refusal(packed, tmp_path)
    written = sum(path.stat().st_size for path in (tmp_path / "inside").iterdir())
    assert written <= max(20 * len(packed), 1 << 20)


@BOTH
def test_a_crowd_of_files_is_refused(pack: Pack, tmp_path: Path) -> None:
    assert "1,000 files" in refusal(pack({str(n): b"" for n in range(1_001)}), tmp_path)


def test_the_same_file_twice_is_refused(tmp_path: Path) -> None:
    twice = tar_of_members((tarfile.TarInfo("a"), b"1"), (tarfile.TarInfo("a"), b"2"))
    assert "names that clash" in refusal(twice, tmp_path)


def test_the_same_folder_twice_is_no_harm(tmp_path: Path) -> None:
    folder, again = tarfile.TarInfo("data"), tarfile.TarInfo("data")
    folder.type = again.type = tarfile.DIRTYPE
    assert unpacked(tar_of_members((folder, b""), (again, b""), (tarfile.TarInfo("data/a"), b"1")), tmp_path) == {
        "data/a": b"1"
    }


@BOTH
def test_a_name_too_long_for_the_disk_is_refused(pack: Pack, tmp_path: Path) -> None:
    assert "this disk cannot hold" in refusal(pack({"x" * 300: b""}), tmp_path)


@pytest.mark.parametrize("packed", [b"", b"user,item\n1,2\n", b"\x00" * 600])
def test_what_is_not_an_archive_is_refused(packed: bytes, tmp_path: Path) -> None:
    assert "not an archive" in refusal(packed, tmp_path)


@BOTH
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_truncated_archive_is_damaged(pack: Pack, share: float, tmp_path: Path) -> None:
    whole = pack({"ratings.csv": bytes(n * n % 251 for n in range(20_000))})
    message = refusal(whole[: int(share * len(whole))], tmp_path)
    assert "damaged" in message
    assert "--url" in message


@BOTH
@settings(max_examples=80, deadline=None)
@given(place=st.integers(0, 10_000), byte=st.integers(0, 255), run=st.integers(1, 8))
@example(place=9991, byte=0, run=8)  # a member whose name begins with a zero byte
def test_a_mutated_archive_is_unpacked_inside_or_refused(pack: Pack, place: int, byte: int, run: int) -> None:
    packed = bytearray(pack({"ml-1m/ratings.dat": b"1::1::5::978300760\n" * 20, "ml-1m/README": b"text"}))
    place %= len(packed)
    packed[place : place + run] = bytes([byte]) * min(run, len(packed) - place)
    with TemporaryDirectory() as folder:
        with suppress(UnveilError):
            unpacked(bytes(packed), Path(folder))
        assert sorted(path.name for path in Path(folder).iterdir()) == ["archive", "inside"]
