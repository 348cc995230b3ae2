import json
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path

import polars as pl
import pytest

from tests.data.fetch.archives import tar_of, zip_of
from tests.data.fetch.server import Served, Server
from unveil.data.fetch import CATALOGUE, Dataset, dataset, fetch, fetched, located, source_of
from unveil.data.fetch.download import Retries, well_formed
from unveil.data.fetch.recipes import RECIPES
from unveil.data.interactions import Interactions, Sequences
from unveil.data.readers.base import FORMATS
from unveil.errors import UnveilError
from unveil.runs.labelled import read_test

QUICK = Retries(timeout=5, tries=2, pause=0.0)
RATINGS = b"1::1193::5::978300760\n1::661::3::978302109\n"
ML_1M = zip_of({"ml-1m/": b"", "ml-1m/ratings.dat": RATINGS, "ml-1m/README": b"terms"})
KUAIRAND = tar_of({f"KuaiRand-Pure/{log}": log.encode() for log in dataset("kuairand-pure").logs})


def served(server: Server, name: str, packed: bytes) -> Dataset:
    """The catalogue's entry, with a file of our own on the loopback server."""
    url = server.put(f"/{dataset(name).file}", Served(packed))
    return replace(dataset(name), url=url, size=len(packed), checksum=f"sha256:{sha256(packed).hexdigest()}")


def refusal(entry: Dataset, *, terms_accepted: bool = True, force: bool = False) -> str:
    with pytest.raises(UnveilError) as caught:
        fetch(entry, terms_accepted=terms_accepted, force=force, retries=QUICK)
    return str(caught.value)


def test_a_fetched_set_is_known_by_its_name(server: Server, home: Path) -> None:
    path = fetch(served(server, "ml-1m", ML_1M), terms_accepted=True)
    assert path == located("ml-1m") == located("ml-1m/ratings.dat") == home / "ml-1m" / "ratings.dat"
    assert path.read_bytes() == RATINGS
    assert [entry.name for entry in home.iterdir()] == ["ml-1m"]
    assert sorted(entry.name for entry in (home / "ml-1m").iterdir()) == ["README", "fetched.json", "ratings.dat"]


def test_its_origin_is_noted(server: Server, home: Path) -> None:
    entry = served(server, "ml-1m", ML_1M)
    fetch(entry, terms_accepted=True)
    note = json.loads((home / "ml-1m" / "fetched.json").read_text())
    assert note["source"] == entry.url
    assert note["bytes"] == len(ML_1M)
    assert note["checksum"] == entry.checksum
    assert note["terms_accepted"] is True
    assert note["terms"] == entry.terms_url
    assert datetime.fromisoformat(note["fetched"]).tzinfo is not None


def test_a_plain_file_needs_no_unpacking(server: Server, home: Path) -> None:
    rows = b"A39HTATAQ9V7YF,0205616461,5.0,1369699200\n"
    path = fetch(served(server, "amazon-beauty", rows), terms_accepted=True)
    assert path == located("amazon-beauty") == home / "amazon-beauty" / "ratings_Beauty.csv"
    assert path.read_bytes() == rows
    assert sorted(entry.name for entry in home.iterdir()) == ["amazon-beauty"]


def test_every_log_of_a_set_has_a_name(server: Server, home: Path) -> None:
    fetch(served(server, "kuairand-pure", KUAIRAND), terms_accepted=True)
    random = located("kuairand-pure/log_random_4_22_to_5_08_pure.csv")
    assert random == home / "kuairand-pure" / "data" / "log_random_4_22_to_5_08_pure.csv"
    assert random.read_text() == "data/log_random_4_22_to_5_08_pure.csv"
    assert located("kuairand-pure") == home / "kuairand-pure" / "data" / "log_standard_4_08_to_4_21_pure.csv"
    with pytest.raises(UnveilError, match="no such log in the data set"):
        located("kuairand-pure/user_features_pure.csv")


@pytest.mark.parametrize("name", ["", "log.csv", "ml-1m.csv", "/ml-1m", "./ml-1m", "data/ml-1m", "ML-1M"])
def test_other_names_are_not_ours(name: str, home: Path) -> None:
    assert located(name) is None


@pytest.mark.parametrize("name", CATALOGUE)
def test_what_is_not_here_says_how_to_get_it(name: str, home: Path) -> None:
    with pytest.raises(UnveilError) as caught:
        located(name)
    assert caught.value.hint == f"Run `unveil data fetch {name}`."


def test_a_path_out_of_the_set_is_no_name(home: Path) -> None:
    with pytest.raises(UnveilError, match="no such log"):
        located("ml-1m/../../etc/passwd")


def test_the_second_time_nothing_is_done(server: Server, home: Path) -> None:
    entry = served(server, "ml-1m", ML_1M)
    fetch(entry, terms_accepted=True)
    server.seen.clear()
    assert fetch(entry, terms_accepted=False) == home / "ml-1m" / "ratings.dat"
    assert server.seen == []


def test_force_replaces_it(server: Server, home: Path) -> None:
    fetch(served(server, "ml-1m", ML_1M), terms_accepted=True)
    newer = zip_of({"ml-1m/ratings.dat": b"newer"})
    assert fetch(served(server, "ml-1m", newer), terms_accepted=True, force=True).read_bytes() == b"newer"
    assert sorted(entry.name for entry in (home / "ml-1m").iterdir()) == ["fetched.json", "ratings.dat"]
    assert [entry.name for entry in home.iterdir()] == ["ml-1m"]


def test_a_failed_force_leaves_the_old_one(server: Server, home: Path) -> None:
    fetch(served(server, "ml-1m", ML_1M), terms_accepted=True)
    assert "the log is not in the archive" in refusal(served(server, "ml-1m", zip_of({"else": b""})), force=True)
    assert (home / "ml-1m" / "ratings.dat").read_bytes() == RATINGS


def test_what_others_put_there_is_not_replaced(server: Server, home: Path) -> None:
    (home / "ml-1m").mkdir(parents=True)
    (home / "ml-1m" / "thesis.tex").write_text("precious")
    assert "something else is there already" in refusal(served(server, "ml-1m", ML_1M))
    assert (home / "ml-1m" / "thesis.tex").read_text() == "precious"
    assert server.seen == []


def test_a_log_put_there_by_hand_is_known(home: Path) -> None:
    (home / "ml-100k").mkdir(parents=True)
    (home / "ml-100k" / "u.data").write_text("1\t1\t5\t0\n")
    assert located("ml-100k") == fetched(dataset("ml-100k")) == home / "ml-100k" / "u.data"


def test_terms_come_first(server: Server, home: Path) -> None:
    assert "terms of use have not been accepted" in refusal(served(server, "ml-1m", ML_1M), terms_accepted=False)
    assert server.seen == []
    assert not home.exists()


def test_never_into_a_repository(server: Server, home: Path) -> None:
    (home.parent / ".git").mkdir()
    assert "not fetched into a source repository" in refusal(served(server, "ml-1m", ML_1M))
    assert server.seen == []
    assert not home.exists()


def test_room_is_made_sure_of_beforehand(server: Server, home: Path) -> None:
    assert "not enough room" in refusal(replace(served(server, "ml-1m", ML_1M), size=10**16))
    assert server.seen == []
    assert not home.exists()


@pytest.mark.parametrize(
    ("packed", "says"),
    [
        (zip_of({"ml-1m/movies.dat": b""}), "found 'movies.dat', expected ratings.dat"),
        (zip_of({"ml-1m/../../ratings.dat": b""}), "leads out of the folder"),
        (b"PK\x03\x04 and then nothing", "damaged"),
        (b"just text", "not an archive"),
    ],
)
def test_a_bad_archive_leaves_nothing(server: Server, home: Path, packed: bytes, says: str) -> None:
    assert says in refusal(served(server, "ml-1m", packed))
    assert list(home.iterdir()) == []


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnveilError, match=r"Did you mean 'ml-1m'\?"):
        dataset("ml1m")


def test_a_checksum_of_ones_own_replaces_what_the_catalogue_knows() -> None:
    own = source_of(dataset("ml-1m"), "http://mirror/ml-1m.tar.gz", "MD5:" + "0" * 32)
    assert (own.size, own.checksum) == (None, "md5:" + "0" * 32)
    mirror = source_of(dataset("ml-1m"), "http://mirror/ml-1m.zip")
    assert (mirror.size, mirror.checksum) == (dataset("ml-1m").size, dataset("ml-1m").checksum)


def test_only_a_checksum_makes_up_for_a_certificate() -> None:
    assert source_of(dataset("ml-1m"), certificate=False).certificate is False
    with pytest.raises(UnveilError, match="certificate is needed"):
        source_of(dataset("amazon-beauty"), certificate=False)


def test_the_catalogue_is_complete() -> None:
    names = ["ml-100k", "ml-1m", "ml-20m", "ml-25m", "ml-32m", "amazon-beauty", "kuairand-pure", "kuairec"]
    assert list(CATALOGUE) == names


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=list(CATALOGUE))
def test_every_entry_is_in_order(entry: Dataset) -> None:
    assert all(address.startswith("https://") for address in (entry.url, entry.page, entry.terms_url))
    assert entry.checksum is None or entry.checksum == well_formed(entry.checksum)
    assert entry.size is None or entry.size > 1_000_000
    assert entry.terms.endswith(".")
    assert entry.citation
    assert entry.packed == bool(entry.top)


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=list(CATALOGUE))
def test_every_format_can_be_read(entry: Dataset) -> None:
    assert entry.format in list(FORMATS)


def matrix(rows: list[tuple[int, int, str, float]]) -> bytes:
    """A matrix of KuaiRec, with the columns as published."""
    head = "user_id,video_id,play_duration,video_duration,time,date,timestamp,watch_ratio"
    lines = [f"{user},{video},1,1,2020-07-05 00:08:23.438,20200705,{at},{ratio}" for user, video, at, ratio in rows]
    return "\n".join([head, *lines, ""]).encode()


BIG = [
    (0, 10, "1593878905.5", 2.5),
    (0, 11, "1593878903.25", 2.0),
    (0, 12, "1593878904.0", 1.99),  # watched for too short
    (1, 20, "1593878906.0", 3.0),  # a video of the small matrix, but its user is none of it
    (2, 20, "1593878907.0", 3.0),  # a user and a video of the small matrix, whether seen there or not
    (2, 11, "1593878902.0", 9.0),
    (1, 11, "", 9.0),  # nobody knows when
]
SMALL = [(2, 21, "", 2.0), (3, 20, "1593878901.0", 5.0), (3, 21, "1593878901.5", 0.1)]


def kuairec(big: bytes, small: bytes) -> bytes:
    return zip_of({"KuaiRec 2.0/data/big_matrix.csv": big, "KuaiRec 2.0/data/small_matrix.csv": small})


def test_kuairec_becomes_a_log_and_a_test(server: Server, home: Path) -> None:
    log = fetch(served(server, "kuairec", kuairec(matrix(BIG), matrix(SMALL))), terms_accepted=True)
    assert log == located("kuairec") == home / "kuairec" / "log.csv"
    rows = pl.read_csv(log).rows()
    assert rows == [(2, 11, 1593878902.0), (0, 11, 1593878903.25), (0, 10, 1593878905.5), (1, 20, 1593878906.0)]
    likes, items = located("kuairec/observed_likes.csv"), located("kuairec/observed_items.txt")
    assert likes is not None
    assert items is not None
    assert likes.read_text() == "user_id,item_id\n2,21\n3,20\n"
    assert items.read_text() == "20\n21\n"


def test_what_kuairec_became_is_read_by_name(server: Server, home: Path) -> None:
    """Of the likes, only those of users and videos of the log are left."""
    fetch(
        served(server, "kuairec", kuairec(matrix([*BIG, (1, 21, "1593878909.0", 3.0)]), matrix(SMALL))),
        terms_accepted=True,
    )
    log = Interactions.read("kuairec")
    assert len(log) == 5
    test = read_test(
        "kuairec/observed_likes.csv", log.users, log.items, Sequences.of(log), candidates="kuairec/observed_items.txt"
    )
    assert test.skipped == {"unknown user": 1}
    assert log.users.raw(test.user_R).to_list() == ["2"]


@pytest.mark.parametrize(
    "packed",
    [
        zip_of({"KuaiRec 2.0/data/big_matrix.csv": matrix(BIG)}),
        kuairec(matrix(BIG), b"user_id,video_id\n1,2\n"),
        kuairec(matrix(BIG), matrix(SMALL).replace(b"5.0", b"much")),
    ],
    ids=["no small matrix", "no columns", "no number"],
)
def test_another_archive_is_not_kuairec(server: Server, home: Path, packed: bytes) -> None:
    assert "not the files of KuaiRec" in refusal(served(server, "kuairec", packed))
    assert list(home.iterdir()) == []


def test_every_recipe_is_of_a_data_set() -> None:
    assert set(RECIPES) <= set(CATALOGUE)
