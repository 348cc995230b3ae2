"""An answer as files: results.json and results.csv for programs, a page and a reading for people."""

import csv
import io
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unveil.experiment.outcome import TRUE
from unveil.experiment.reproduce.page import page
from unveil.experiment.reproduce.reading import reading
from unveil.experiment.reproduce.results import Figure
from unveil.experiment.reproduce.rows import rows
from unveil.experiment.reproduce.run import Answer
from unveil.files import versions, write_json, write_whole
from unveil.report.page import write_page
from unveil.settings import plain


def write(answer: Answer, folder: Path, command: Sequence[str]) -> None:
    """Every file of a question. The same cells give the same bytes, but for about.json and the time in README.md."""
    told = results(answer, command)
    write_whole(folder / "results.csv", as_csv(told["rows"]))
    shown = page(answer, shlex.join(command))
    write_page(shown, folder / "index.html")
    write_whole(folder / "README.md", reading(answer, shlex.join(command)))
    write_json(folder / "about.json", about(answer, command))
    write_json(folder / "results.json", told)


def results(answer: Answer, command: Sequence[str]) -> dict[str, Any]:
    """All that was found. Nothing in it depends on the clock."""
    plan, found = answer.plan, answer.results
    headline = Figure(TRUE, found.sampled, "NDCG", 10)
    gaps = {arm: found.gap_closed(arm, headline) for arm in found.trained}
    return {
        "question": answer.question.name,
        "title": answer.question.title,
        "command": shlex.join(command),
        "preset": plan.study.preset,
        "severities": list(plan.severities),
        "replicates": plan.replicates,
        "worlds": plan.worlds,
        "estimators": list(plan.estimators),
        "data": data(answer),
        "study": plain(plan.study),
        "units": found.units,
        "interval": "95%, Student's t over the units",
        "headline": {"evaluation": TRUE, "protocol": found.sampled, "metric": "NDCG", "k": 10},
        "gap_closed": {arm: gap and gap.mean for arm, gap in gaps.items()},
        "gap_closed_interval": {arm: gap and [gap.low, gap.high] for arm, gap in gaps.items()},
        **answer.question.findings(answer),
        "world": [world["description"] for world in answer.worlds],
        "rows": rows(found, plan.study.preset),
    }


def about(answer: Answer, command: Sequence[str]) -> dict[str, Any]:
    """When and with what it was made."""
    return {
        "command": shlex.join(command),
        "versions": versions(),
        "data": {
            "name": answer.plan.study.data,
            "fingerprint": answer.source.fingerprint,
            "about": answer.source.about,
        },
        "seconds": round(answer.seconds, 1),
        "cells_made": answer.made,
        "cells": len(answer.results.cells),
        "worker_seconds": round(answer.worker_seconds, 1),
    }


def data(answer: Answer) -> dict[str, str]:
    """What the worlds were made from."""
    return {"name": answer.plan.study.data, "fingerprint": answer.source.fingerprint}


def as_csv(table: Sequence[dict[str, Any]]) -> str:
    """Rows under the names of their fields."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(table[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue()
