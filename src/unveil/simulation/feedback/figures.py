"""What is recommended and chosen in a round. U users, B users of a batch, K places, V items, N events."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple, Self

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from scipy import sparse

from unveil.data.indexing import Index
from unveil.data.interactions import Sequences
from unveil.data.slots import histories
from unveil.evaluation.metrics import ARP, EFD, NOBODY, Coverage, Gini, ListMetric
from unveil.evaluation.protocols import seen_cells
from unveil.evaluation.ranking import Scorer, checked_scores, evaluating, top_items
from unveil.simulation.world import World

#: Users, and scores or relevances, held at once: 16 or 32 MiB.
ROWS, CELLS = 256, 2**22

Floats = NDArray[np.float32]
Record = dict[str, float | None]


class FigureKind(NamedTuple):
    """What a figure is called, `{k}` standing for the places of a list; its explanation is in the template."""

    title: str
    group: str
    digits: int = 3


_TREE = tomllib.loads(files(__package__).joinpath("figures.toml").read_text(encoding="utf-8"))
FIGURES: Mapping[str, FigureKind] = {name: FigureKind(**each) for name, each in _TREE.items()}


@dataclass(frozen=True, eq=False)
class Lists:
    """K places for every user, best first; `NOBODY`, with a score of 0, where a user has nothing unseen left."""

    top_UK: Index
    score_UK: Floats

    @property
    def filled_UK(self) -> NDArray[np.bool_]:
        return np.asarray(self.top_UK != NOBODY)


def recommended(scorer: Scorer, sequences: Sequences, length: int, k: int) -> Lists:
    """The k best items for every user that are not in the history; the scorer is shown `length` tokens, MASK too."""
    top_UK = np.full((sequences.n_users, k), NOBODY, np.int32)
    score_UK = np.zeros((sequences.n_users, k), np.float32)
    # Users with histories of similar length together: rows are as wide as the longest of a batch.
    order_U = np.argsort(np.minimum(sequences.length_U, length), kind="stable")
    size = max(1, min(ROWS, CELLS // sequences.n_items))
    with evaluating(scorer):
        for start in range(0, len(order_U), size):
            user_B = order_U[start : start + size]
            seen_B = sequences.length_U[user_B]
            scores_BV = checked_scores(scorer, histories(sequences, user_B, seen_B, length), sequences.n_items).cpu()
            row_N, item_N = (torch.from_numpy(part) for part in seen_cells(sequences, user_B, seen_B))
            top_BK = top_items(scores_BV, k, (row_N, item_N))
            top_UK[user_B] = top_BK.numpy()
            score_UK[user_B] = scores_BV.gather(1, top_BK.clamp_min(0)).masked_fill(top_BK == NOBODY, 0.0).numpy()
    return Lists(top_UK, score_UK)


def standing(world: World, item_UK: Index, sequences: Sequences) -> NDArray[np.float64]:
    """Σ_j [γ_j < γ_i] / (n − 1) over the n items j new to a user, at the next step: 1 the best, ½ chance, NaN none."""
    share_UK, size = np.empty(item_UK.shape), max(1, CELLS // sequences.n_items)
    for start in range(0, len(item_UK), size):
        item_BK = item_UK[start : start + size]
        user_B = np.arange(start, start + len(item_BK))
        gamma_BV = world.relevance_logits.logits(user_B, np.full(len(user_B), sequences.n_steps))
        own_BK = np.take_along_axis(gamma_BV, np.maximum(item_BK, 0), axis=1)
        gamma_BV[seen_cells(sequences, user_B, sequences.length_U[user_B])] = np.inf
        left_B1 = np.isfinite(gamma_BV).sum(1, keepdims=True)
        below_BK = np.stack([(gamma_BV < own_B[:, None]).sum(1) for own_B in own_BK.T], axis=1)
        share_UK[user_B] = np.where(left_B1 > 1, below_BK / np.maximum(left_B1 - 1, 1), 1.0)
    return np.where(item_UK == NOBODY, np.nan, share_UK)


@dataclass(frozen=True, eq=False)
class FirstLog:
    """What is kept of the log before any feedback: counts, and who interacted with what."""

    count_V: NDArray[Any]
    user_VU: Any  # sparse; row i is 1/√(users of i) for every user who chose i

    @classmethod
    def of(cls, base: Sequences) -> Self:
        pairs = (np.ones(len(base)), (base.item_N, base.user_N))
        chosen_VU = sparse.csr_matrix(pairs, shape=(base.n_items, base.n_users))
        chosen_VU.data[:] = 1.0
        length_V = np.sqrt(np.maximum(np.diff(chosen_VU.indptr), 1))
        return cls(base.count_V, sparse.diags(1 / length_V) @ chosen_VU)


def of_lists(lists: Lists, sequences: Sequences, first: FirstLog) -> Record:
    """What all lists together, and each alone, are like."""
    top_UK, count_V = lists.top_UK, sequences.count_V
    times_V = np.bincount(top_UK[lists.filled_UK], minlength=sequences.n_items)
    return {
        "efd": _by_user(EFD(), top_UK, count_V),
        "efd_first": _by_user(EFD(), top_UK, first.count_V),
        "arp": _by_user(ARP(), top_UK, count_V),
        "gini": Gini()(top_UK, sequences.n_items),
        "coverage": Coverage()(top_UK, sequences.n_items),
        "individual": individual(top_UK, first),
        "collective": effective_number(times_V),
        "overlap": overlap(times_V, *top_UK.shape),
        "short": float((~lists.filled_UK[:, -1]).mean()),
        "log_gini": Gini()(sequences.item_N, sequences.n_items),
        "events": float(len(sequences)),
    }


def of_chosen(chosen_U: Index, count_V: NDArray[Any]) -> Record:
    """What users chose of what was recommended; `count_V` is of the log before they did."""
    some_U1 = chosen_U[chosen_U != NOBODY][:, None]
    return {
        "taken": len(some_U1) / len(chosen_U),
        "taken_efd": _by_user(EFD(), some_U1, count_V) if len(some_U1) else None,
    }


def individual(top_UK: Index, first: FirstLog) -> float | None:
    """Mean over users of 1 − the mean cosine between two items of their list, by who chose the items in the first log.

    With unit rows x̂_i of users: Σ_{i≠j} cos_ij = ‖Σ_i x̂_i‖² − Σ_i ‖x̂_i‖². Lists of fewer than two items have none.
    """
    some_UK = top_UK[(top_UK != NOBODY).sum(1) > 1]
    some_UK = some_UK[:: max(1, -(-len(some_UK) // 10_000))]  # of more users some, evenly spread
    return float(np.concatenate(list(_unlike(some_UK, first))).mean()) if len(some_UK) else None


def _unlike(top_UK: Index, first: FirstLog) -> Iterator[NDArray[np.float64]]:
    norm_V = np.asarray(first.user_VU.multiply(first.user_VU).sum(1)).ravel()
    for start in range(0, len(top_UK), 512):
        row_M, place_M = np.nonzero(top_UK[start : start + 512] != NOBODY)
        item_M = top_UK[start + row_M, place_M]
        size_B = np.bincount(row_M)
        listed_BV = sparse.csr_matrix((np.ones(len(item_M)), (row_M, item_M)), shape=(len(size_B), len(norm_V)))
        sum_BU = listed_BV @ first.user_VU
        together_B = np.asarray(sum_BU.multiply(sum_BU).sum(1)).ravel() - listed_BV @ norm_V
        yield 1 - together_B / (size_B * (size_B - 1))


def effective_number(times_V: NDArray[Any]) -> float:
    """2^H of the items' shares of all places: how many equally recommended items would be as diverse."""
    share_V = times_V[times_V > 0] / max(times_V.sum(), 1)
    return float(2 ** -(share_V * np.log2(share_V)).sum())


def overlap(times_V: NDArray[Any], users: int, places: int) -> float:
    """Mean over all pairs of users of |list ∩ list| / K, exactly: Σ_i n_i (n_i − 1) / (U (U − 1) K)."""
    pairs = users * (users - 1)
    return float((times_V * (times_V - 1.0)).sum() / (max(pairs, 1) * places))


def _by_user(metric: ListMetric, top_UK: Index, count_V: NDArray[Any]) -> float:
    listed_UK = top_UK[(top_UK != NOBODY).any(1)]
    return float(metric(listed_UK, count_V).mean()) if len(listed_UK) else 0.0


def table(loops: Mapping[tuple[int, str], Sequence[Record]]) -> pl.DataFrame:
    """A row for each replicate, model and round."""
    rows = [
        {"replicate": replicate, "model": model, "round": round, **record}
        for (replicate, model), records in loops.items()
        for round, record in enumerate(records)
    ]
    schema = {"replicate": pl.Int64, "model": pl.String, "round": pl.Int64, **dict.fromkeys(FIGURES, pl.Float64)}
    return pl.DataFrame(rows, schema=schema)
