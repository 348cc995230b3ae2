"""Runs on labelled tests: likes among items that were fully observed, or clicks under random exposure.

Such a test, or slice of one, also calibrates runs: which of them, with which offsets, and whether it is surely better.

The run folder gets `calibration.safetensors`, which `recommend`, `serve` and `export` apply, and `calibration.json`
with what was measured.
"""

import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal
from warnings import catch_warnings, warn

import numpy as np
from numpy.typing import NDArray

from unveil.data.fetch import located
from unveil.data.indexing import UNKNOWN, Vocabulary, read_ids
from unveil.data.interactions import Interactions, Log, Sequences, named_source
from unveil.data.splits import Split
from unveil.errors import UnveilError, UnveilWarning, check_range
from unveil.evaluation import slice_calibration
from unveil.evaluation.labelled import LabelledTest, LabelledValidation, blocks, check_metric, evaluate
from unveil.evaluation.ranking import Scorer
from unveil.evaluation.result import Evaluation
from unveil.models.baselines import fitted
from unveil.report.page import Code, write_page
from unveil.report.plots import Line, Scale, line_figure
from unveil.report.prose import Prose
from unveil.runs import run_folder
from unveil.runs.config import Experiment
from unveil.serving.model_files import CALIBRATED, write_calibration
from unveil.serving.recommender import Recommender

#: What to do with test rows whose item is in the user's own history.
Seen = Literal["error", "skip", "keep"]
Ids = str | Path | Sequence[str]
Scored = tuple[Scorer, Sequences, LabelledTest, int]


def read_test(
    source: Log,
    users: Vocabulary,
    items: Vocabulary,
    sequences: Sequences,
    *,
    candidates: Ids | None = None,
    seen: Seen = "error",
    min_rating: float | None = None,
) -> LabelledTest:
    """Rows of `user_id, item_id[, label]` in any format that a log may have; `candidates` are ids, or a file of them.

    Of a log that says which rows a random policy showed (`is_rand`), those rows alone. With `min_rating` the labels are
    whether ratings reach it.
    """
    log = Interactions.read(source, even_one=True)
    if log.randomised is not None:
        log = log.where(log.randomised)
    if min_rating is not None and log.rating is not None:
        log = replace(log, clicked=log.rating >= min_rating)
    if isinstance(candidates, str | Path):
        candidates = read_ids(located(str(candidates)) or Path(candidates), "item")
    keep = {"error": None, "skip": False, "keep": True}
    check_range(seen in keep, "seen", seen, "one of error, skip, keep")
    where = named_source(source)
    return LabelledTest.of(log, users, items, sequences, candidates=candidates, keep_seen=keep[seen], where=where)


def evaluate_labelled(
    run: Recommender | str | Path,
    test: Log,
    *,
    candidates: Ids | None = None,
    seen: Seen = "error",
    ks: Sequence[int] = (10, 50),
) -> Evaluation:
    """The metrics of a run, or a recommender, on a labelled test, and those of popularity on the same.

    `test` has `user_id`, `item_id` and, if known, `label` (1 liked or clicked): a file, a pandas or a polars frame.
    """
    scored = labelled_run(run, test, candidates=candidates, seen=seen)
    popularity = evaluate(fitted("popularity", scored[1]), *scored[1:], ks=ks)
    return evaluate(*scored, ks=ks).beside({"popularity": popularity})


#: Files that say on which rows something was learnt, and what to do instead of a test on the same.
_LEARNT = (
    (CALIBRATED, "rows", "calibrated", "`unveil calibrate --dry-run` measures on users that it did not learn from"),
    (run_folder.ABOUT, "validation", "validated", "test on other users than those of --validation"),
)


def labelled_run(
    run: Recommender | str | Path, test: Log, *, candidates: Ids | None = None, seen: Seen = "error"
) -> Scored:
    """What `evaluate` and `blocks` need: a model, the histories, the test, and how much of them the model reads."""
    recommender = run if isinstance(run, Recommender) else Recommender.load(Path(run))
    known = (recommender.users, recommender.items, recommender.sequences)
    found = read_test(test, *known, candidates=candidates, seen=seen)
    if found.skipped:
        warn(f"{named_source(test)}: {found}", UnveilWarning, 3)
    rows = replace(found, candidate_C=None).fingerprint
    folder = None if isinstance(run, Recommender) else Path(run)
    for name, key, how, hint in _LEARNT if folder is not None else []:
        path = (folder or Path()) / name
        if path.is_file() and run_folder.read_json(path).get(key) == rows:
            warn(f"{run} was {how} on these rows, and looks better on them than it is: {hint}", UnveilWarning, 3)
    return recommender.model, recommender.sequences, found, recommender.length


def labelled_validation(experiment: Experiment, log: Interactions, split: Split) -> LabelledValidation | None:
    """The labelled test that decides in the place of held-out interactions, checked; None: they decide."""
    config = experiment.evaluation
    if config.labelled is None:
        return None
    test = read_test(config.labelled, log.users, log.items, split.whole, candidates=config.candidates, seen=config.seen)
    evaluate(fitted("popularity", split.train), split.train, test, 1)  # an error where there is nothing to compare
    return LabelledValidation(test, split.train, experiment.training.monitor)


#: Sizes of slices for the curve; and how many users must be left to measure on.
SIZES, _LEFT = (10, 30, 100, 300, 1000), 30
#: Too few to learn from and to test.
_FEWEST = 10


@dataclass(frozen=True, eq=False)
class CalibratedRuns:
    """What a slice says of some runs: each run with each recipe, the best of them, and the curve over sizes."""

    runs: Sequence[Path]
    metric: str
    users: int
    found: slice_calibration.CrossFitted
    learnt: slice_calibration.SliceCalibration
    curve: Sequence[slice_calibration.CurvePoint]
    skipped: dict[str, int]
    rows: str  # fingerprint of the slice

    @property
    def run(self) -> Path:
        """The run of the best candidate."""
        return self.runs[self.found.names[self.found.best][0]]

    @property
    def recipe(self) -> str:
        """How its scores are calibrated."""
        return self.found.names[self.found.best][1]

    def as_json(self) -> dict[str, Any]:
        """All that was measured."""
        means = self.found.value_NT.mean(1)
        rows = [
            {"run": str(self.runs[run]), "recipe": recipe, "mean": float(mean)}
            for (run, recipe), mean in zip(self.found.names, means, strict=True)
        ]
        own = self.learnt
        learnt = {"scale": own.scale, "personal": own.personal, "popularity": own.popularity.tolist()}
        return {
            "metric": self.metric,
            "users": self.users,
            "rows": self.rows,
            "skipped": self.skipped,
            "candidates": rows,
            "best": {"run": str(self.run), "recipe": self.recipe, **learnt, "appeal": own.appeal},
            "gain": asdict(self.found.gain),
            "recommended": self.found.is_better,
            "curve": [asdict(point) for point in self.curve],
        }

    def write(self) -> Path:
        """Into the folder of the best run, in the place of an earlier calibration."""
        return write_calibration(self.run, self.learnt.shift_V, self.as_json())

    def prose(self) -> Prose:
        """What is printed and what is on the page."""
        names = run_folder.short_names(self.runs)
        candidates = zip(self.found.names, self.found.value_NT.mean(1).tolist(), strict=True)
        facts = {"found": self, "gain": self.found.gain, "names": names, "candidates": list(candidates)}
        return Prose(["calibrate.md.j2"], facts | {"best": names[self.found.names[self.found.best][0]]})

    def write_page(self, path: Path, command: Sequence[str]) -> Path:
        """The curve of gain against the size of the slice, and what was compared; where the page is."""
        sizes, drawn = [point.users for point in self.curve], dict[str, Line]()
        for colour, (label, field) in enumerate({"as it is": "before", "calibrated": "after"}.items()):
            values = [float(getattr(point, field)) for point in self.curve]
            hover = [f"{label}, {size:,} users: {value:.4f}" for size, value in zip(sizes, values, strict=True)]
            drawn[label] = Line(range(len(sizes)), values, colour, titles=hover)
        scale = Scale(bottom=None, ticks={place: f"{size:,}" for place, size in enumerate(sizes)})
        curve = [line_figure(drawn, ("users in the slice", self.metric), "curve", scale)] if sizes else []
        write_page(self.prose().page({"curve": curve, "command": Code(shlex.join(command))}), path)
        return path


def calibrate_runs(
    runs: Sequence[Path],
    source: str | Path,
    *,
    candidates: Path | None = None,
    seen: Seen = "error",
    metric: str = "NDCG@10",
    log: str | Path | None = None,
    draws: int = 5,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> CalibratedRuns:
    """Cross-fit every recipe of every run on the users of the slice; the first run as it is is what must be beaten.

    Items are similar by the impressions of `log`, by default the log of the first run; where there are none, by the
    histories that the runs know.
    """
    check_metric(metric)
    shown = impressions_of(runs[0]) if log is None else Interactions.read(log)
    vector_VD: NDArray[np.float64] | None = None
    parts, skipped, ids = list[slice_calibration.Slice](), dict[str, int](), None
    for run in runs:
        recommender = Recommender.load(run, calibrated=False)
        known_by = (recommender.users, recommender.items, recommender.sequences)
        test = read_test(source, *known_by, candidates=candidates, seen=seen)
        known = (replace(test, candidate_C=None).fingerprint, recommender.items.ids.to_list())
        if ids is not None and known != ids:
            hint = "Calibrate runs that were trained on the same log."
            raise UnveilError("the runs do not know the same users and items", where=run, hint=hint)
        ids, skipped = known, test.skipped
        if vector_VD is None:
            if log is not None and shown is not None and (recommender.items.index(shown.items.ids) == UNKNOWN).all():
                raise UnveilError("no item of the run is in the log", where=log, hint="Check its ids.")
            vector_VD = similarity(shown, recommender.items, recommender.sequences)
        scored = blocks(recommender.model, recommender.sequences, test, recommender.length)
        feature_VP = slice_calibration.item_features(recommender.sequences)
        parts.append(slice_calibration.Slice.of(list(scored), feature_VP, vector_VD))
        progress(len(parts), len(runs) + 1 + len(SIZES))
    users = len(parts[0])
    if users < _FEWEST:
        expected = f"{_FEWEST} with liked and other items"
        raise UnveilError("too few users to learn from", where=source, found=users, expected=expected)
    found = slice_calibration.cross_fit(parts, np.random.default_rng(seed), metric)
    progress(len(runs) + 1, len(runs) + 1 + len(SIZES))
    run_place, recipe = found.names[found.best]
    learnt = slice_calibration.calibrate(parts[run_place], np.random.default_rng(seed), recipe)
    points = list[slice_calibration.CurvePoint]()
    for size in (size for size in SIZES if draws and size + _LEFT <= users):
        points += slice_calibration.gain_curve(parts, np.random.default_rng([seed, size]), metric, [size], draws=draws)
        progress(len(runs) + 1 + len(points), len(runs) + 1 + len(SIZES))
    return CalibratedRuns(list(runs), metric, users, found, learnt, points, skipped, known[0])


def impressions_of(run: Path) -> Interactions | None:
    """The log that a run was trained on, where it is still what it was and has impressions without a click."""
    with suppress(UnveilError, LookupError, TypeError), catch_warnings(action="ignore"):
        log = run_folder.read_config(run).data.load()
        same = log.fingerprint() == run_folder.read_json(run / run_folder.ABOUT)["log"]["fingerprint"]
        return log if same and log.clicked is not None and not log.clicked.all() else None
    return None


def similarity(shown: Interactions | None, items: Vocabulary, sequences: Sequences) -> NDArray[np.float64]:
    """Features of items by who was shown them, but by a random policy; without impressions, by who chose them."""
    if shown is not None:
        shown = shown if shown.randomised is None else shown.where(~shown.randomised)
        item_N = items.index(shown.items.ids)[shown.item]
        if (known_N := item_N != UNKNOWN).any():
            rows = (shown.user[known_N], item_N[known_N])
            return slice_calibration.spectral_features(*rows, len(shown.users), len(items))
    return slice_calibration.spectral_features(sequences.user_N, sequences.item_N, sequences.n_users, sequences.n_items)
