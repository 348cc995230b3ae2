"""Cold items and users: what a model has little or nothing to learn from. Shapes: C cases, U users, V items."""

from dataclasses import dataclass

from unveil.data.sequences import Sequences
from unveil.data.splits import SHORTEST, Split

#: An item with fewer events is rare, a user with fewer is short.
FEW = 5


@dataclass(frozen=True)
class ColdCases:
    """Of the test cases of one split."""

    cases: int
    items: float  # share whose item never occurs in training
    rare: float  # share whose item occurs there, but less than five times
    users: float  # share whose user has no training events


@dataclass(frozen=True)
class Cold:
    """Of the whole log, and of the test cases of each split."""

    rare_items: float  # share of the items with fewer than five events
    rare_events: float  # share of the events that fall on them
    short_users: float  # share of the users with fewer than five events
    unusable_users: float  # share of the users with fewer than three: nothing of theirs can be held out
    splits: dict[str, ColdCases]


def cold(sequences: Sequences, splits: dict[str, Split]) -> Cold:
    """Count."""
    count_V = sequences.count_V
    count_V = count_V[count_V > 0]
    length_U = sequences.length_U[sequences.length_U > 0]
    return Cold(
        rare_items=float((count_V < FEW).mean()),
        rare_events=float(count_V[count_V < FEW].sum() / count_V.sum()),
        short_users=float((length_U < FEW).mean()),
        unusable_users=float((length_U < SHORTEST).mean()),
        splits={name: _cases(split) for name, split in splits.items() if len(split.test)},
    )


def _cases(split: Split) -> ColdCases:
    trained_C = split.train.count_V[split.test.item_C]
    return ColdCases(
        cases=len(split.test),
        items=float((trained_C == 0).mean()),
        rare=float(((trained_C > 0) & (trained_C < FEW)).mean()),
        users=float((split.train.length_U[split.test.user_C] == 0).mean()),
    )
