import csv
import json
import shutil
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Timer

import numpy as np
import optuna
import pytest

from tests.pages import faults
from tests.run_folders import write_log
from tests.runs.tune.conftest import Tuned
from tests.runs.tune.studies import TIMING, quickest, space, study
from unveil.errors import UnveilError
from unveil.files import alone_in
from unveil.runs.config import Experiment, as_toml
from unveil.runs.progress import Silent
from unveil.runs.train import run
from unveil.runs.tune.search import Location, is_valid, tune
from unveil.runs.tune.storage import join
from unveil.runs.tune.study import Plan
from unveil.runs.tune.subjects import Training
from unveil.runs.workers import Advanced, Event
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World


def test_every_trial_has_the_settings_of_its_number_and_the_mean_of_its_replicates(tuned: Tuned) -> None:
    found = tuned.study
    assert [each.index for each in found.trials] == [0, 1, 2, 3]
    expected = found.plan.configurations(0, lambda settings: is_valid(found.subject, settings))
    assert [each.settings for each in found.trials] == expected
    assert [each.value for each in found.trials] == [pytest.approx(np.mean(values)) for values in tuned.values]
    assert [[len(one.curve) for one in each.replicates] for each in found.trials] == [[2, 2]] * 4


def test_a_replicate_is_the_training_of_its_settings_and_seed(tuned: Tuned, tmp_path: Path) -> None:
    """Replicates are paired: r has the same seed in every trial, and a plain run with it gives the same figure."""
    record = tuned.study.trials[2]
    experiment = tuned.experiment.changed({**record.settings, "training.seed": 1})
    fitted = run(experiment, tmp_path / "run", tell=lambda _: None).fitted
    assert fitted.best is not None
    assert (fitted.best.value, fitted.best.epoch) == (record.replicates[1].value, record.replicates[1].epoch)


def test_the_best_is_written_as_settings_that_can_be_trained(tuned: Tuned) -> None:
    best = max(tuned.study.trials, key=lambda each: each.value or 0.0)
    assert tuned.study.best == best
    written = Experiment.of(tuned.folder / "best.toml")
    assert written == tuned.experiment.changed(best.settings)
    assert (tuned.folder / "best.toml").read_text() == as_toml(
        written,
        "The best of 4 trials of study study (space space, random search):\n"
        f"trial {best.index}, mean validation NDCG@10 {best.value:.4f} over 2 replicates.\n"
        "unveil train LOG --config THIS-FILE -o RUN",
    )


def test_the_files(tuned: Tuned) -> None:
    with (tuned.folder / "trials.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [[float(row["replicate 0"]), float(row["replicate 1"])] for row in rows] == tuned.values
    assert {row["state"] for row in rows} == {"complete"}
    about = json.loads((tuned.folder / "study.json").read_text())
    assert about["best"]["trial"] == tuned.study.best.index
    assert about["best"]["mean"] == tuned.study.best.value
    assert about["space"]["settings"]["model.heads"] == [1, 2]
    page = (tuned.folder / "index.html").read_text()
    for title in ("The best settings", "What mattered", "Every trial through its settings", "Methods"):
        assert title in page
    assert faults(page) == []
    assert not list(tuned.folder.rglob("checkpoint.safetensors"))


def test_a_finished_study_is_read_and_not_done_again_and_grows(tuned: Tuned, tmp_path: Path) -> None:
    """The first trials of a larger study are those of the smaller one."""
    folder, experiment = tmp_path / "study", tuned.experiment
    small = study(experiment, replace(tuned.study.plan, trials=1), folder)
    assert small.trials == [replace(tuned.study.trials[0], replicates=small.trials[0].replicates)]
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("training.jsonl")}
    again = study(experiment, replace(tuned.study.plan, trials=1), folder)
    assert again.trials == small.trials
    larger = study(experiment, replace(tuned.study.plan, trials=2), folder)
    assert [each.value for each in larger.trials] == [each.value for each in tuned.study.trials[:2]]
    assert {path: path.stat().st_mtime_ns for path in before} == before
    with pytest.raises(UnveilError, match="Join with --trials 2 or more"):
        study(experiment, replace(tuned.study.plan, trials=1), folder)


def test_another_study_is_not_joined(tuned: Tuned, tmp_path: Path) -> None:
    experiment, plan = tuned.experiment, tuned.study.plan
    folder = tuned.folder

    def refused(experiment: Experiment = experiment, plan: Plan = plan, storage: str | None = None) -> str:
        with pytest.raises(UnveilError) as error:
            study(experiment, plan, folder, storage)
        return str(error.value)

    assert "replicates = 2, and now it is 3" in refused(plan=replace(plan, replicates=3))
    assert "sampler = random, and now it is tpe" in refused(plan=replace(plan, sampler="tpe"))
    assert "space.model.heads = [1, 2], and now it is [1]" in refused(
        plan=replace(plan, space=space(tmp_path, '"model.heads" = [1]\n"model.dropout" = [0.0, 0.2]'))
    )
    assert "settings.training.epochs = 2, and now it is 3" in refused(experiment.changed({"training.epochs": 3}))
    other = write_log(tmp_path / "other.csv", seed=1)
    assert "the study began with another log" in refused(experiment.changed({"data.log": str(other)}))
    assert "is kept in journal, not in sqlite:///x.db" in refused(storage="sqlite:///x.db")
    moved = experiment.changed({"data.log": str(write_log(tmp_path / "same.csv")), "training.checkpoint_minutes": 1.0})
    assert study(moved, plan, folder).trials == tuned.study.trials


def test_a_folder_of_something_else_is_left_alone(tuned: Tuned, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(UnveilError, match="something else than a study"):
        study(tuned.experiment, tuned.study.plan, tmp_path)
    with pytest.raises(UnveilError, match="is a file"):
        study(tuned.experiment, tuned.study.plan, tmp_path / "letter.txt")


def test_a_damaged_journal_is_told(tuned: Tuned, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    shutil.copytree(tuned.folder, folder)
    lines = (folder / "journal.log").read_text().splitlines(keepends=True)
    (folder / "journal.log").write_text("".join([*lines[:5], lines[5][:20], *lines[6:]]))
    with pytest.raises(UnveilError, match="the study's journal is damaged"):
        study(tuned.experiment, tuned.study.plan, folder)


def test_settings_that_cannot_be_trained_are_a_result(tuned: Tuned, tmp_path: Path) -> None:
    wild = space(tmp_path, '"training.lr" = [0.01, 1e30]\n"training.clip" = [1e30]')
    found = study(tuned.experiment, Plan(wild, replicates=1, sampler="grid"), tmp_path / "study")
    good, bad = found.trials
    assert (good.state, bad.state) == ("complete", "failed")
    assert bad.why
    assert found.best == good
    only = space(tmp_path, '"training.lr" = [1e30]\n"training.clip" = [1e30]')
    with pytest.raises(UnveilError, match="all trials failed; the first: "):
        study(tuned.experiment, Plan(only, replicates=1, sampler="grid"), tmp_path / "none")


def test_an_option_that_the_estimator_does_not_have_is_found_before_anything_is_written(
    tuned: Tuned, tmp_path: Path
) -> None:
    wrong = space(tmp_path, '"estimator.exponnet" = [0.1, 0.2]')
    with pytest.raises(UnveilError, match="exponent"):
        study(tuned.experiment.changed({"estimator.name": "itps"}), Plan(wrong), tmp_path / "study")
    assert not (tmp_path / "study").exists()


def test_stopping_gives_the_trial_back_and_the_same_call_goes_on(tuned: Tuned, tmp_path: Path) -> None:
    class Impatient(Silent):
        """Asks to stop in the middle of the second trial."""

        def event(self, event: Event) -> None:
            if isinstance(event, Advanced) and event.key == "trial 1" and event.share > 0.5:
                raise KeyboardInterrupt

    where = Location(tmp_path / "study", f"sqlite:///{tmp_path}/s.db", **TIMING)
    plan = replace(tuned.study.plan, trials=2)
    with pytest.raises(KeyboardInterrupt):
        tune(Training(tuned.experiment), plan, where, watch=Impatient(), tell=lambda _: None)
    assert "The best of 1 trial of" in (tmp_path / "study" / "best.toml").read_text()
    unfinished = "The study is not finished: 1 of 2 trials are over."
    assert unfinished in (tmp_path / "study" / "index.html").read_text()
    found = tune(Training(tuned.experiment), plan, where, tell=lambda _: None)
    assert [each.attempts for each in found.trials] == [1, 2]
    assert [each.value for each in found.trials] == [each.value for each in tuned.study.trials[:2]]
    assert "The best of 2 trials of" in (tmp_path / "study" / "best.toml").read_text()
    assert unfinished not in (tmp_path / "study" / "index.html").read_text()


def test_a_trial_without_a_place_is_given_back_at_once(tuned: Tuned, tmp_path: Path) -> None:
    """Not only when the process ends: one that lives on, as a cluster's does, would keep it for ever."""
    folder, plan = tmp_path / "study", replace(tuned.study.plan, trials=1)
    folder.mkdir()
    (folder / "study.json").write_text('{"storage": "journal"}')
    (folder / "trials").write_text("in the way")
    with pytest.raises(UnveilError, match="trials"):
        study(tuned.experiment, plan, folder)
    (folder / "trials").unlink()
    found = study(tuned.experiment, plan, folder)
    assert [(each.value, each.attempts) for each in found.trials] == [(tuned.study.trials[0].value, 2)]


def test_another_world_is_another_study(tmp_path: Path) -> None:
    """Its folder may lie anywhere; what is in it decides."""
    world, plan = World.builtin(WorldSpec(users=20, items=12, steps=10)), Plan(space(tmp_path), trials=1, replicates=1)
    log = world.log(np.random.default_rng(0))
    replace(log, propensity=None).to_frame().write_csv(tmp_path / "log.csv")  # it would tell one world from the other
    for name, each in (("one", world), ("same", world), ("other", replace(world, severity=world.severity + 1))):
        each.save(tmp_path / name)
    experiment = quickest(tmp_path / "log.csv", {"data.world": str(tmp_path / "one"), "evaluation.exclude_seen": False})
    first = study(experiment, plan, tmp_path / "study")
    again = study(experiment.changed({"data.world": str(tmp_path / "same")}), plan, tmp_path / "study")
    assert again.trials == first.trials
    with pytest.raises(UnveilError, match="the study began with another world"):
        study(experiment.changed({"data.world": str(tmp_path / "other")}), plan, tmp_path / "study")


def test_a_study_of_a_version_that_said_less_is_joined() -> None:
    storage = optuna.storages.InMemoryStorage()
    join("study", storage, None, None, {"log": "a"})
    join("study", storage, None, None, {"log": "a", "world": "b"})
    with pytest.raises(UnveilError, match="another log"):
        join("study", storage, None, None, {"log": "c", "world": "b"})


def test_who_takes_a_trial_over_waits_until_its_folder_is_free(tuned: Tuned, tmp_path: Path) -> None:
    """Whoever was given up elsewhere, and does not know it yet, is still at work in it."""

    class Late(Silent):
        """Lets the other go a while after we have begun."""

        def start(self, left: object, total: int, what: str) -> None:
            Timer(0.3, other.close).start()

    folder, plan = tmp_path / "study", replace(tuned.study.plan, trials=1)
    (folder / "trials" / "000").mkdir(parents=True)
    (folder / "study.json").write_text('{"storage": "journal"}')
    with ExitStack() as other:
        other.enter_context(alone_in(folder / "trials" / "000"))
        found = tune(Training(tuned.experiment), plan, Location(folder, **TIMING), watch=Late(), tell=lambda _: None)
    assert [each.value for each in found.trials] == [tuned.study.trials[0].value]
    assert [each.attempts for each in found.trials] == [1]


def test_guesses_learn_from_what_was_found_and_come_again_for_a_seed(tuned: Tuned, tmp_path: Path) -> None:
    where = space(tmp_path, '"training.lr" = {low = 1e-5, high = 0.03, log = true}\n"model.heads" = [1, 2, 4]')
    experiment = tuned.experiment.changed({"training.epochs": 1, "model.width": 12})
    plan = Plan(where, trials=12, replicates=1, sampler="tpe")
    once, twice = (study(experiment, plan, tmp_path / name) for name in ("once", "twice"))
    assert [each.settings for each in once.trials] == [each.settings for each in twice.trials]
    by_chance = plan.configurations(0, lambda _: True)
    assert [each.settings for each in once.trials[:10]] == by_chance[:10]
    assert [each.settings for each in once.trials[10:]] != by_chance[10:]
    assert "TPE tries promising settings more often" in (tmp_path / "once" / "index.html").read_text()


def test_hopeless_trials_are_stopped_where_asked(tuned: Tuned, tmp_path: Path) -> None:
    where = space(tmp_path, '"training.lr" = {low = 1e-6, high = 0.03, log = true}')
    experiment = tuned.experiment.changed({"training.epochs": 4})
    found = study(experiment, Plan(where, trials=9, replicates=1, prune=True), tmp_path / "study")
    pruned = [each for each in found.trials if each.state == "pruned"]
    assert pruned
    assert all(each.value is None for each in pruned)
    assert all(each.state == "complete" for each in found.trials[:5])
    assert found.best.state == "complete"
