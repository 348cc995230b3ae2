"""Figures that others have published for the same data, network and protocol, to hold a run against.

Full ranking, leave-one-out. A data set is told by its users, items and interactions: one name stands for several.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from unveil.experiment.rq4.published import PUBLISHED

if TYPE_CHECKING:
    from unveil.experiment.run import Run

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
