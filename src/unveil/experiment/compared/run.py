"""A report of finished runs: everything that its page shows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.data.titles import named_items
from unveil.evaluation.compare import Comparison, compare
from unveil.evaluation.result import Evaluation
from unveil.experiment.compared.examples import Example, examples, shared_C
from unveil.experiment.compared.measured import Measured, measured
from unveil.experiment.compared.runs import Judged, read_runs
from unveil.experiment.compared.settings import differing
from unveil.experiment.compared.slices import Slice, slices
from unveil.runs.folder import read_split
from unveil.serving.recommender import Recommender

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Asked:
    """What is wanted: titles for the items, whose lists, whether to measure the dial, and the level of the tests."""

    titles: Path | None = None
    title_ids: Path | None = None
    users: Sequence[str] = ()
    dial: bool = True
    alpha: float = 0.05


@dataclass(frozen=True, eq=False)
class Report:
    """Runs that were judged on the same cases, side by side."""

    runs: Sequence[Judged]
    comparison: Comparison | None  # None: one run alone
    measured: Mapping[str, Measured]
    slices: Sequence[Slice]
    differing: Mapping[str, Sequence[Any]]
    examples: Sequence[Example]
    shared: float | None  # how much of two runs' lists is the same, mean over cases and pairs
    titles: Sequence[str]
    ids: Sequence[str]
    count_V: NDArray[np.int64]  # training events of each item

    @property
    def names(self) -> list[str]:
        """What the runs are called."""
        return [run.name for run in self.runs]

    @property
    def evaluations(self) -> list[Evaluation]:
        """How each was judged."""
        return [run.evaluation for run in self.runs]


def report(folders: Sequence[Path], asked: Asked | None = None, progress: Progress | None = None) -> Report:
    """Read the runs, refuse what cannot be compared, and ask the models what their files do not tell."""
    asked = asked or Asked()
    runs = read_runs(folders)
    recommender = Recommender.load(runs[0].folder)
    titles = named_items(recommender.items, asked.titles, asked.title_ids)
    shown = examples(runs, recommender, asked.users)
    count_V = read_split(runs[0].folder, recommender.sequences).train.count_V
    found = {}
    for done, run in enumerate(runs, 1):
        found[run.name] = measured(run, with_dial=asked.dial)
        if progress is not None:
            progress(done, len(runs))
    several = len(runs) > 1
    return Report(
        runs,
        compare({run.name: run.evaluation for run in runs}, alpha=asked.alpha) if several else None,
        found,
        slices(runs, count_V),
        differing(runs),
        shown,
        float(shared_C(runs).mean()) if several else None,
        titles,
        recommender.items.ids.to_list(),
        count_V,
    )
