"""The model card of a run, and the figures of its log that it keeps; `unveil audit` has the rest."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from unveil.audit.checks import cold, concentration, leakage
from unveil.audit.costs import costs
from unveil.data.readers.database import shown
from unveil.data.splits import Split
from unveil.evaluation.result import RULES, label
from unveil.report.prose import Prose
from unveil.runs.run_folder import Run
from unveil.settings import plain

#: With more interactions only counts are made: the other figures hold every interaction in memory.
MOST = 5_000_000


def audited(split: Split, window: int) -> dict[str, Any]:
    """Concentration, cold cases, leakage, and the effective sample size of weights by popularity.

    `window` is the number of interactions of each user that the model is trained on.
    """
    head = concentration(split.whole.count_V)
    test = cold(split.whole, {"test": split}).splits.get("test")
    small = len(split.whole) <= MOST
    later = leakage(split) if small else None
    spent = costs(split.train, window) if small and len(split.train) else None
    return {
        "gini": head.gini,
        "head": head.head,
        "cold": None if test is None else asdict(test),
        "leakage": None if later is None else asdict(later),
        "ess_share": None if spent is None else {name: spent.of(name).ess_share for name in ("ips", "itps")},
    }


#: Columns of a log about exposure.
_EXPOSURE = ("clicked", "propensity", "randomised", "position", "exposed")


def model_card(run: Run) -> str:
    """Markdown for the README of a run folder."""
    experiment, about, weights = run.experiment, run.about, run.about["weights"]
    facts = {
        "about": about,
        "log": about["log"],
        "audit": about["audit"],
        "estimator": experiment.estimator["name"],
        "network": plain(experiment.model)["name"],
        "source": Path(shown(experiment.data.log)).name,
        "telling": [name for name in _EXPOSURE if name in about["log"]["columns"]],
        "fitted": run.fitted,
        "monitor": experiment.training.monitor,
        "seed": experiment.training.seed,
        "ess_share": weights and weights["effective_sample_size"] / weights["slots"],
        "rows": run.evaluation.summary.rows(named=True),
        "rules": RULES,
        "label": label,
    }
    return Prose(["card.md.j2"], facts).text("card")
