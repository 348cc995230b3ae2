"""The study of tests without exposure bias, on a generated log and generated likes."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unveil.errors import UnveilError
from unveil.runs.workers import Processes
from unveil.studies.engine import Answer, run, write
from unveil.studies.unbiased import Unbiased, data_of, settings_of

ITEMS, USERS = 40, 60
TINY = ("model.width=8", "model.length=8", "training.epochs=2", "task.batch_size=16")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Users choose popular items of the first half of the catalogue; they like items of the second by their number."""
    folder, rng = tmp_path_factory.mktemp("unbiased"), np.random.default_rng(0)
    weight = 1.0 / np.arange(1, ITEMS + 1)
    log = [
        (f"u{user}", f"i{item}", place)
        for user in range(USERS)
        for place, item in enumerate(rng.choice(ITEMS, 8, replace=False, p=weight / weight.sum()))
    ]
    own = {(user, item) for user, item, _ in log}
    likes = [
        (f"u{user}", f"i{item}")
        for user in range(USERS)
        for item in range(ITEMS)
        if (f"u{user}", f"i{item}") not in own and rng.random() < item / ITEMS
    ]
    pl.DataFrame(log, schema=["user_id", "item_id", "timestamp"], orient="row").write_csv(folder / "log.csv")
    pl.DataFrame(likes, schema=["user_id", "item_id"], orient="row").write_csv(folder / "likes.csv")
    (folder / "items.txt").write_text("\n".join(f"i{item}" for item in range(ITEMS)))
    return folder / "log.csv", folder / "likes.csv", folder / "items.txt"


def study(files: tuple[Path, Path, Path], **changes: object) -> Unbiased:
    log, test, candidates = map(str, files)
    fields = {"replicates": 2, "sizes": (10, 1000), "changes": TINY, "estimators": ("most-popular", "ease", "naive")}
    return Unbiased(log=log, test=test, candidates=candidates, **{**fields, **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def answer(files: tuple[Path, Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Answer:
    return run(study(files), tmp_path_factory.mktemp("study"), Processes(1))


def test_arms_controls_and_slices_are_measured_on_half_b(answer: Answer) -> None:
    arms = set(answer.results.arms)
    assert {"most-popular", "ease", "naive", "naive (β = 4)", "naive (slice of 10)"} <= arms
    assert "naive (slice of 1000)" not in arms  # more than there are
    users = set(answer.frame["user"])
    assert 10 <= len(users) < USERS
    assert answer.results.units == "users"
    assert len(answer.results.sample("naive", answer.study.headline)) == len(users)


def test_values_are_means_of_the_replicates(answer: Answer) -> None:
    part = answer.frame.filter(pl.col("estimator") == "naive", pl.col("metric") == "NDCG")
    by_user = part.group_by("user").agg(pl.col("value").mean()).sort("user")["value"].to_numpy()
    np.testing.assert_allclose(np.sort(answer.results.sample("naive", answer.study.headline)), np.sort(by_user))
    assert part["replicate"].n_unique() == 2


def test_a_slice_helps_where_likes_go_against_popularity(answer: Answer) -> None:
    results, headline = answer.results, answer.study.headline
    assert results.mean("naive (slice of 10)", headline) > results.mean("naive", headline) + 0.1
    assert results.mean("naive (β = -1)", headline) > results.mean("naive", headline)
    assert results.mean("naive (β = 1)", headline) < results.mean("naive", headline)


def test_the_page_groups_arms_by_their_tests(answer: Answer, tmp_path: Path) -> None:
    report = write(answer, tmp_path, ["unveil", "reproduce", "unbiased"])
    text = (tmp_path / "README.md").read_text()
    assert "Significantly above naive" in text
    assert (tmp_path / "index.html").exists()
    assert set(report.findings["against_naive"]) == set(answer.results.trained) - {"naive"}


def test_naive_is_needed(files: tuple[Path, Path, Path]) -> None:
    with pytest.raises(UnveilError, match="compared with naive"):
        study(files, estimators=("ease",))


@pytest.fixture
def coat(tmp_path: Path) -> Path:
    """Matrices of ratings as Coat has them: each user rates 8 items of choice and 6 at random."""
    rng, train, test = np.random.default_rng(1), np.zeros((40, 30), int), np.zeros((40, 30), int)
    for user in range(40):
        places = rng.permutation(30)
        train[user, places[:8]] = rng.integers(1, 6, 8)
        train[user, places[:3]] = 5
        test[user, places[8:14]] = [1, 5, *rng.integers(1, 6, 4)]
    (tmp_path / "coat").mkdir()
    for name, matrix in (("train", train), ("test", test)):
        np.savetxt(tmp_path / "coat" / f"{name}.ascii", matrix, fmt="%d")
    return tmp_path / "coat"


def test_coat_is_read_as_it_lies(coat: Path, tmp_path: Path) -> None:
    known = settings_of("coat", coat)
    assert known["metric"] == "AUC"
    coat_study = Unbiased(**known | {"estimators": ("ease", "naive"), "replicates": 1, "changes": TINY, "sizes": (10,)})
    log, _, found = data_of(coat_study)
    train, test = (np.loadtxt(coat / f"{name}.ascii", dtype=int) for name in ("train", "test"))
    assert len(log) == (train >= 4).sum()
    rows = zip(log.users.raw(found.user_R), log.items.raw(found.item_R), found.label_R, strict=True)
    for user, item, label in rows:
        assert test[int(user), int(item)] > 0
        assert label == (test[int(user), int(item)] >= 4)
    answer = run(coat_study, tmp_path / "run", Processes(1))
    assert len(answer.results.sample("ease", answer.study.headline)) > 10
    write(answer, tmp_path / "page", ["unveil"])
    assert "The log has no order" in (tmp_path / "page" / "README.md").read_text()


def test_what_labels_are_depends_on_the_rating(coat: Path) -> None:
    known = settings_of("coat", coat)
    four, three = (Unbiased(**known | {"min_rating": rating, "sizes": (10,)}) for rating in (4.0, 3.0))
    assert four.identity(four.open_data()) != three.identity(three.open_data())


def test_folders_of_before_are_continued(files: tuple[Path, Path, Path]) -> None:
    """A field that did not exist when they were begun is in no identity while it has its default."""
    assert not {"min_rating", "ordered"} & study(files).identity(study(files).open_data()).keys()


@pytest.mark.parametrize("name", ["kuairec", "kuairand", "coat"])
def test_data_that_are_not_there_are_one_message(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnveilError, match=f"not the files of {name}"):
        settings_of(name, tmp_path)
    monkeypatch.setenv("UNVEIL_DATA", str(tmp_path / "home"))
    with pytest.raises(UnveilError, match="home"):
        settings_of(name, None)


def test_either_layout_of_a_data_set_is_known(tmp_path: Path) -> None:
    for name in ("log.csv", "observed_likes.csv", "observed_items.txt"):
        (tmp_path / name).touch()
    assert settings_of("kuairec", tmp_path) == {
        "log": str(tmp_path / "log.csv"),
        "test": str(tmp_path / "observed_likes.csv"),
        "candidates": str(tmp_path / "observed_items.txt"),
    }


def test_an_arm_learns_from_the_impressions_of_the_log(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    clicks = pl.read_csv(files[0]).with_columns(pl.col("timestamp") * 2 + 1, clicked=1)
    skips = clicks.with_columns(pl.col("item_id").shuffle(seed=0), pl.col("timestamp") - 1, clicked=0)
    pl.concat([clicks, skips]).write_csv(tmp_path / "feed.csv")
    arms = ("naive", "impressions", "impressions+loss=pointwise+softmax=0.0")
    fields = {"estimators": arms, "replicates": 1, "sizes": (), "metric": "AUC"}
    found = run(study((tmp_path / "feed.csv", *files[1:]), **fields), tmp_path / "study", Processes(1))
    values = [found.results.mean(arm, found.study.headline) for arm in arms]
    assert len(set(values)) == 3
    with pytest.raises(UnveilError, match="'impressions' needs a log with impressions without a click"):
        run(study(files, **fields), tmp_path / "none", Processes(1))


def test_users_need_liked_and_other_items(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """Found before any training: one candidate leaves nobody both; the likes of one user are no two halves."""
    (tmp_path / "one.txt").write_text(f"i{ITEMS - 1}")
    with pytest.raises(UnveilError, match="no user of the test has both a positive and a negative"):
        study((*files[:2], tmp_path / "one.txt")).open_data()
    likes = pl.read_csv(files[1])
    likes.filter(pl.col("user_id").is_in(["u1", "u2"])).write_csv(tmp_path / "likes.csv")
    with pytest.raises(UnveilError, match="too few users for two halves: found 2, expected two in each half"):
        study((files[0], tmp_path / "likes.csv", files[2])).open_data()
