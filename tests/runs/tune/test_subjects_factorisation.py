"""Tuning the factorisations behind a world: the same studies, another subject."""

import gc
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.runs.tune.studies import TIMING, space
from tests.runs.tune.test_processes import finished_once, still_until, trials_of, wait_for, worker
from tests.simulation.rated import rated
from unveil.data.filters import LogSource
from unveil.data.interactions import Interactions
from unveil.data.writers import write
from unveil.errors import UnveilError
from unveil.models.tensor_factorization.recipes import RECIPES
from unveil.models.tensor_factorization.task import Negatives, Parts, Task, Tuples, auc, mse
from unveil.runs.progress import Silent
from unveil.runs.tune.search import Location, tune
from unveil.runs.tune.study import Plan, Space, Study
from unveil.runs.tune.subjects import KEPT, Factorisation, Part, part_of
from unveil.runs.workers import Advanced, Event
from unveil.simulation.fit import Fit, fit_world, observed

LOG = rated(users=30, items=20, longest=10)
SHORT = {"epochs": 3, "width": 2}
FIT = Fit(steps=10, recipe="paper", relevance=SHORT, exposure=SHORT, seed=4)
CONTENT = 'recipe = ["paper"]\n"{part}.width" = [2, 3]\n"{part}.batch" = [32, 64]\n'


def nothing(*_: object) -> None: ...


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write(LOG, tmp_path / "log.csv")
    return tmp_path / "log.csv"


def subject(log: Path, part: Part = "relevance", fit: Fit = FIT) -> Factorisation:
    return Factorisation(LogSource(str(log)), fit, part)


def study(of: Factorisation, folder: Path, replicates: int = 2) -> Study:
    wanted = space(folder.parent, CONTENT.format(part=of.part))
    return tune(of, Plan(wanted, replicates=replicates, sampler="grid"), Location(folder, **TIMING), tell=nothing)


@pytest.mark.parametrize("part", ["relevance", "exposure"])
def test_values_are_those_of_fits_by_hand_and_the_best_of_them_wins(part: Part, log: Path, tmp_path: Path) -> None:
    """MSE of held-out ratings, the least; AUC of held-out interactions among negatives, the most."""
    found = study(subject(log, part), tmp_path / "study")
    assert [each.settings[f"{part}.width"] for each in found.trials] == [2, 2, 3, 3]
    for record in found.trials:
        for number, replicate in enumerate(record.replicates):
            options = {"epochs": 3} | {name: record.settings[f"{part}.{name}"] for name in ("width", "batch")}
            assert replicate.value == pytest.approx(by_hand(part, options, number), abs=1e-12)
    means = [np.mean([each.value for each in record.replicates]) for record in found.trials]
    assert len(set(means)) == 4
    assert found.best.index == (np.argmin(means) if part == "relevance" else np.argmax(means))
    assert found.ranked()[0] is found.best


def by_hand(part: Part, options: dict[str, object], number: int) -> float:
    """Chance as it is documented: what is tested on is put away by the fit's seed, replicates split the rest."""
    every = observed(LOG, 10)
    hidden = FIT.tasks(every)[0].parts.test.key_N
    rest = Tuples(*every.sides, every.value_N, every.shape)
    kept = FIT.untested(rest)
    assert sorted(kept.key_N.tolist()) == sorted(set(every.key_N.tolist()) - set(hidden.tolist()))
    for_split, for_negatives = np.random.default_rng([4, 1, number]).spawn(2)
    shuffled = for_split.permutation(len(kept))
    ninth = len(kept) // 9
    parts = Parts(
        kept.where(np.sort(shuffled[:-ninth])), kept.where(np.sort(shuffled[-ninth:])), kept.where(shuffled[:0])
    )
    task = Task.of_ratings(parts)
    if part == "exposure":
        task = Task.of_exposure(parts, Negatives(kept, 3, "anywhere"), for_negatives)
    learnt = RECIPES.build("paper", options).learn(task, np.random.default_rng([4, 2, number]), lambda n: None)
    return (mse if part == "relevance" else auc)(learnt.valid_N, task.parts.valid.value_N)


def test_no_test_tuple_can_be_reached_and_none_changes_anything(log: Path) -> None:
    """What `unveil world fit` with the same seed reports on is not held anywhere, not even as a place to keep free."""
    bench = subject(log, "exposure").context([], tell=nothing)
    hidden = set(FIT.tasks(observed(LOG, 10))[0].parts.test.key_N.tolist())
    held = [each for each in reachable(bench) if isinstance(each, Tuples)]
    assert held
    assert not any(isinstance(each, LogSource | Interactions) for each in reachable(bench))  # nor a way to the log
    for tuples in held:
        assert not hidden & set(tuples.key_N[tuples.value_N > 0].tolist())
    for number in range(3):
        task = bench.tasks(bench.subject.fit, number)[1]
        assert len(task.parts.test) == 0
        assert not hidden & set(task.parts.valid.key_N[task.parts.valid.value_N == 1].tolist())
        assert task.negatives is not None
        assert not hidden & set(task.negatives.interacted.key_N.tolist())


def reachable(root: object) -> list[object]:
    seen: dict[int, object] = {}
    todo = [root]
    while todo:
        each = todo.pop()
        if id(each) not in seen and not isinstance(each, type):
            seen[id(each)] = each
            todo += gc.get_referents(each) if not callable(each) else []
    return list(seen.values())


def test_spoilt_test_ratings_change_no_trial(tmp_path: Path) -> None:
    tested = FIT.tasks(observed(LOG, 10))[0].parts.test
    pairs = set(zip(tested.user_N.tolist(), tested.item_N.tolist(), strict=True))  # nobody met an item twice
    assert LOG.rating is not None
    hidden_N = np.array([pair in pairs for pair in zip(LOG.user.tolist(), LOG.item.tolist(), strict=True)])
    spoilt = np.where(hidden_N, 6 - LOG.rating, LOG.rating)
    assert hidden_N.sum() == len(tested)
    values = []
    for name, ratings in (("plain", LOG.rating), ("spoilt", spoilt)):
        (tmp_path / name).mkdir()
        write(replace(LOG, rating=ratings), tmp_path / name / "log.csv")
        found = study(subject(tmp_path / name / "log.csv"), tmp_path / name / "study", replicates=1)
        values.append([each.value for each in found.trials])
    assert values[0] == values[1]


def test_two_processes_share_a_study(log: Path, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    path = tmp_path / "space.toml"
    path.write_text(CONTENT.format(part="relevance"))
    shared = ["--set", "steps=10", "--set", "relevance.epochs=3", "--seed", "4", "--replicates", "2"]
    arguments = ["tune", str(log), "--space", str(path), "--sampler", "grid", *shared, "-o", str(folder)]
    with worker(arguments) as other:
        wait_for(folder / "trials" / "000", other)
        with still_until(folder / "trials" / "001", other):
            of = subject(log, fit=replace(FIT, relevance={"epochs": 3}, exposure={}))
            found = study(of, folder)
        _, err = other.communicate(timeout=180)
        assert other.returncode == 0, err
        assert finished_once(trials_of(folder), 4) == {os.getpid(), other.pid}
    alone = study(of, tmp_path / "alone")
    assert [each.value for each in found.trials] == [each.value for each in alone.trials]


def test_what_is_done_is_not_done_again(log: Path, tmp_path: Path) -> None:
    """Stopped in the second replicate of a trial, the first is taken from its file."""

    class Impatient(Silent):
        def event(self, event: Event) -> None:
            if isinstance(event, Advanced) and event.key == "trial 1" and event.share > 0.6:
                raise KeyboardInterrupt

    of = subject(log)
    plan = Plan(space(tmp_path, CONTENT.format(part="relevance")), replicates=2, sampler="grid")
    where = Location(tmp_path / "study", **TIMING)
    with pytest.raises(KeyboardInterrupt):
        tune(of, plan, where, watch=Impatient(), tell=nothing)
    first = tmp_path / "study" / "trials" / "001" / "r0" / KEPT
    before = first.stat().st_mtime_ns
    assert not (first.parent.parent / "r1" / KEPT).exists()
    assert (tmp_path / "study" / "best.toml").exists()
    found = tune(of, plan, where, tell=nothing)
    assert first.stat().st_mtime_ns == before
    assert [each.attempts for each in found.trials] == [1, 2, 1, 1]
    assert [each.value for each in found.trials] == [each.value for each in study(of, tmp_path / "unbroken").trials]


def test_what_came_of_other_settings_is_not_taken(log: Path, tmp_path: Path) -> None:
    bench = subject(log).context([], tell=nothing)
    narrow, wide = (bench.replicate({"relevance.width": width}, 0, tmp_path, nothing) for width in (2, 4))
    assert narrow.value != wide.value
    again = bench.replicate({"relevance.width": 4}, 0, tmp_path, nothing)
    assert (again.value, again.seconds) == (wide.value, wide.seconds)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"of": {}}', "null"])
def test_a_damaged_file_is_fitted_again(content: str, log: Path, tmp_path: Path) -> None:
    bench = subject(log).context([], tell=nothing)
    before = bench.replicate({}, 0, tmp_path, nothing)
    (tmp_path / KEPT).write_text(content)
    assert bench.replicate({}, 0, tmp_path, nothing).value == before.value
    known = json.loads((tmp_path / KEPT).read_text())
    (tmp_path / KEPT).write_text(json.dumps(known | {"value": None}))
    assert bench.replicate({}, 0, tmp_path, nothing).value == before.value


@pytest.mark.parametrize("part", ["relevance", "exposure"])
def test_factors_that_are_no_numbers_are_no_result(part: Part, log: Path, tmp_path: Path) -> None:
    """An AUC is a number even where no prediction is."""
    bench = subject(log, part).context([], tell=nothing)
    with pytest.raises(UnveilError, match="grew without bound"):
        bench.replicate({f"{part}.lr": 1e30}, 0, tmp_path, nothing)
    assert not (tmp_path / KEPT).exists()


def test_the_same_tuples_are_announced_for_either_part(log: Path) -> None:
    """Negatives are not counted, neither in learning nor in judging."""
    told: list[str] = []
    for part in ("relevance", "exposure"):
        subject(log, part).context([], tell=nothing).announce({}, told.append)
    assert len({line.partition("; ")[2] for line in told}) == 1


@pytest.mark.parametrize("part", ["relevance", "exposure"])
def test_the_papers_grids_are_ready(part: Part) -> None:
    ready = Space.read(f"paper-{part}")
    assert part_of(ready) == part
    cells = list(ready.combinations())
    sizes = {(cell[f"{part}.width"], cell[f"{part}.batch"]) for cell in cells}
    assert sizes == {(width, batch) for width in (50, 100, 200) for batch in (64, 128, 256)}
    assert {cell["recipe"] for cell in cells} == {"paper"}


@pytest.mark.parametrize("recipe", ["posterior", "regularised"])
def test_other_recipes_can_do_without_a_test_part(recipe: str, log: Path, tmp_path: Path) -> None:
    options = {"posterior": {"sweeps": 3, "burn_in": 1}, "regularised": {"epochs": 2}}[recipe]
    for part in ("relevance", "exposure"):
        bench = subject(log, part, Fit(10, recipe, options, options)).context([], tell=nothing)
        assert np.isfinite(bench.replicate({f"{part}.width": 2}, 0, tmp_path / part, nothing).value)


def test_a_world_fitted_with_the_winner_is_tested_on_what_was_put_away() -> None:
    """The same seed: so the test part of the fit is the one that tuning could not see."""
    fitted = fit_world(LOG, FIT)
    assert fitted.origin["relevance"]["recipe"]["test"] > 0
    kept = FIT.untested(observed(LOG, 10))
    tested = FIT.tasks(observed(LOG, 10))[0].parts.test
    assert not set(kept.key_N.tolist()) & set(tested.key_N.tolist())
    assert len(kept) + len(tested) == len(observed(LOG, 10))
