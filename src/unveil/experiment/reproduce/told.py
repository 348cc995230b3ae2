"""What a cell tells: ranks, lists, training and how far it has come, as JSON can hold them."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from unveil.evaluation.result import Evaluation
from unveil.runs.workers import OnProgress
from unveil.training.checkpoint import Best, Epoch
from unveil.training.progress import Plan
from unveil.training.trainer import Fitted


def ranks(evaluation: Evaluation) -> dict[str, list[int]]:
    """The rank of every target under every protocol: all metrics follow from it."""
    return {
        name.removesuffix(":rank"): column.to_list()
        for name, column in evaluation.frame.to_dict(as_series=True).items()
        if name.endswith(":rank")
    }


def lists(evaluation: Evaluation, protocols: Sequence[str] = ("truth", "lists")) -> dict[str, float]:
    """Of the recommended lists: what the world, where there is one, and the training counts say, on average."""
    summary = evaluation.summary.iter_rows(named=True)
    means = {f"{row['protocol']}:{row['metric']}@{row['k']}": row["mean"] for row in summary}
    return {name: mean for name, mean in means.items() if name.partition(":")[0] in protocols}


def training(fitted: Fitted) -> dict[str, Any]:
    """Losses, validations and the best epoch."""
    validated = [epoch for epoch in fitted.epochs if epoch.validation is not None]
    return {
        "epochs": len(fitted.epochs),
        "best": None if fitted.best is None else asdict(fitted.best),
        "validation": [[epoch.epoch, *(epoch.validation or {}).values()] for epoch in validated],
        "loss": [epoch.loss for epoch in fitted.epochs],
    }


class Share:
    """Turns what a training tells into the share of it that is done."""

    def __init__(self, tell: OnProgress) -> None:
        self.tell, self.epochs = tell, 1

    def start(self, plan: Plan) -> None:
        """How many epochs there will be."""
        self.epochs = plan.epochs
        self.tell(plan.done / plan.epochs)

    def batch(self, loss: float) -> None:
        """Nothing: epochs are told."""

    def epoch(self, epoch: Epoch, best: Best | None) -> None:
        """One more."""
        self.tell(epoch.epoch / self.epochs)

    def stop(self) -> None:
        """Nothing to tidy up."""
