"""The study as files: results.json and results.csv for programs, a page, a figure and a reading for people."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

from unveil.experiment.assumptions.axes import Axis, Level
from unveil.experiment.assumptions.page import page, sheets
from unveil.experiment.assumptions.run import NAME, Tested
from unveil.experiment.assumptions.standing import Standing, lines, standings
from unveil.experiment.assumptions.words import TITLE, reading, remarks
from unveil.experiment.folder import versions, write_json
from unveil.experiment.outcome import TRUE
from unveil.experiment.progress import spell
from unveil.experiment.report import write_page
from unveil.experiment.reproduce.files import as_csv
from unveil.experiment.reproduce.reading import markdown
from unveil.experiment.reproduce.rows import rows
from unveil.experiment.reproduce.words import headline
from unveil.files import write_whole
from unveil.settings import plain


def write(tested: Tested, folder: Path, command: Sequence[str]) -> None:
    """Every file. The same cells give the same bytes, but for about.json and the time in README.md."""
    typed = shlex.join(command)
    told = results(tested, typed)
    write_whole(folder / "results.csv", as_csv(told["rows"]))
    write_page(page(tested, typed), folder / "index.html")
    paragraphs = [*reading(tested), remarks(tested)]
    write_whole(folder / "README.md", markdown(TITLE, paragraphs, sheets(tested), typed, _made(tested)))
    write_json(folder / "about.json", _about(tested, typed))
    write_json(folder / "results.json", told)


def results(tested: Tested, command: str) -> dict[str, Any]:
    """All that was found. Nothing in it depends on the clock."""
    plan, base = tested.plan, tested.at(tested.plan.base)
    return {
        "question": NAME,
        "title": TITLE,
        "command": command,
        "preset": plan.study.preset,
        "replicates": plan.replicates,
        "worlds": plan.worlds,
        "estimators": list(plan.estimators),
        "data": {"name": plan.study.data, "fingerprint": tested.source.fingerprint},
        "study": plain(plan.study),
        "units": base.units,
        "interval": "95%, Student's t over the units",
        "headline": {"evaluation": TRUE, "protocol": base.sampled, "metric": "NDCG", "k": 10},
        "base": asdict(plan.base),
        "axes": [_axis(tested, axis) for axis in plan.axes],
        "verdicts": {
            axis.name: {line.estimator: line.verdict for line in lines(tested) if line.axis is axis}
            for axis in plan.axes
        },
        "world": [world["description"] for world in tested.worlds],
        "rows": [row for axis in plan.axes for level in axis.levels for row in _rows(tested, axis, level)],
    }


def _axis(tested: Tested, axis: Axis) -> dict[str, Any]:
    levels = [
        {
            "level": level.label.replace("\n", " "),
            **asdict(level.point),
            "standings": [_standing(each) for each in standings(tested, level).values()],
        }
        for level in axis.levels
    ]
    return {"name": axis.name, "title": axis.title, "assumption": axis.breaks, "levels": levels}


def _standing(each: Standing) -> dict[str, Any]:
    test = {name: value if isfinite(value) else None for name, value in vars(each.test).items()}
    gap = None if each.gap is None else asdict(each.gap)
    return {"estimator": each.estimator, "gap_closed": gap, "against_naive": test}


def _rows(tested: Tested, axis: Axis, level: Level) -> list[dict[str, Any]]:
    """The rows of the other questions, on true relevance at ten places, with where they stand."""
    where = {"axis": axis.name, "level": level.label.replace("\n", " "), **asdict(level.point)}
    found = rows(tested.at(level.point), tested.plan.study.preset)
    return [{**where, **row} for row in found if row["evaluation"] == TRUE and row["k"] == headline_places(tested)]


def headline_places(tested: Tested) -> int:
    """The length of list that conclusions are drawn from."""
    return headline(tested.at(tested.plan.base)).k


def _about(tested: Tested, command: str) -> dict[str, Any]:
    return {
        "command": command,
        "versions": versions(),
        "data": {"name": tested.plan.study.data, "about": tested.source.about},
        "seconds": round(tested.seconds, 1),
        "cells_made": tested.made,
        "cells": len(tested.cells),
        "worker_seconds": round(tested.worker_seconds, 1),
    }


def _made(tested: Tested) -> str:
    study = tested.plan.study
    last = f"; the last run took {spell(tested.seconds)} and made {tested.made} of them" if tested.made else ""
    return (
        f"Preset `{study.preset}`: {study.training.about}. Data: {tested.source.about}, fingerprint "
        f"`{tested.source.fingerprint[:16]}`. {len(tested.cells)} cells, {spell(tested.worker_seconds)} of one core in "
        f"all{last}. `results.json` and `results.csv` hold every figure, `index.html` shows them, `figures` has the "
        f"plot by itself, `about.json` names the versions."
    )
