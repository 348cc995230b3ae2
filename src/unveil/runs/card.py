"""The figures of an audit that a run keeps: what is counted at once. `unveil audit` has the rest."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unveil.audit.checks import cold, leakage
from unveil.audit.concentration import concentration
from unveil.audit.costs import costs
from unveil.data.readers.database import shown
from unveil.data.splits import Split
from unveil.evaluation.result import RULES, Evaluation, label
from unveil.experiment.rq4.published import PUBLISHED
from unveil.propensity.weights import WeightDiagnostics
from unveil.report.page import Cell, Column, count, percent
from unveil.runs.config import Experiment
from unveil.settings import plain
from unveil.training.trainer import Fitted
from unveil.wording import quantity

if TYPE_CHECKING:
    from unveil.runs.train import Run


#: Events beyond which only counts are made: the other figures hold every event in memory.
MOST = 5_000_000


def audited(split: Split, window: int) -> dict[str, Any]:
    """Concentration, cold cases, training events later than the case, and what weights by popularity would leave.

    `window` is the number of events of each user that the model is trained on.
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


#: Recall@10 and NDCG@10, and who published them.
Published = tuple[float, float, str]

_RECTOOLS = "RecTools"
FULL_RANKING: Mapping[tuple[str, str], tuple[Published, ...]] = {
    ("ml-1m", "bert4rec"): (
        (0.2921, 0.1618, _RECTOOLS),
        (0.2821, 0.1516, "A. Petrov and C. Macdonald 2022, Hugging Face version"),
    ),
    ("ml-1m", "sasrec"): ((0.3058, 0.1779, f"{_RECTOOLS}, softmax loss"),),
    ("beauty", "bert4rec"): ((0.0434, 0.0242, _RECTOOLS),),
    ("beauty", "sasrec"): ((0.0595, 0.0359, _RECTOOLS),),
}


def beside_published(run: "Run") -> str | None:
    """One line with what others published and what this run gave; None where nothing can be held beside it."""
    data, network = _recognised(run), getattr(run.recommender.model, "name", "")
    found = FULL_RANKING.get((data or "", network))
    judged = run.experiment
    if not found or judged.data.split != "leave-one-out" or not judged.evaluation.exclude_seen:
        return None
    own = " / ".join(f"{run.evaluation.value('full', metric, 10):.4f}" for metric in ("Recall", "NDCG"))
    told = "; ".join(f"{recall:.4f} / {ndcg:.4f} ({source})" for recall, ndcg, source in found)
    return (
        f"published  {network} on {data}, full ranking, leave-one-out, Recall@10 / NDCG@10: {told}; this run, "
        f"{judged.estimator['name']}: {own}"
    )


def _recognised(run: "Run") -> str | None:
    made = run.recommender
    size = (len(made.users), len(made.items), len(made.sequences))
    return next((name for name, each in PUBLISHED.items() if each.size == size), None)


WEIGHT_COLUMNS = (
    Column("events", True),
    Column("worth", True, "(Σw)² / Σw²"),
    Column("of events", True),
    Column("largest share", True, "max w / Σw"),
    Column("spread", True, "max w / min w"),
    Column("clipped", True, "of events"),
)


def weight_cells(found: WeightDiagnostics) -> list[Cell]:
    """A cell for each of the columns."""
    return [
        count(found.slots),
        count(found.effective_sample_size),
        percent(found.ess_share),
        percent(found.largest_share, 2),
        count(found.spread),
        percent(found.clipped),
    ]


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
