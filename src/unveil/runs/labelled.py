"""Runs on labelled tests: likes among items that were fully observed, or clicks under random exposure."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.vocabulary import Vocabulary
from unveil.evaluation.labelled import LabelledTest, evaluate
from unveil.evaluation.result import Evaluation
from unveil.models.baselines import Popularity
from unveil.serving.recommendations import read_ids
from unveil.serving.recommender import Recommender

#: What to do with test rows whose item is in the user's own history.
Seen = Literal["error", "skip", "keep"]


def read_test(
    source: str | Path,
    users: Vocabulary,
    items: Vocabulary,
    sequences: Sequences,
    *,
    candidates: Path | None = None,
    seen: Seen = "error",
) -> LabelledTest:
    """A file of `user_id, item_id[, label]` in any format that a log may have; `candidates` has one item id a line.

    Of a log that says which rows a random policy showed (`is_rand`), those rows alone.
    """
    log = Interactions.read(source, even_one=True)
    if log.randomised is not None:
        log = log.where(log.randomised)
    named = None if candidates is None else read_ids(candidates, "item")
    keep_seen = {"error": None, "skip": False, "keep": True}[seen]
    return LabelledTest.of(log, users, items, sequences, candidates=named, keep_seen=keep_seen, where=source)


def evaluate_labelled(recommender: Recommender, test: LabelledTest, ks: Sequence[int] = (10, 50)) -> Evaluation:
    """The metrics of a recommender on a labelled test, and those of popularity on the same."""
    sequences, length = recommender.sequences, recommender.length
    popularity = evaluate(Popularity.fit(sequences), sequences, test, length, ks=ks)
    found = evaluate(recommender.model, sequences, test, length, ks=ks)
    return replace(found, popularity=popularity.summary)
