"""The model card of a run: what it is, what it learnt from, how good it is, what it is for and what it is not for."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unveil.data.sources.database import shown
from unveil.evaluation.result import RULES, Evaluation, label
from unveil.experiment.config import Experiment
from unveil.settings import plain
from unveil.training.trainer import Fitted
from unveil.wording import quantity

_CARD = """# {estimator} on {source}

A sequential recommender made with unveil {version}: `{network}` trained with the `{estimator}` estimator.

## Data

{users}, {items}, {interactions}{when}. Columns: {columns}.
Split: {split}. {cases}
Fingerprint of the log: `{fingerprint}`.

## What the log says about its exposure

{audit}

## Training

{epochs}{best}; {parameters:,} parameters, seed {seed}. Every setting is in `config.json`.
{weights}

## Results on the test cases

{table}

{rules}

## Intended use

Ranking the items of this log for its users, or for anybody of whom a few items of it are known: `unveil recommend`,
`unveil serve`, `Recommender.load(folder)`. Comparing estimators on the same cases: `unveil report`.

## Limits

- It knows the items of its log only. An item that came later cannot be recommended; somebody of whom nothing is known
  gets what is popular, if that is asked for.
- The log shows what users took, not all they would have liked, and the test cases are of the same log: they cannot
  show how far exposure was corrected for.
- Scores rank. As probabilities they are no better than `unveil report` finds them.
{limits}- Who is served worse than others was not looked into beyond the popularity of items and the length of histories
  (`unveil report`). It is not meant for decisions about people.

Loading runs no code from the folder.
"""

_PROXY = "- Popularity stands in for exposure: every gain is one under that proxy, which holds relevance too.\n"
_UNWEIGHTED = "Not weighted by a propensity: what was shown more counts for more."
_PARTS = {"train": "event", "valid": "validation case", "test": "test case"}
#: Columns of a log that tell of exposure.
_TELLING = ("clicked", "propensity", "randomised", "position", "exposed")


def model_card(experiment: Experiment, about: Mapping[str, Any], evaluation: Evaluation, fitted: Fitted) -> str:
    """Markdown for the README of a run folder."""
    log, name, best = about["log"], experiment.estimator["name"], fitted.best
    monitor = experiment.training.monitor
    return _CARD.format(
        version=about["versions"]["unveil"],
        estimator=name,
        network=plain(experiment.model)["name"],
        source=Path(shown(experiment.data.log)).name,
        users=quantity(log["users"], "user"),
        items=quantity(log["items"], "item"),
        interactions=quantity(log["interactions"], "interaction"),
        when="" if log["start"] is None else f", {log['start'][:10]} to {log['end'][:10]}",
        columns=", ".join(log["columns"]),
        split=about["split"],
        cases=_cases(about["cases"]),
        fingerprint=log["fingerprint"][:16],
        audit="\n".join(f"- {line}" for line in _audit(about)),
        epochs=quantity(len(fitted.epochs), "epoch"),
        best="" if best is None else f", best at {best.epoch} (validation {monitor} {best.value:.4f})",
        parameters=about["parameters"],
        seed=experiment.training.seed,
        weights=_weights(about),
        table="\n".join(_table(evaluation)),
        rules="\n".join(f"- {what}: {rule}" for what, rule in RULES.items()),
        limits=_PROXY if about["by_proxy"] else "",
    )


def _cases(sizes: Mapping[str, int]) -> str:
    train, valid, test = (quantity(sizes[part], noun) for part, noun in _PARTS.items())
    return f"{train} to learn from, {valid} and {test}."


def _audit(about: Mapping[str, Any]) -> list[str]:
    """What was counted of the log, each figure with what it is of."""
    found, told = about["audit"], []
    head = found["head"]
    told.append(
        f"The most popular 1% of the items hold {head['1%']:.1%} of the events, the most popular tenth "
        f"{head['10%']:.1%}; Gini coefficient {found['gini']:.3f}."
    )
    if (cold := found["cold"]) is not None:
        told.append(
            f"Of the test cases {cold['items']:.1%} ask for an item that training never saw, {cold['rare']:.1%} for "
            f"one that it saw fewer than five times."
        )
    if (later := found["leakage"]) is not None:
        told.append(f"On average {later['later']:.1%} of the training events are later than the test case.")
    if (left := found["ess_share"]) is not None:
        told.append(
            f"Weights by popularity alone would leave {left['ips']:.1%} of the training events with IPS and "
            f"{left['itps']:.1%} with ITPS (effective sample size, no clip)."
        )
    telling = [name for name in _TELLING if name in about["log"]["columns"]]
    told.append(f"What tells of exposure in the log: {', '.join(telling) or 'nothing but popularity'}.")
    return [*told, "`unveil audit` tests and explains these figures, and has more of them."]


def _weights(about: Mapping[str, Any]) -> str:
    weights = about["weights"]
    if weights is None:
        return _UNWEIGHTED
    share = weights["effective_sample_size"] / weights["slots"]
    slots = quantity(weights["slots"], "slot")
    return (
        f"Weighted by `{about['propensity']}`: {slots} worth {share:.1%} of their number (effective sample size); the "
        f"largest weight is {weights['largest_share']:.2%} of all, {weights['clipped']:.1%} are clipped."
    )


def _table(evaluation: Evaluation) -> list[str]:
    rows = [_row(row) for row in evaluation.summary.iter_rows(named=True)]
    return ["| protocol | metric | mean | 95% interval | users |", "|---|---|---|---|---|", *rows]


def _row(row: Mapping[str, Any]) -> str:
    name = label(row["metric"], row["k"])
    return f"| {row['protocol']} | {name} | {row['mean']:.4f} | {_interval(row)} | {row['n']:,} |"


def _interval(row: Mapping[str, Any]) -> str:
    return "–" if row["low"] is None else f"{row['low']:.4f} to {row['high']:.4f}"
