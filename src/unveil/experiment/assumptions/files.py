"""The study as files: results.json and results.csv for programs, a page, a figure and a reading for people."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

from unveil.experiment.assumptions.axes import Axis, Level
from unveil.experiment.assumptions.page import page, sheets
from unveil.experiment.assumptions.run import NAME, Survey
from unveil.experiment.assumptions.standing import Standing, lines, standings
from unveil.experiment.assumptions.words import TITLE, reading, remarks
from unveil.experiment.outcome import TRUE
from unveil.experiment.reproduce.files import as_csv
from unveil.experiment.reproduce.reading import markdown
from unveil.experiment.reproduce.rows import rows
from unveil.experiment.reproduce.words import headline
from unveil.files import versions, write_json, write_whole
from unveil.report.page import write_page
from unveil.runs.progress import spell
from unveil.settings import plain


def write(survey: Survey, folder: Path, command: Sequence[str]) -> None:
    """Every file. The same cells give the same bytes, but for about.json and the time in README.md."""
    typed = shlex.join(command)
    told = results(survey, typed)
    write_whole(folder / "results.csv", as_csv(told["rows"]))
    write_page(page(survey, typed), folder / "index.html")
    paragraphs = [*reading(survey), remarks(survey)]
    write_whole(folder / "README.md", markdown(TITLE, paragraphs, sheets(survey), typed, _made(survey)))
    write_json(folder / "about.json", _about(survey, typed))
    write_json(folder / "results.json", told)


def results(survey: Survey, command: str) -> dict[str, Any]:
    """All that was found. Nothing in it depends on the clock."""
    plan, base = survey.plan, survey.at(survey.plan.base)
    return {
        "question": NAME,
        "title": TITLE,
        "command": command,
        "preset": plan.study.preset,
        "replicates": plan.replicates,
        "worlds": plan.worlds,
        "estimators": list(plan.estimators),
        "data": {"name": plan.study.data, "fingerprint": survey.source.fingerprint},
        "study": plain(plan.study),
        "units": base.units,
        "interval": "95%, Student's t over the units",
        "headline": {"evaluation": TRUE, "protocol": base.sampled, "metric": "NDCG", "k": 10},
        "base": asdict(plan.base),
        "axes": [_axis(survey, axis) for axis in plan.axes],
        "verdicts": {
            axis.name: {line.estimator: line.verdict for line in lines(survey) if line.axis is axis}
            for axis in plan.axes
        },
        "world": [world["description"] for world in survey.worlds],
        "rows": [row for axis in plan.axes for level in axis.levels for row in _rows(survey, axis, level)],
    }


def _axis(survey: Survey, axis: Axis) -> dict[str, Any]:
    levels = [
        {
            "level": level.label.replace("\n", " "),
            **asdict(level.point),
            "standings": [_standing(each) for each in standings(survey, level).values()],
        }
        for level in axis.levels
    ]
    return {"name": axis.name, "title": axis.title, "assumption": axis.breaks, "levels": levels}


def _standing(each: Standing) -> dict[str, Any]:
    test = {name: value if isfinite(value) else None for name, value in vars(each.test).items()}
    gap = None if each.gap is None else asdict(each.gap)
    return {"estimator": each.estimator, "gap_closed": gap, "against_naive": test}


def _rows(survey: Survey, axis: Axis, level: Level) -> list[dict[str, Any]]:
    """The rows of the other questions, on true relevance at ten places, with where they stand."""
    where = {"axis": axis.name, "level": level.label.replace("\n", " "), **asdict(level.point)}
    found = rows(survey.at(level.point), survey.plan.study.preset)
    return [{**where, **row} for row in found if row["evaluation"] == TRUE and row["k"] == headline_places(survey)]


def headline_places(survey: Survey) -> int:
    """The length of list that conclusions are drawn from."""
    return headline(survey.at(survey.plan.base)).k


def _about(survey: Survey, command: str) -> dict[str, Any]:
    return {
        "command": command,
        "versions": versions(),
        "data": {"name": survey.plan.study.data, "about": survey.source.about},
        "seconds": round(survey.seconds, 1),
        "cells_made": survey.made,
        "cells": len(survey.cells),
        "worker_seconds": round(survey.worker_seconds, 1),
    }


def _made(survey: Survey) -> str:
    study = survey.plan.study
    last = f"; the last run took {spell(survey.seconds)} and made {survey.made} of them" if survey.made else ""
    return (
        f"Preset `{study.preset}`: {study.about}. Data: {survey.source.about}, fingerprint "
        f"`{survey.source.fingerprint[:16]}`. {len(survey.cells)} cells, {spell(survey.worker_seconds)} of one core in "
        f"all{last}. `results.json` and `results.csv` hold every figure, `index.html` shows them, `figures` has the "
        f"plot by itself, `about.json` names the versions."
    )
