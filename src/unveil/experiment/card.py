"""The model card of a run: what it is, what it learnt from, how good it is, what it is not for."""

from collections.abc import Mapping
from typing import Any

from unveil.data.sources.database import shown
from unveil.evaluation.result import RULES, Evaluation, label
from unveil.experiment.config import Experiment
from unveil.settings import plain
from unveil.training.trainer import Fitted
from unveil.wording import quantity

_CARD = """# {estimator} on {source}

A sequential recommender made with unveil: `{network}` trained with the `{estimator}` estimator.

## Data

{users}, {items}, {interactions}; Gini of popularity {gini:.3f}.
Split: {split}. Fingerprint of the log: `{fingerprint}`.

## Training

{epochs}{best}; {parameters:,} parameters.{weights} Every setting is in `config.json`.

## Results on the test cases

{table}

{rules}

## Use and limits

Load it with `Recommender.load(folder)` or `unveil recommend folder`. Loading runs no code from the folder.
It knows the users and items of its log only. The log shows what users took, not all they would have liked.
{limits}"""

_PROXY = "Popularity stands in for exposure: every gain is one under that proxy.\n"


def model_card(experiment: Experiment, about: Mapping[str, Any], evaluation: Evaluation, fitted: Fitted) -> str:
    """Markdown for the README of a run folder."""
    log, name, best = about["log"], experiment.estimator["name"], fitted.best
    monitor = experiment.training.monitor
    return _CARD.format(
        estimator=name,
        network=plain(experiment.model)["name"],
        source=shown(experiment.data.log),
        users=quantity(log["users"], "user"),
        items=quantity(log["items"], "item"),
        interactions=quantity(log["interactions"], "interaction"),
        gini=log["skew"]["gini"],
        split=about["split"],
        fingerprint=log["fingerprint"][:16],
        epochs=quantity(len(fitted.epochs), "epoch"),
        best="" if best is None else f", best at {best.epoch} (validation {monitor} {best.value:.4f})",
        parameters=about["parameters"],
        weights=_weights(about),
        table="\n".join(_table(evaluation)),
        rules="\n".join(f"- {what}: {rule}" for what, rule in RULES.items()),
        limits=_PROXY if about["by_proxy"] else "",
    )


def _weights(about: Mapping[str, Any]) -> str:
    weights = about["weights"]
    if weights is None:
        return ""
    share = weights["effective_sample_size"] / weights["slots"]
    slots = quantity(weights["slots"], "slot")
    return f" Weighted by `{about['propensity']}`: {slots} worth {share:.1%} of their number."


def _table(evaluation: Evaluation) -> list[str]:
    rows = [_row(row) for row in evaluation.summary.iter_rows(named=True)]
    return ["| protocol | metric | mean | 95% interval | users |", "|---|---|---|---|---|", *rows]


def _row(row: Mapping[str, Any]) -> str:
    name = label(row["metric"], row["k"])
    return f"| {row['protocol']} | {name} | {row['mean']:.4f} | {_interval(row)} | {row['n']:,} |"


def _interval(row: Mapping[str, Any]) -> str:
    return "–" if row["low"] is None else f"{row['low']:.4f} to {row['high']:.4f}"
