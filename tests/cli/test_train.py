import json
import re
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.cli.conftest import Command
from tests.run_folders import TINY, Finished, content, options, small_frame, write_log
from unveil.runs.run_folder import read_config
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World
from unveil.studies import paper

QUICK = [*options({**TINY, "training.epochs": 1}), "--no-page"]


def test_a_run_says_what_it_does_what_came_out_and_where_it_is(
    unveil: Command, finished: Finished, tmp_path: Path
) -> None:
    done = unveil("train", finished.log, "-o", tmp_path / "run", "-e", "itps", "--preset", "quick", *options())
    assert done.code == 0, done.err
    for line in finished.told:
        assert line in done.out.splitlines()
    assert "3 epochs, best at" in done.out
    assert f"the run is in {tmp_path / 'run'}" in done.out
    assert (tmp_path / "run" / "metrics.json").read_bytes() == (finished.folder / "metrics.json").read_bytes()
    assert f"open {tmp_path / 'run' / 'index.html'}" in done.out
    assert "Results of the run run" in (tmp_path / "run" / "index.html").read_text()
    assert (tmp_path / "run" / "figures" / "validation.png").is_file()


def test_what_others_published_of_the_same_data_is_one_line_and_else_none(
    unveil: Command, finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\npublished " not in unveil("train", finished.log, "-o", tmp_path / "a", *QUICK).out
    monkeypatch.setattr(paper, "recognised", lambda *size: "beauty" if size[:2] == (40, 30) else None)
    told = unveil("train", finished.log, "-o", tmp_path / "b", "--model", "bert4rec", *QUICK).out.splitlines()
    (line,) = [line for line in told if line.startswith("published")]
    assert "bert4rec on beauty, full ranking, leave-one-out, Recall@10 / NDCG@10: 0.0434 / 0.0242 (RecTools)" in line


def test_the_table_fits_a_terminal_and_is_in_order(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    done = unveil("train", finished.log, "-o", tmp_path / "r", *QUICK)
    table = done.out[done.out.index("on the test events") : done.out.index("the run is in")].splitlines()
    assert max(map(len, table)) <= 100
    assert max(len(line) for line in table if "±0" in line) <= 80
    assert [line.split()[0] for line in table[1:7]] == ["NDCG@10", "Recall@10", "MRR@10", "NDCG@5", "Recall@5", "MRR@5"]
    assert table[0].split() == ["on", "the", "test", "events", "full", "uniform-19", "popular-19"]


def test_sasrec_unless_told_otherwise_with_baselines_beside_its_figures(
    unveil: Command, finished: Finished, tmp_path: Path
) -> None:
    done = unveil("train", finished.log, "-o", tmp_path / "r", *QUICK)
    assert "model      sasrec" in done.out
    assert "reads      220 events to train on, of which the network reads 220: all of them" in done.out
    assert re.search(r"auto       model\.\w+ = \S+: \w+", done.out)
    assert "refit      300 events, those of validation and test included" in done.out
    quick = unveil("train", finished.log, "-o", tmp_path / "quick", "--preset", "quick", *QUICK)
    assert "220 events to train on, of which the network reads 215: the last 8 of each user" in quick.out
    assert not {"auto", "refit"} & {line.partition(" ")[0] for line in quick.out.splitlines()}
    metrics = json.loads((tmp_path / "r" / "metrics.json").read_text())
    assert list(metrics["baselines"]) in (
        ["ease", "item-knn", "markov", "popularity"],
        ["sasrec", "ease", "item-knn", "markov", "popularity"],
    )
    place = ("full", "NDCG", 10)
    for name, each in metrics["baselines"].items():
        both = metrics["summary"], each["summary"]
        means = [{(row["protocol"], row["metric"], row["k"]): row["mean"] for row in of} for of in both]
        assert means[0].keys() == means[1].keys()
        assert each["difference"] == pytest.approx(means[0][place] - means[1][place])
        figures = re.escape(f"{each['difference']:+.4f} [{each['low']:+.4f}, ")
        assert re.search(rf"^{name} +{means[1][place]:.4f} ±.*{figures}", done.out, re.M)
    for more in (["--preset", "paper"], ["--model", "bert4rec"], ["--set", "model.name=bert4rec"]):
        named = unveil("train", finished.log, "-o", tmp_path / more[1], *more, *QUICK)
        assert "model      bert4rec" in named.out


def test_a_baseline_is_trained_and_used_like_any_model(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    for name in ("ease", "markov"):
        run = tmp_path / name
        done = unveil("train", finished.log, "-o", run, "--model", name)
        assert done.code == 0, done.err
        assert f"model      {name}, a baseline: fitted by counting 220 events" in done.out
        assert "epoch" not in done.out
        again = unveil("train", finished.log, "-o", run, "--model", name, "--resume")
        assert "nothing is left to do" in again.out
        before = (run / "metrics.json").read_bytes()
        assert unveil("evaluate", run).code == 0
        assert (run / "metrics.json").read_bytes() == before
        assert name not in json.loads(before)["baselines"]
        listed = unveil("recommend", run, "-k", 2, "--reasons", 1, "--as", "csv").out.splitlines()
        assert len(listed) == 1 + 2 * 40
        page = (run / "index.html").read_text()
        assert "fitted by counting" in page
        assert f"baseline `{name}`" in (run / "README.md").read_text()
    assert "only networks have vectors" in unveil("export", run, "--embeddings", "-o", tmp_path / "vectors").failure()
    assert "no ONNX form: found 'markov'" in unveil("export", run, "--onnx", "-o", tmp_path / "onnx").failure()
    assert unveil("export", run, "--weights", "-o", tmp_path / "weights").code == 0
    assert unveil("compare", tmp_path / "ease", run).code == 0
    assert unveil("report", tmp_path / "ease", run, finished.folder, "-o", tmp_path / "report", "--no-dial").code == 0
    refused = unveil("train", finished.log, "-o", tmp_path / "no", "--model", "ease", "-e", "ips").failure()
    assert "no estimator trains it" in refused
    assert not (tmp_path / "no").exists()


def test_baselines_can_be_left_out(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    done = unveil("train", finished.log, "-o", tmp_path / "run", "--no-baselines", "--no-blend", *QUICK)
    assert "baseline " not in done.out
    assert "baselines" not in json.loads((tmp_path / "run" / "metrics.json").read_text())


def test_a_resumed_run_keeps_its_network(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    begun = ("train", finished.log, "-o", tmp_path / "run", "-e", "itps", *options())
    assert unveil(*begun, "--model", "bert4rec").code == 0
    (tmp_path / "run" / "manifest.json").unlink()
    done = unveil(*begun, "--resume")
    assert done.code == 0, done.err
    assert "model      bert4rec" in done.out


def test_a_resumed_config_that_names_no_network_keeps_the_one_of_the_run(
    unveil: Command, finished: Finished, tmp_path: Path
) -> None:
    """Once such a config meant BERT4Rec; one that names a network is taken at its word."""
    (tmp_path / "plain.toml").write_text("[training]\nseed = 3\n")
    for text in ('extends = "quick"\n', 'extends = "plain.toml"\n', ""):
        config, place = tmp_path / "run.toml", tmp_path / f"run{len(text)}"
        config.write_text(text + "[evaluation]\nseed = 1\n")
        begun = ("train", finished.log, "-o", place, "--config", config, *options(), "--no-page")
        assert unveil(*begun, "--model", "bert4rec").code == 0
        (place / "manifest.json").unlink()
        done = unveil(*begun, "--resume")
        assert done.code == 0, done.err
        assert "model      bert4rec" in done.out
    config.write_text(config.read_text() + '[model]\nname = "sasrec"\n')
    assert "began with model.name = bert4rec, and now it is sasrec" in unveil(*begun, "--resume").failure()


def test_options_win_over_the_config_and_set_wins_over_all(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text(
        'extends = "quick"\n[training]\nseed = 3\n[model]\nwidth = 8\n'
        "[data]\nmin_item = 9\nmin_user = 5\niterate = true\n"
    )
    arguments = ["--config", config, "--min-item", 0, "--no-iterate", "--seed", 4, *QUICK, "--set", "training.seed=5"]
    assert unveil("train", finished.log, "-o", tmp_path / "run", *arguments).code == 0
    experiment = read_config(tmp_path / "run")
    assert (experiment.data.min_item, experiment.data.min_user, experiment.data.iterate) == (0, 5, False)
    assert (experiment.training.seed, experiment.model.width, experiment.training.lr) == (5, 8, 3e-3)


def test_columns_by_name_and_filters(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    renamed = pl.read_csv(finished.log, infer_schema=False).rename({"user_id": "who", "item_id": "what"})
    renamed.write_csv(tmp_path / "log.csv")
    arguments = ["--user-col", "who", "--item-col", "what", "--min-user", 6, "--repeats", "first", *QUICK]
    done = unveil("train", tmp_path / "log.csv", "-o", tmp_path / "run", *arguments)
    assert done.code == 0, done.err
    assert "30 users" in done.out
    data = read_config(tmp_path / "run").data
    assert (data.columns, data.repeats) == ({"user": "who", "item": "what"}, "first")


def test_what_was_shown_is_told_apart_from_what_was_taken(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    taken = pl.read_csv(finished.log, infer_schema=False).with_columns(clicked=pl.lit("1"))
    left = pl.DataFrame({"user_id": ["looker"], "item_id": ["poster"], "timestamp": ["1600000000"], "clicked": ["0"]})
    pl.concat([taken, left]).write_csv(tmp_path / "log.csv")
    done = unveil("train", tmp_path / "log.csv", "-o", tmp_path / "run", *QUICK)
    first, second, *_ = done.out.splitlines()
    assert first == f"clicked    {len(taken)} clicks, 40 users, 30 items"
    assert second.startswith(f"shown      {len(taken) + 1} impressions, 41 users, 31 items; ")


def test_one_is_not_called_many(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    lines = unveil("train", finished.log, "-o", tmp_path / "run", *QUICK).out.splitlines()
    assert [line for line in lines if line.startswith("1 epoch, best at 1 ")]
    assert "1 epoch, best at 1 " in (tmp_path / "run" / "README.md").read_text()


BAD = [
    (["--set", "model.widht=3"], r"unknown setting: found 'model.widht'", "Did you mean 'model.width'?"),
    (["--set", "modl.width=3"], r"unknown setting: found 'modl.width'", "Did you mean 'model.width'?"),
    (["--set", "model.width"], "not an assignment", "expected name=value"),
    (["--set", "model.width=wide"], "model.width: not a valid value", "found 'wide'"),
    (["--set", "model=3"], "model: not a valid value", "found 3"),
    (["--preset", "qiuck"], "unknown preset", "Did you mean 'quick'?"),
    (["-e", "isp"], "unknown estimator", "Did you mean 'ips'?"),
    (["-e", "ideal"], "'ideal' needs a world", "--world (in Python, world=), or choose another"),
    (
        ["-e", "ips", "--set", "propensity.name=populrity-static"],
        "unknown propensity",
        "Did you mean 'popularity-static'?",
    ),
    (["-e", "itps", "--set", "propensity.name=logged"], "needs a log with a propensity column", "popularity"),
    (["-e", "itps", "--set", "propensity.name=known-temporal"], "needs a world whose exposure is known", "popularity"),
    (
        ["-e", "itps", "--set", "propensity.name=popularity-static"],
        "needs a temporal propensity",
        "popularity-temporal",
    ),
    (["-e", "itps", "--set", "estimator.clp=1"], "unknown option of the estimator", "Did you mean 'clip'?"),
    (["--world", "nowhere"], "not a world", "world.json"),
    (["--world", "builtin"], "the log does not fit the world", "Name the world that the log was drawn from"),
    (["--set", "training.device=abacus"], "not a device", "auto, cpu, cuda or mps"),
    (["--set", "evaluation.uniform=28"], "more negatives than items", "Ask for at most 19"),
    (["--set", "evaluation.validation=uniform-28"], "more negatives than items", "Ask for at most"),
    (["--set", "training.epochs=0"], "training.epochs: out of range", "at least 1"),
    (["--set", "training.monitor=NDCG"], "training.monitor: no such figure", "NDCG@10"),
    (["--min-user", "12"], "all histories are too short", "lower --min-item, --min-user and --min-rating"),
    (["--set", "data.split=temporal", "--set", "data.test_from=1.5"], "a cut is out of range", "found 1.5"),
    (["--config", "gone.toml"], "gone.toml: no such config", "a TOML file"),
    (["--min-rating", "3"], "the log has no rating column", "Drop --min-rating"),
    (["--workers", "3"], "training starts no other processes", "torchrun --nproc-per-node 3 -m unveil train "),
    (["--engine", "ray", "--address", "127.0.0.1:1"], "any more, here or on Ray", "torchrun --nnodes"),
]


@pytest.mark.parametrize(("arguments", "problem", "advice"), BAD, ids=[" ".join(bad[0]) for bad in BAD])
def test_what_is_wrong_is_one_message_and_nothing_is_written(
    arguments: list[str], problem: str, advice: str, unveil: Command, finished: Finished, tmp_path: Path
) -> None:
    message = unveil("train", finished.log, "-o", tmp_path / "run", *QUICK, *arguments).failure()
    assert problem in message
    assert advice in message
    assert not list(tmp_path.iterdir())


def in_place(monkeypatch: pytest.MonkeyPatch, **variables: object) -> None:
    """The variables that torchrun sets, of a place where nobody waits."""
    for name, value in {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 1, **variables}.items():
        monkeypatch.setenv(name, str(value))


def test_started_by_torchrun(
    unveil: Command, finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("train", finished.log, "-o", tmp_path / "run", *QUICK)
    in_place(monkeypatch, RANK=0, WORLD_SIZE=2)
    message = unveil(*command, "--workers", 2).failure()
    assert message.endswith("For several: torchrun --nproc-per-node 2 -m unveil " + " ".join(map(str, command)))
    in_place(monkeypatch, RANK="first", WORLD_SIZE=2)
    assert "RANK, WORLD_SIZE, LOCAL_RANK" in (message := unveil(*command).failure())
    assert "must be whole numbers" in message
    assert not list(tmp_path.iterdir())
    in_place(monkeypatch, RANK=0, WORLD_SIZE=1)  # a team of one needs no meeting
    assert unveil(*command).code == 0
    assert "not empty" in unveil(*command).failure()
    in_place(monkeypatch, RANK=0, WORLD_SIZE=1, TORCHELASTIC_RESTART_COUNT=1)  # begun before, it goes on
    assert unveil(*command).code == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[model]\nwidht = 3", "Did you mean 'model.width'?"),
        ("[model\n", "run.toml: not TOML"),
        ('extends = "run.toml"', "extend each other in a circle"),
        ('extends = "papr"', "Did you mean 'paper'?"),
    ],
)
def test_what_is_wrong_in_a_config(
    text: str, problem: str, unveil: Command, finished: Finished, tmp_path: Path
) -> None:
    config = tmp_path / "run.toml"
    config.write_text(text)
    assert problem in unveil("train", finished.log, "-o", tmp_path / "run", "--config", config).failure()
    both = unveil("train", finished.log, "-o", tmp_path / "run", "--config", config, "--preset", "paper").failure()
    assert 'Write extends = "paper"' in both
    assert list(tmp_path.iterdir()) == [config]


def rows(path: Path, histories: list[list[str]], *, clicked: bool = True) -> Path:
    frame = pl.DataFrame(
        [
            (f"u{user}", item, place, int(clicked))
            for user, items in enumerate(histories)
            for place, item in enumerate(items)
        ],
        schema=["user_id", "item_id", "timestamp", "clicked"],
        orient="row",
    )
    frame.write_csv(path)
    return path


def test_a_log_with_nothing_to_train_on(unveil: Command, tmp_path: Path) -> None:
    short = rows(tmp_path / "short.csv", [["a", "b"], ["b", "c"], ["c", "a"]])
    assert "all histories are too short" in unveil("train", short, "-o", tmp_path / "run").failure()
    left = rows(tmp_path / "left.csv", [list("abcdefghijkl")] * 3, clicked=False)
    assert "nothing in the log was clicked" in unveil("train", left, "-o", tmp_path / "run").failure()
    tiny = rows(tmp_path / "tiny.csv", [list("abc"), list("bcd")])
    assert "the catalogue is too small" in unveil("train", tiny, "-o", tmp_path / "run").failure()
    assert not (tmp_path / "run").exists()


def test_an_occupied_place(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(finished.folder, tmp_path / "copy"))
    before = content(copy)
    assert "not empty" in unveil("train", finished.log, "-o", copy, *options()).failure()
    message = unveil("train", finished.log, "-o", copy, "-e", "itps", *options(), "--seed", 1, "--resume").failure()
    assert "the run began with training.seed = 0, and now it is 1." in message
    other = write_log(tmp_path / "other.csv", seed=8)
    assert "another log" in unveil("train", other, "-o", copy, "-e", "itps", *options(), "--resume").failure()
    assert content(copy) == before
    again = ("train", finished.log, "-o", copy, "-e", "itps", *options(), "--resume")
    done = unveil(*again, "--no-page")
    assert done.code == 0
    assert "finished   nothing is left to do" in done.out
    assert f"the run is in {copy}" in done.out
    assert content(copy) == before
    assert f"open {copy / 'index.html'}" in unveil(*again).out
    assert "index.html" not in unveil(*again).out  # it is there


def test_a_place_that_cannot_be_written_to(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert "a file, not a folder" in unveil("train", finished.log, "-o", tmp_path / "file", *QUICK).failure()
    assert "cannot write" in unveil("train", finished.log, "-o", tmp_path / "file" / "run", *QUICK).failure()
    assert "File name too long" in unveil("train", finished.log, "-o", tmp_path / ("x" * 300), *QUICK).failure()
    assert content(tmp_path) == {"file": b"mine"}


def test_a_world_is_used_and_its_log_is_not_called_a_proxy(unveil: Command, tmp_path: Path) -> None:
    world = World.builtin(WorldSpec(users=40, items=30, steps=15), seed=5)
    world.save(tmp_path / "world")
    assert unveil("world", "draw", tmp_path / "world", "-o", tmp_path / "log.csv").code == 0
    done = unveil(
        "train", tmp_path / "log.csv", "-o", tmp_path / "run", "-e", "ips", "--world", tmp_path / "world", *QUICK
    )
    assert done.code == 0, done.err
    assert "ips, weighted by known-static" in done.out
    assert "proxy" not in done.out
    done = unveil("train", tmp_path / "log.csv", "-o", tmp_path / "p", "-e", "ips", *QUICK)
    warned = next(
        line for line in done.out.splitlines() if line.startswith("warning: popularity stands in for exposure")
    )
    assert "of plain training .50" in warned
    assert "`unveil propensity fit`" in warned


def test_impressions_are_used_or_pointed_at_and_the_share_kept_is_said(unveil: Command, tmp_path: Path) -> None:
    """A share that is wrong is found nowhere else: the training goes on, and does harm."""
    world, log = tmp_path / "world", tmp_path / "log.csv"
    World.builtin(WorldSpec(users=40, items=30, steps=15), seed=5).save(world)
    drawn = unveil("world", "draw", world, "-o", log, "--impressions", "0.5")
    assert "--set propensity.name=recorded-temporal --set propensity.rate=0.5" in drawn.out
    recorded = ["-e", "corrected", "--set", "propensity.name=recorded-temporal", "--set", "propensity.batches=5"]
    done = unveil("train", log, "-o", tmp_path / "a", *recorded, *QUICK)
    assert "corrected, with recorded-temporal" in done.out
    assert "--set propensity.rate=0.1" in done.out
    done = unveil("train", log, "-o", tmp_path / "b", *recorded, "--set", "propensity.rate=0.5", *QUICK)
    assert "0.5 (propensity.rate)" in done.out
    done = unveil("train", log, "-o", tmp_path / "c", "-e", "corrected", *QUICK)
    assert "warning: this log has impressions without a click, which are not used here" in done.out


def write_feed(path: Path, *, together: bool = False) -> Path:
    """The small log with an impression without a click before each of its rows, or at its time."""
    clicks = small_frame().with_columns(clicked=1)
    earlier = 0 if together else 50
    skips = clicks.with_columns(pl.col("item_id").shuffle(seed=0), pl.col("timestamp") - earlier, clicked=0)
    pl.concat([clicks, skips]).write_csv(path)
    return path


def test_impressions_are_learnt_from_where_there_are_some(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    feed = write_feed(tmp_path / "feed.csv")
    for loss in ("pairwise", "pointwise"):
        how = ["-e", "impressions", "--set", f"estimator.loss={loss}", *QUICK]
        done = unveil("train", feed, "-o", tmp_path / loss, *how)
        assert done.code == 0, done.err
        assert "estimator  impressions" in done.out
        assert "is a feed" not in done.out
    done = unveil("train", finished.log, "-o", tmp_path / "none", "-e", "impressions", *QUICK)
    assert done.code == 2
    assert "'impressions' needs a log with impressions without a click" in done.err
    assert "--clicked-col" in done.err
    assert not (tmp_path / "none").exists()


def test_a_choice_in_a_feed_is_warned_of(unveil: Command, tmp_path: Path) -> None:
    recorded = ["--set", "propensity.name=recorded-temporal", "--set", "propensity.batches=5", *QUICK]
    for together in (False, True):
        log = write_feed(tmp_path / f"{together}.csv", together=together)
        for name in ("corrected", "rational", "consideration", "itps"):
            done = unveil("train", log, "-o", tmp_path / f"{name}-{together}", "-e", name, *recorded)
            assert done.code == 0, done.err
            warned = f"but {name} assumes a choice among what is shown together" in done.out
            assert warned is (name != "itps" and not together)


def test_degenerate_weights_are_warned_of(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    arguments = ["-e", "ips", "--set", "estimator.exponent=0", *QUICK]
    done = unveil("train", finished.log, "-o", tmp_path / "run", *arguments)
    assert "warning: The weights are all but equal" in done.out
    about = json.loads((tmp_path / "run" / "about.json").read_text())
    assert np.isclose(about["weights"]["effective_sample_size"], about["weights"]["slots"])
