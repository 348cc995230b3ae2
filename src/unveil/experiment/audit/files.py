"""The audit as files: a page for people, the same figures as JSON beside it, and the plots in a folder."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unveil.audit.run import Audit
from unveil.data.interactions import Interactions
from unveil.data.sources.database import shown
from unveil.experiment.audit.page import audit_page
from unveil.report.page import write_page
from unveil.report.svg import refuse_unfit_page
from unveil.runs.folder import versions, write_json


def refuse_unfit(page: Path, *, overwrite: bool) -> None:
    """Before any work is done: an HTML file is to be written, and nothing is to be buried."""
    refuse_unfit_page(page, [beside(page)], what="the audit", overwrite=overwrite)


def beside(page: Path) -> Path:
    """audit.json beside audit.html."""
    return page.with_suffix(".json")


def write(
    found: Audit, log: Interactions, titles: Sequence[str], source: str, page: Path, command: Sequence[str]
) -> None:
    """Both files and the plots, each whole or not at all; the page last. Passwords of database URLs are left out."""
    told = shlex.join(map(shown, command))
    write_json(beside(page), results(found, log, told))
    write_page(audit_page(found, titles, Path(shown(source)).name, told), page)


def results(found: Audit, log: Interactions, command: str) -> dict[str, Any]:
    """Every figure under the names of `Audit`, movers by their own ids, and what it was made with."""
    figures = asdict(found)
    for name in ("histories", "calendar"):
        for mover in (figures[name] or {}).get("movers", ()):
            mover["item"] = log.items[mover["item"]]
    return {"audit": 1, "command": command, "versions": versions(), "fingerprint": log.fingerprint(), **figures}
