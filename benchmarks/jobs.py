"""Pieces of work whose growth is measured, each for a log and a network of a given shape, on one thread.

Histories all have the same length: nothing but the shape differs between two measurements. Shapes: U users, N events.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, count, islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import torch

from benchmarks.memory import own_peak_mib, reset_peak
from unveil.data.indexing import Vocabulary
from unveil.data.interactions import Interactions, Sequences
from unveil.data.packed import ingest, pack
from unveil.data.packed.log import Columns, ranges
from unveil.data.readers.table import Table
from unveil.data.splits import leave_one_out
from unveil.evaluation.evaluator import Evaluator
from unveil.evaluation.ranking import Scorer
from unveil.models.baselines import fitted
from unveil.models.bert4rec import BERT4Rec, BERT4RecConfig
from unveil.serving.onnx_model import servable
from unveil.serving.recommender import Recommender
from unveil.serving.server.model_store import ServedModel
from unveil.serving.server.schemas import RecommendRequest
from unveil.training.fit import prepare
from unveil.training.recipe import Recipe

#: Rows of a batch, share of their items that is hidden, negatives of a sampled softmax, places of a list.
ROWS, HIDDEN, NEGATIVES, PLACES = 64, 0.2, 256, 10
#: Steps, and requests, of which the median counts; those before are passed over. Passes that are timed together.
STEPS, REQUESTS, WARM, PASSES = 5, 30, 2, 10


@dataclass(frozen=True)
class Shape:
    """How much of everything there is; `length` is the number of events of a history, and of those a network reads."""

    users: int
    items: int
    length: int = 50
    width: int = 64


@dataclass(frozen=True)
class Cost:
    """Seconds of the processor, and memory beyond what was held before."""

    seconds: float
    mib: float


Job = Callable[[Shape, Path], Cost]


def write_log(shape: Shape, path: Path) -> None:
    """The log of a shape as a Parquet file, in the order of time."""
    rng, size = np.random.default_rng(0), shape.users * shape.length
    columns = {
        "user_id": rng.permutation(np.repeat(np.arange(shape.users, dtype=np.int32), shape.length)),
        "item_id": _items(shape, size, rng),
        "timestamp": 1_600_000_000 + np.arange(size) // 3,
    }
    pl.DataFrame(columns).write_parquet(path)


def read(_: Shape, path: Path) -> Cost:
    """A file read into memory, indexed, laid out as histories and split."""
    with measured() as cost:
        leave_one_out(Sequences.of(Interactions.read(path)))
    return cost()


def packed(_: Shape, path: Path) -> Cost:
    """The same file packed."""
    with TemporaryDirectory() as folder, measured() as cost:
        pack([path], Path(folder) / "packed")
    return cost()


def passed(_: Shape, path: Path) -> Cost:
    """One pass over the columns of a packed log for the histories of a few users."""
    with TemporaryDirectory() as folder:
        log = pack([path], Path(folder) / "packed")
        columns = Columns(log.folder, log.manifest.columns, log.users, log.items)
        length_U = log.histories().length_U[:1]
        with measured() as cost:
            for _again in range(PASSES):
                list(ranges(columns, ["item"], length_U, None))
        return Cost(cost().seconds / PASSES, 0.0)  # pages that are let go again are not memory that is needed


def ids(shape: Shape, _: Path) -> Cost:
    """So many different user ids that are text, numbered as they come and then put in order."""
    raw = pl.DataFrame({"user": np.random.default_rng(0).permutation(shape.users)})
    frame = raw.select(pl.format("user-{}", pl.col("user")).alias("user"))
    table = Table("memory", frame, {"user": "user"})
    with measured() as cost:
        coder = ingest.Text("user")
        coder.code(table)
        kept = coder.finish()
    del kept
    return cost()


def stepped(shape: Shape, _: Path) -> Cost:
    """A step of training with the softmax over all items."""
    return _step(shape, {"name": "naive"})


def stepped_sampled(shape: Shape, _: Path) -> Cost:
    """A step of training with the softmax over a sample."""
    return _step(shape, {"name": "naive-sampled", "negatives": NEGATIVES})


def ranked(shape: Shape, _: Path) -> Cost:
    """All items ranked for a case of every user."""
    return _judged(shape, network(shape))


def judged(shape: Shape, _: Path) -> Cost:
    """The same with scores that cost nothing: what is kept of every case."""
    return _judged(shape, fitted("popularity", sequences(shape)))


def served(shape: Shape, folder: Path) -> Cost:
    """One request to a model that is served; the memory is that of the model, its ids and its histories."""
    held = reset_peak()
    items, users = (Vocabulary([f"{n:08d}" for n in range(size)]) for size in (shape.items, shape.users))
    recommender = Recommender(network(shape).eval(), items, users, sequences(shape), shape.length)
    model = ServedModel("model", folder, "", "", servable(recommender))
    model.warm()
    seconds = []
    for user in range(REQUESTS):
        history = items.raw(recommender.sequences.history(user % shape.users)[: shape.length]).to_list()
        begun = time.process_time()
        model.answer([RecommendRequest(history=history, k=PLACES)])
        seconds.append(time.process_time() - begun)
    return Cost(median(seconds[WARM:]), own_peak_mib() - held)


@contextmanager
def measured() -> Iterator[Callable[[], Cost]]:
    """Gives a function that tells, afterwards, what the work inside took."""
    held, begun = reset_peak(), time.process_time()
    costs: list[Cost] = []
    yield costs.pop
    costs.append(Cost(time.process_time() - begun, own_peak_mib() - held))


def sequences(shape: Shape) -> Sequences:
    """Histories of `length` events to train on, and two more."""
    each = shape.length + 2
    item_N = _items(shape, shape.users * each, np.random.default_rng(0))
    step_N = np.tile(np.arange(each, dtype=np.int32), shape.users)
    event_N, offset_U1 = np.arange(len(item_N), dtype=np.int32), np.arange(shape.users + 1) * each
    return Sequences(item_N, step_N, event_N, None, offset_U1, n_items=shape.items, n_steps=each)


def network(shape: Shape) -> BERT4Rec:
    config = BERT4RecConfig(width=shape.width, blocks=2, heads=2, length=shape.length, dropout=0.1)
    return BERT4Rec(config, shape.items, seed=0)


def _items(shape: Shape, size: int, rng: np.random.Generator) -> "np.ndarray[tuple[int], np.dtype[np.int32]]":
    """Some have many events, most have few, all have one."""
    drawn = (shape.items * rng.random(size, np.float32) ** 3).astype(np.int32).clip(max=shape.items - 1)
    drawn[: shape.items] = np.arange(shape.items)[:size]
    return drawn


def _judged(shape: Shape, scorer: Scorer) -> Cost:
    split = leave_one_out(sequences(shape))
    with measured() as cost:
        test = Evaluator.of(split.test, split.whole, split.train, length=shape.length, uniform=0, popular=0)
        test.evaluate(scorer, resamples=1)
    return cost()


def _step(shape: Shape, estimator: dict[str, object]) -> Cost:
    split = leave_one_out(sequences(shape))
    changes = {
        "model.width": shape.width,
        "model.blocks": 2,
        "model.length": shape.length,
        "task.batch_size": ROWS,
        "task.mask_probability": HIDDEN,
        "training.device": "cpu",
    }
    recipe = Recipe.preset("converged", "bert4rec").changed(
        {f"estimator.{name}": value for name, value in estimator.items()}
    )
    held = reset_peak()
    trainer = prepare(split.train, recipe.changed(changes))
    torch.manual_seed(0)  # of dropout
    steps, seconds = chain.from_iterable(trainer.steps(epoch) for epoch in count(1)), []
    begun = time.process_time()
    for _ in islice(steps, WARM + STEPS):
        seconds.append(time.process_time() - begun)
        begun = time.process_time()
    return Cost(median(seconds[WARM:]), own_peak_mib() - held)
