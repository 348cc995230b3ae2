"""An answer to RQ4 as files: results.json and results.csv for programs, a page and a reading for people."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unveil.data.describe import describe
from unveil.experiment.reproduce.files import as_csv
from unveil.experiment.reproduce.reading import markdown
from unveil.experiment.rq4.control import CONTROL
from unveil.experiment.rq4.flips import box, told
from unveil.experiment.rq4.made import made_in_words
from unveil.experiment.rq4.page import TITLE, page
from unveil.experiment.rq4.proxies import proxies
from unveil.experiment.rq4.results import AS_IT_IS
from unveil.experiment.rq4.run import RealAnswer
from unveil.experiment.rq4.tables import beside, rows, sheets
from unveil.experiment.rq4.words import in_words
from unveil.files import versions, write_json, write_whole
from unveil.report.page import write_page
from unveil.settings import plain


def write(answer: RealAnswer, folder: Path, command: Sequence[str]) -> None:
    """Every file of the question. The same cells give the same bytes, but for about.json."""
    typed = shlex.join(command)
    found = results(answer, typed)
    write_whole(folder / "results.csv", as_csv(found["rows"]))
    shown = page(answer, typed)
    write_page(shown, folder / "index.html")
    write_whole(
        folder / "README.md", markdown(f"RQ4: {TITLE}", in_words(answer), sheets(answer), typed, made_in_words(answer))
    )
    write_json(folder / "about.json", _about(answer, typed))
    write_json(folder / "results.json", found)


def results(answer: RealAnswer, command: str) -> dict[str, Any]:
    """All that was found. Nothing in it depends on the clock."""
    plan, cells = answer.plan, answer.results
    over = "Student's t over replicates" if cells.units == "replicates" else "percentile bootstrap over users"
    return {
        "question": "rq4",
        "title": TITLE,
        "command": command,
        "preset": plan.study.preset,
        "replicates": plan.replicates,
        "worlds": 0,
        "estimators": list(plan.estimators),
        "data": {"name": answer.data, "fingerprint": answer.log.fingerprint()},
        "study": {name: value for name, value in plain(plan.study).items() if name != "log"},
        "units": cells.units,
        "interval": f"95%, {over}",
        "proxy": " ".join(proxies(plan)),
        "headline": {"evaluation": "standard", "protocol": cells.sampled, "metric": "NDCG", "k": 10},
        "verdict": [each.told() for each in beside(answer)],
        "flips": told(cells),
        "box": box(cells),
        "control": [
            {name: cell[name] for name in ("strength", "strengths", "along")} for cell in cells.every(AS_IT_IS, CONTROL)
        ],
        "weights": {arm: [cell["weights"] for cell in cells.every(AS_IT_IS, arm)] for arm in plan.estimators},
        "rows": rows(answer),
    }


def _about(answer: RealAnswer, command: str) -> dict[str, Any]:
    return {
        "command": command,
        "versions": versions(),
        "data": asdict(describe(answer.log)),
        "seconds": round(answer.seconds, 1),
        "cells_made": answer.made,
        "worker_seconds": round(answer.worker_seconds, 1),
    }
