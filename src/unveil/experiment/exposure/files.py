"""A learnt exposure as a folder: the model, what it is worth, and a page."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unveil.data.interactions import Interactions
from unveil.experiment.exposure.page import page
from unveil.files import atomic_folder
from unveil.propensity import time_of_day
from unveil.propensity.calibration import table
from unveil.propensity.time_of_day_fit import ExposureFit, Fitted
from unveil.report.page import write_page
from unveil.runs.folder import versions
from unveil.settings import plain


def write(
    fitted: Fitted,
    log: Interactions,
    how: ExposureFit,
    folder: Path,
    command: Sequence[str],
    *,
    overwrite: bool = False,
) -> dict[str, Any]:
    """The folder, whole or not at all; what it says of itself is given back."""
    told = shlex.join(command)
    about = {
        "command": told,
        "versions": versions(),
        "log": {"fingerprint": log.fingerprint(), "users": len(log.users), "items": len(log.items)},
        "fit": plain(how),
        "days": fitted.days,
        "impressions": fitted.impressions,
        "strangers": fitted.strangers,
        "quality": table(fitted.quality),
        "curves": {name: asdict(each.calibration) for name, each in fitted.quality.items()},
        "epochs": fitted.epochs,
    }
    with atomic_folder(folder, overwrite=overwrite) as draft:
        time_of_day.write(fitted.model, draft, about)
        about = time_of_day.about(draft)
        write_page(page(about, told), draft / "index.html")
    return about
