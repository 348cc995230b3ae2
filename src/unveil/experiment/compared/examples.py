"""A few users whose lists are shown side by side. Shapes: C cases, K places."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from unveil.data.vocabulary import UNKNOWN
from unveil.errors import UnveilError
from unveil.evaluation.metrics import NOBODY
from unveil.evaluation.seen import seen_cells
from unveil.experiment.compared.runs import Judged
from unveil.serving.recommender import Recommender

#: Events of a history that are shown.
_SHOWN = 8
#: Cases that users are picked from.
_LOOKED_AT = 20_000


@dataclass(frozen=True)
class Example:
    """One case: who, why it is shown, what came before, what was taken, and what each run would have listed."""

    user: str
    why: str
    history: tuple[int, ...]  # the last few items, oldest first
    earlier: int  # how many came before them
    target: int
    barred: bool  # the target was met before, and lists leave out what was met
    ranks: tuple[int, ...]  # of the target among all items, run by run
    lists: tuple[tuple[int, ...], ...]


def examples(runs: Sequence[Judged], recommender: Recommender, users: Sequence[str] = ()) -> list[Example]:
    """The users that were named; else three, by how much the lists of the runs differ, or how well the one run does."""
    frame = runs[0].evaluation.frame
    if users:
        picked = {_case_of(user, recommender, frame["user"].to_numpy()): "asked for" for user in users}
    else:
        picked = _picked(runs, recommender)
    return [_example(runs, recommender, case, why) for case, why in picked.items()]


def shared_C(runs: Sequence[Judged]) -> NDArray[np.float64]:
    """How much of two runs' lists is the same: |A ∩ B| / K for each case, mean over pairs of runs."""
    lists = [_lists(run) for run in runs]
    pairs = [_overlap(one_CK, other_CK) for one_CK, other_CK in combinations(lists, 2)]
    return np.asarray(np.mean(pairs, axis=0))


def _overlap(one_CK: NDArray[np.int32], other_CK: NDArray[np.int32]) -> NDArray[np.float64]:
    """Place by place, so that nothing larger than the lists is held."""
    found_C = np.zeros(len(one_CK))
    for item_C in one_CK.T:
        found_C += (other_CK == item_C[:, None]).any(axis=1) & (item_C != NOBODY)
    share_C: NDArray[np.float64] = found_C / one_CK.shape[1]
    return share_C


def _picked(runs: Sequence[Judged], recommender: Recommender) -> dict[int, str]:
    """Three cases whose target may be listed, where there are any; of a large log, out of some that are drawn."""
    if len(runs) > 1:
        value_C = shared_C(runs)
        why = ("the lists differ most", "the lists differ as they do on average", "the lists differ least")
    else:
        value_C = -runs[0].evaluation.frame["full:rank"].to_numpy().astype(float)
        why = ("the item was missed by most", "the item was found as usual", "the item was found best")
    drawn = np.random.default_rng(0).permutation(len(value_C))[:_LOOKED_AT]
    listed = drawn[~_barred(runs[0], recommender, drawn)]
    return dict(zip(_spread(value_C, listed if len(listed) else drawn), why, strict=True))


def _barred(run: Judged, recommender: Recommender, cases: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these cases ask for an item that can stand in no list, since it was met before."""
    barred = np.zeros(len(cases), np.bool_)
    if run.experiment.evaluation.exclude_seen:
        user, item, seen = (run.evaluation.frame[name].to_numpy()[cases] for name in ("user", "item", "seen"))
        row_N, seen_N = seen_cells(recommender.sequences, user, seen)
        barred[row_N[seen_N == item[row_N]]] = True
    return barred


def _spread(value_C: NDArray[np.float64], among: NDArray[np.int64]) -> list[int]:
    """The cases of the lowest, the median and the highest value; of equal ones the first."""
    order = among[np.argsort(value_C[among], kind="stable")]
    return [int(order[place]) for place in (0, len(order) // 2, -1)]


def _case_of(user: str, recommender: Recommender, user_C: NDArray[np.int32]) -> int:
    index = int(recommender.users.index([user])[0])
    if index == UNKNOWN:
        hint = "Give users as they are written in the log, with commas between."
        raise UnveilError("no such user in the log", where="--users", found=user, hint=hint)
    cases = np.flatnonzero(user_C == index)
    if not len(cases):
        raise UnveilError("nothing of this user was held out, so there is no list", where="--users", found=user)
    return int(cases[-1])


def _example(runs: Sequence[Judged], recommender: Recommender, case: int, why: str) -> Example:
    row = runs[0].evaluation.frame.row(case, named=True)
    history = recommender.sequences.history(int(row["user"]))[: row["seen"]].tolist()
    return Example(
        recommender.users[int(row["user"])],
        why,
        tuple(history[-_SHOWN:]),
        max(0, len(history) - _SHOWN),
        int(row["item"]),
        runs[0].experiment.evaluation.exclude_seen and row["item"] in history,
        tuple(int(run.evaluation.frame["full:rank"][case]) for run in runs),
        tuple(tuple(item for item in _lists(run)[case].tolist() if item != NOBODY) for run in runs),
    )


def _lists(run: Judged) -> NDArray[np.int32]:
    """top_CK."""
    return np.asarray(run.evaluation.frame["top"].to_numpy(), np.int32)
