"""The page of `unveil recommend --dial`: what the novelty dial gives and takes."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from unveil.experiment.compared.novelty import blocks
from unveil.experiment.dial import TOP, Point
from unveil.experiment.report import Code, KeyFigure, Note, Page, Section, Text, write_page

NAME = "dial.html"
_MADE = (
    "On the test events, full ranking. Popularity is counted in the training part. EFD is how surprising a listed item "
    "is: −log2 of its share of the training events, each item counted once more than it occurs."
)


def write_dial_page(name: str, points: Sequence[Point], path: Path, command: Sequence[str]) -> Path:
    """The page and its plots; where the page is."""
    write_page(dial_page(name, points, shlex.join(command)), path)
    return path


def dial_page(name: str, points: Sequence[Point], command: str) -> Page:
    """What each position of the dial was measured to give, and what it costs."""
    first, last = points[0], points[-1]
    return Page(
        f"{name}: the novelty dial",
        f"Lists of {TOP} that owe less to popularity, without training again; measured on events that were held out.",
        [
            Section("Novelty against accuracy", [Note(_reading(first, last)), *blocks({name: points})]),
            Section("How it was made", [Text(_MADE), Code(command)]),
        ],
        [
            KeyFigure(f"{first['recall']:.3f} → {last['recall']:.3f}", f"Recall@{TOP}, from dial 0 to 1"),
            KeyFigure(f"{first['coverage']:.0%} → {last['coverage']:.0%}", "of the items stand in any list"),
            KeyFigure(f"{first['surprise']:.1f} → {last['surprise']:.1f}", "bits of surprise an item"),
        ],
    )


def _reading(first: Point, last: Point) -> str:
    lost = 1 - last["recall"] / first["recall"] if first["recall"] else 0.0
    change = f"costs {lost:.0%} of Recall@{TOP}" if lost > 0 else f"costs no Recall@{TOP}"
    return (
        f"Turned all the way, the dial {change} ({first['recall']:.3f}, 95% interval {first['recall_low']:.3f} to "
        f"{first['recall_high']:.3f}, against {last['recall']:.3f}, {last['recall_low']:.3f} to "
        f"{last['recall_high']:.3f}), and a listed item was taken {last['popularity']:.0f} times in training instead "
        f"of {first['popularity']:.0f}."
    )
