import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file

from tests.cli.conftest import Command
from tests.run_folders import Finished, content
from unveil.data.interactions import Interactions
from unveil.errors import UnveilWarning
from unveil.runs.labelled import impressions_of, similarity
from unveil.serving.recommender import Recommender


def likes(finished: Finished, path: Path, users: int = 60) -> Path:
    """All like the same items, each user those that are not in the own history."""
    log = pl.read_csv(finished.log, infer_schema=False)
    own = {user: set(part["item_id"]) for (user,), part in log.group_by("user_id")}
    liked = log["item_id"].unique().sort().to_list()[:: max(1, log["item_id"].n_unique() // 8)]
    rows = [(user, item) for user in sorted(own)[:users] for item in liked if item not in own[user]]
    pl.DataFrame(rows, schema=["user_id", "item_id"], orient="row").write_csv(path)
    return path


@pytest.fixture
def copied(finished: Finished, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished.folder, tmp_path / "run"))


def test_what_is_surely_better_is_written_and_applied(
    unveil: Command, finished: Finished, copied: Path, tmp_path: Path
) -> None:
    slice_file, before = likes(finished, tmp_path / "slice.csv"), content(copied)
    done = unveil("calibrate", copied, "--slice", slice_file, "--metric", "AUC", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["recommended"]
    assert found["gain"]["low"] > 0
    assert found == json.loads((copied / "calibration.json").read_text())
    assert [point["users"] for point in found["curve"]] == [10]
    after = content(copied)
    assert {name: after[name] for name in before} == before  # all else is as it was

    shift_V = load_file(copied / "calibration.safetensors")["shift_V"]
    plain, calibrated = Recommender.load(copied, calibrated=False), Recommender.load(copied)
    tokens = torch.zeros((1, 3), dtype=torch.int64)
    difference = (calibrated.model.scores(tokens) - plain.model.scores(tokens)).numpy()[0]
    np.testing.assert_allclose(difference, shift_V, atol=1e-3 * np.abs(shift_V).max())

    def evaluated(folder: Path, test: Path) -> str:
        return unveil("evaluate", folder, "--test", test, "--json").out

    others = tmp_path / "others.csv"
    others.write_text("".join(slice_file.read_text().splitlines(keepends=True)[:-1]))
    assert evaluated(copied, others)  # a warning would be an error
    plainly = evaluated(finished.folder, slice_file)
    with pytest.warns(UnveilWarning, match="was calibrated on these rows"):
        judged = {finished.folder: plainly, copied: evaluated(copied, slice_file)}
    auc = {folder: json.loads(each) for folder, each in judged.items()}
    means = {folder: next(row["mean"] for row in rows if row["metric"] == "AUC") for folder, rows in auc.items()}
    assert means[copied] > means[finished.folder] + 0.1
    log_again = json.loads(unveil("evaluate", copied, "--json", "--no-page").out)
    assert log_again == finished.run.evaluation.summary.to_dicts()  # as it was trained
    again = unveil("calibrate", copied, "--slice", slice_file, "--metric", "AUC", "--json")
    assert json.loads(again.out) == found  # from the model as it was trained, not from the calibrated one


def test_onnx_and_recommendations_are_calibrated(
    unveil: Command, finished: Finished, copied: Path, tmp_path: Path
) -> None:
    slice_file = likes(finished, tmp_path / "slice.csv")
    assert unveil("calibrate", copied, "--slice", slice_file, "--metric", "AUC", "--draws", "0").code == 0
    liked = set(pl.read_csv(slice_file, infer_schema=False)["item_id"])

    def share(folder: Path) -> float:
        out = tmp_path / "lists.csv"
        out.unlink(missing_ok=True)
        assert unveil("recommend", folder, "-k", "3", "-o", out).code == 0
        return float(pl.read_csv(out, infer_schema=False)["item_id"].is_in(liked).mean())  # type: ignore[arg-type]

    assert share(copied) > share(finished.folder)
    exported = unveil("export", copied, "-o", tmp_path / "export", "--onnx")  # compared with torch
    assert exported.code == 0, exported.err


def test_nothing_is_written_where_nothing_is_better(
    unveil: Command, finished: Finished, copied: Path, tmp_path: Path
) -> None:
    log, rng = pl.read_csv(finished.log, infer_schema=False), np.random.default_rng(0)
    own = {user: set(part["item_id"]) for (user,), part in log.group_by("user_id")}
    items = log["item_id"].unique().sort().to_list()
    rows = [(user, item) for user in sorted(own) for item in rng.permutation(items)[:3] if item not in own[user]]
    pl.DataFrame(rows, schema=["user_id", "item_id"], orient="row").write_csv(tmp_path / "noise.csv")
    done = unveil("calibrate", copied, "--slice", tmp_path / "noise.csv", "--draws", "0")
    assert done.code == 0, done.err
    assert "nothing is significantly better" in done.out
    assert not list(copied.glob("calibration*"))


def test_a_dry_run_writes_nothing(unveil: Command, finished: Finished, copied: Path, tmp_path: Path) -> None:
    slice_file = likes(finished, tmp_path / "slice.csv")
    done = unveil("calibrate", copied, "--slice", slice_file, "--metric", "AUC", "--draws", "0", "--dry-run")
    assert "significantly better" in done.out
    assert not list(copied.glob("calibration*"))


def test_a_calibration_of_another_model_is_refused(
    unveil: Command, finished: Finished, copied: Path, tmp_path: Path
) -> None:
    slice_file = likes(finished, tmp_path / "slice.csv")
    assert unveil("calibrate", copied, "--slice", slice_file, "--metric", "AUC", "--draws", "0").code == 0
    manifest = json.loads((copied / "manifest.json").read_text())
    (copied / "manifest.json").write_text(json.dumps(manifest))  # the same, written otherwise: another version
    assert "made for another model" in unveil("recommend", copied, "-k", "3").failure()


@pytest.mark.parametrize(
    ("users", "more", "problem"),
    [
        (3, (), "too few users to learn from"),
        (60, ("--metric", "hits"), "no such metric"),
        (60, ("--metric", "NDCG@0"), "no such metric"),
    ],
)
def test_a_slice_that_teaches_nothing_is_one_message(
    unveil: Command, finished: Finished, copied: Path, tmp_path: Path, users: int, more: tuple[str, ...], problem: str
) -> None:
    slice_file = likes(finished, tmp_path / "slice.csv", users)
    assert problem in unveil("calibrate", copied, "--slice", slice_file, *more).failure()


@pytest.mark.parametrize("damage", ["cut", "flipped", "folder", "dangling"])
def test_a_damaged_calibration_is_named(
    unveil: Command, finished: Finished, copied: Path, tmp_path: Path, damage: str
) -> None:
    slice_file, path = likes(finished, tmp_path / "slice.csv"), copied / "calibration.safetensors"
    assert unveil("calibrate", copied, "--slice", slice_file, "--metric", "AUC", "--draws", "0").code == 0
    content = path.read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage == "dangling":
        path.symlink_to(tmp_path / "nowhere")
    else:
        path.write_bytes(content[:-5] if damage == "cut" else content[:-1] + bytes([content[-1] ^ 1]))
    message = unveil("recommend", copied, "-k", "3").failure()
    assert "the calibration is damaged" in message
    assert str(path) in message


def test_the_curve_on_a_page(unveil: Command, finished: Finished, copied: Path, tmp_path: Path) -> None:
    slice_file, page = likes(finished, tmp_path / "slice.csv"), tmp_path / "page.html"
    what = ("calibrate", copied, "--slice", slice_file, "--metric", "AUC", "--dry-run", "-o", page)
    done = unveil(*what, "--json")
    assert done.code == 0, done.err
    (point,) = json.loads(done.out)["curve"]
    assert f"| {point['users']}" not in page.read_text()
    assert f"{point['after']:.4f}" in page.read_text()
    assert list(tmp_path.rglob("curve.svg"))
    assert "is there already" in unveil(*what).failure()
    assert unveil(*what, "--overwrite", "--draws", "0").code == 0  # no curve, and a page all the same
    assert "HTML page" in unveil(*what[:-1], tmp_path / "page.csv").failure()


def test_what_was_shown_says_what_is_similar(unveil: Command, finished: Finished, copied: Path, tmp_path: Path) -> None:
    """Impressions without a click count, random rows and unknown items do not; a file that is missing is named."""
    recommender = Recommender.load(copied)
    frame = pl.read_csv(finished.log, infer_schema=False).with_columns(clicked=pl.lit("1"), is_rand=pl.lit("0"))

    def found(*more: pl.DataFrame) -> NDArray[np.float64]:
        pl.concat([frame, *more]).write_csv(tmp_path / "shown.csv")
        return similarity(Interactions.read(tmp_path / "shown.csv"), recommender.items, recommender.sequences)

    chosen_VD = similarity(None, recommender.items, recommender.sequences)
    np.testing.assert_allclose(np.abs(found()), np.abs(chosen_VD), atol=1e-6)
    others = frame.with_columns(pl.col("item_id").shuffle(seed=1))
    at_random = others.with_columns(is_rand=pl.lit("1"))
    unknown = others.head(5).with_columns(user_id=pl.lit("x"), item_id=pl.lit("y"))
    np.testing.assert_allclose(np.abs(found(at_random, unknown)), np.abs(chosen_VD), atol=1e-6)
    assert np.abs(found(others.with_columns(clicked=pl.lit("0"))) - chosen_VD).max() > 0.1
    what = ("calibrate", copied, "--slice", likes(finished, tmp_path / "slice.csv"), "--metric", "AUC", "--draws", "0")
    assert unveil(*what, "--log", tmp_path / "shown.csv").code == 0
    assert "nowhere.csv" in unveil(*what, "--log", tmp_path / "nowhere.csv").failure()
    others.with_columns(item_id=pl.lit("x") + pl.col("item_id")).write_csv(tmp_path / "others.csv")
    assert "no item of the run is in the log" in unveil(*what, "--log", tmp_path / "others.csv").failure()
    at_random.write_csv(tmp_path / "random.csv")
    assert unveil(*what, "--log", tmp_path / "random.csv", "--dry-run").code == 0  # as without impressions


def test_impressions_are_read_from_the_log_of_the_run(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    frame = pl.read_csv(finished.log, infer_schema=False).with_columns(clicked=pl.lit("1"))
    skipped = frame.with_columns(pl.col("item_id").shuffle(seed=1), clicked=pl.lit("0"))
    log, run = tmp_path / "log.csv", tmp_path / "run"
    pl.concat([frame, skipped]).write_csv(log)
    few = ("--set", "training.epochs=1", "--set", "model.width=8", "--set", "model.length=8")
    assert unveil("train", log, "-o", run, *few).code == 0
    found = impressions_of(run)
    assert found is not None
    assert (found.item == Interactions.read(log).item).all()
    frame.write_csv(log)  # another log now, without impressions
    assert impressions_of(run) is None
    log.unlink()
    assert impressions_of(run) is None
    pl.concat([frame, skipped]).write_csv(log)
    (run / "about.json").write_text("{}")  # damaged, which is no reason to refuse the run
    assert impressions_of(run) is None
