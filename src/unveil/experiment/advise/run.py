"""Making the advice: worlds, what can be had, cells. Every part is kept, and none is made twice."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unveil.data.interactions import Interactions
from unveil.experiment.advise.candidates import Candidates
from unveil.experiment.advise.insisted import refuse_lacking
from unveil.experiment.advise.plan import AdvicePlan, Draw
from unveil.experiment.advise.scenarios import Scenario
from unveil.experiment.advise.source import (
    Looks,
    has_ratings,
    read_shown,
    refuse_few_items,
    refuse_no_impressions,
    taken_again,
)
from unveil.experiment.advise.worlds import refuse_no_world, refuse_without_relevance
from unveil.experiment.reproduce.results import Place, Results
from unveil.experiment.reproduce.worlds import digest, place
from unveil.files import alone_in
from unveil.runs.progress import Silent, Watcher, spell
from unveil.runs.workers import Engine
from unveil.settings import plain
from unveil.studies.arms import family
from unveil.studies.cells import Store, run_cells

#: Raised when the same settings no longer give the same cells.
FORMAT = 2


@dataclass(frozen=True, eq=False)
class Tried:
    """All that was tried, and what it was made from."""

    plan: AdvicePlan
    log: str  # what the log is, in words
    fingerprint: str
    looks: Looks  # of the log that worlds were fitted to
    again: float  # share of its events that repeat an item of their user
    candidates: Candidates
    refused: Mapping[str, str]  # propensities and estimators that could not be tried, and why
    cells: Mapping[Draw, Mapping[str, Any]]
    worlds: list[dict[str, Any]]
    seconds: float  # of this run
    made: int  # cells made by this run
    worker_seconds: float  # of all cells and worlds, whenever they were made

    def at(self, scenario: Scenario) -> Results:
        """The results of one scenario: all arms on all its draws."""
        arms = self.candidates.arms
        found = {
            Place(draw, scenario.severity, replicate, arm): self.cells[Draw(scenario, draw, replicate, arm)]
            for draw in range(self.plan.worlds)
            for replicate in range(self.plan.replicates)
            for arm in arms
        }
        return Results(found, (scenario.severity,), self.plan.worlds, self.plan.replicates, arms)


def advise(
    plan: AdvicePlan,
    folder: Path,
    engine: Engine,
    *,
    watch: Watcher | None = None,
    tell: Callable[[str], None] | None = None,
) -> Tried:
    """Do what is left to do in `folder`, and give everything. Files are written by `files.write`."""
    begun, say, watch = time.monotonic(), tell or _nothing, watch or Silent()
    shown = read_shown(plan.source, plan.study.users, plan.study.seed)
    _refuse(plan, shown)
    log = shown.interacted()
    store = Store(folder, identity(plan, log))
    store.open()
    with alone_in(folder):
        worlds = _worlds(plan, store, engine, watch)
        probed = _probed(plan, store, engine, watch, say)
        chosen = plan.candidates(probed, rated=has_ratings(log))
        users, items, events = probed["size"]
        jobs = plan.cell_jobs(folder, chosen.arms, (users, items, events))
        left = [job for job in jobs.values() if store.result(job.key) is None]
        say(_announced(plan, len(jobs), sum(job.cost for job in left), len(left), engine.workers()))
        done = run_cells(list(jobs.values()), store, engine, watch)
    cells = {at: done[job.key] for at, job in jobs.items()}
    return Tried(
        plan=plan,
        log=str(log),
        fingerprint=log.fingerprint(),
        looks=Looks.of(log),
        again=taken_again(log),
        candidates=chosen,
        refused=_refused(probed) | _unrated(plan, log),
        cells=cells,
        worlds=[world for draw in worlds for world in draw["worlds"]],
        seconds=time.monotonic() - begun,
        made=len(left),
        worker_seconds=float(sum(each["seconds"] for each in (*worlds, probed, *cells.values()))),
    )


def identity(plan: AdvicePlan, log: Interactions) -> dict[str, Any]:
    """What a folder is told by. More worlds, replicates, scenarios and candidates are welcome later."""
    study = plain(plan.study)
    for name in ("left", "impressions"):  # cells that depend on these are told by them
        del study[name]
    given = plan.study.world
    study["world"] = digest(Path(given)) if given not in (None, "builtin") else given
    return {"question": "advise", "format": FORMAT, "cells": study | {"log": log.fingerprint()}}


def _refuse(plan: AdvicePlan, shown: Interactions) -> None:
    """Before any work is done: what the log cannot give."""
    study = plan.study
    refuse_no_world(study)
    refuse_no_impressions(shown, study.impressions, study.left)
    refuse_lacking(plan.insisted, shown, recorded=study.left > 0)
    taken = shown.interacted()
    refuse_without_relevance(taken, study)
    if study.world is None:
        refuse_few_items(len(taken.items), "what the users that are drawn took")


def _probed(
    plan: AdvicePlan, store: Store, engine: Engine, watch: Watcher, say: Callable[[str], None]
) -> dict[str, Any]:
    """Which propensities can be had."""
    probe = plan.probe(store.folder)
    if store.result(probe.key) is None:
        refuse_few_items(len(probe.drawn().items), "a log that was drawn from the world")
        say("Finding out which propensities can be had, by fitting each of them to your log and to a drawn one.")
    return run_cells([probe], store, engine, watch, what="looks at propensities")[probe.key]


def _worlds(plan: AdvicePlan, store: Store, engine: Engine, watch: Watcher) -> list[dict[str, Any]]:
    jobs = plan.world_jobs(store.folder)
    for job in jobs:
        first = job.draw * plan.study.groups
        if not (place(store.folder, first) / "world.json").is_file():
            store.remove(job.key)  # its folder was removed
    return list(run_cells(jobs, store, engine, watch, what="worlds").values())


def _refused(probed: Mapping[str, Any]) -> dict[str, str]:
    """Why a family of propensities was not tried: the real log's reason first."""
    reasons = {**probed["drawn"], **{name: why for name, why in probed["real"].items() if why}}
    return {family(name): why for name, why in reasons.items() if why}


def _unrated(plan: AdvicePlan, log: Interactions) -> dict[str, str]:
    return {} if has_ratings(log) else dict.fromkeys(plan.by_ratings, "not every event of the log has a rating")


def _announced(plan: AdvicePlan, cells: int, cost: float, left: int, workers: int) -> str:
    draws = len(plan.scenarios) * plan.worlds * plan.replicates
    if not left:
        return f"{cells} trainings are done: nothing is left to do."
    return (
        f"{cells} trainings on {draws} drawn logs, {left} left: about {spell(cost / workers)} on "
        f"{workers} {'process' if workers == 1 else 'processes'}, by a rough estimate that the bar corrects."
    )


def _nothing(said: str) -> None:
    pass
