"""Training and ranking on MovieLens 1M against a plain torch loop, turn by turn in one run; and the memory it takes.

    python -m benchmarks.train [LOG] [--epochs 3] [--threads N]

Without a log, or UNVEIL_TEST_DATA to find one in, a generated log of the same shape is used. The two take turns batch
by batch, so that whoever shares the machine disturbs both alike; the ratios are medians over epochs. Where others use
the cores too, measure with one thread: threads that wait for one another distort short steps most. Prints, last, one
line: `train_vs_plain=X rank_vs_plain=Y peak_mib=Z`.
"""

import argparse
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
import torch
from torch import Tensor
from torch.optim import AdamW

from benchmarks import plain_bert4rec as plain
from benchmarks.memory import own_peak_mib
from unveil.data.batches import ClozeTask
from unveil.data.interactions import Interactions, Sequences
from unveil.data.slots import histories
from unveil.data.splits import leave_one_out
from unveil.estimators.naive import Naive
from unveil.models.bert4rec import BERT4Rec, BERT4RecConfig
from unveil.training.device import seed_epoch
from unveil.training.recipe import TrainerConfig
from unveil.training.trainer import Tally, Trainer

CONFIG = BERT4RecConfig(width=64, blocks=2, heads=2, length=100, dropout=0.1)
TRAINING = TrainerConfig(lr=1e-3, clip=None)
ROOT = Path(__file__).parents[1]
BATCH, MASKED, TOP, SEED = 128, 0.2, 10, 0


def default_log() -> Path | None:
    root = Path(os.environ.get("UNVEIL_TEST_DATA", ROOT.parent / "shared" / "data"))
    path = root / "ml-1m" / "ml-1m.txt.gz"
    return path if path.exists() else None


def generated(users: int = 6040, items: int = 3416, mean: float = 165.5) -> Sequences:
    """Histories of MovieLens 1M's number and spread of lengths, over items of Zipf-like popularity."""
    rng = np.random.default_rng(SEED)
    length_U = np.clip(rng.lognormal(np.log(mean) - 0.45, 0.95, users), 20, 2314).astype(np.int64)
    weight_V = 1 / (np.arange(items) + 20.0)
    item_N = rng.choice(items, length_U.sum(), p=weight_V / weight_V.sum()).astype(np.int32)
    offset_U1 = np.concatenate([[0], np.cumsum(length_U)])
    event_N = np.arange(len(item_N), dtype=np.int32)
    return Sequences(item_N, np.zeros_like(item_N), event_N, None, offset_U1, n_items=items, n_steps=1)


def log_of(path: Path | None) -> Sequences:
    return generated() if path is None else Sequences.of(Interactions.read(path))


def task_of(sequences: Sequences, *, bucket: bool) -> ClozeTask:
    return ClozeTask(leave_one_out(sequences).train, CONFIG.length, BATCH, MASKED, seed=SEED, bucket=bucket)


def learner_of(sequences: Sequences) -> Trainer:
    model = BERT4Rec(CONFIG, sequences.n_items, seed=SEED)
    return Trainer(TRAINING, model, Naive(), task_of(sequences, bucket=True))


def rank_steps(model: BERT4Rec, sequences: Sequences, top_UK: Tensor, batch_size: int = 256) -> Iterator[None]:
    """Fill in the top K unseen items of every user, users of similar length together."""
    model.eval()
    user_U = np.argsort(np.minimum(sequences.length_U, CONFIG.length), kind="stable")
    for user_B in np.array_split(user_U, -(-len(user_U) // batch_size)):
        seen_B = sequences.length_U[user_B]
        scores_BV = model.scores(histories(sequences, user_B, seen_B, CONFIG.length))
        row_N = np.repeat(np.arange(len(user_B)), seen_B)
        item_N = np.concatenate([sequences.history(user) for user in user_B])
        scores_BV[torch.from_numpy(row_N), torch.from_numpy(item_N.astype(np.int64))] = -torch.inf
        top_UK[torch.from_numpy(user_B)] = scores_BV.topk(top_UK.shape[1]).indices
        yield


def alternate(*workers: Iterator[object]) -> tuple[list[float], list[object]]:
    """Let workers take turns until all are done: the seconds each took, and the last thing each said."""
    seconds, last, left = [0.0] * len(workers), [object()] * len(workers), set(range(len(workers)))
    over = object()
    while left:
        for n in sorted(left):
            start = time.perf_counter()
            said = next(workers[n], over)
            seconds[n] += time.perf_counter() - start
            if said is over:
                left.remove(n)
            else:
                last[n] = said
    return seconds, last


def compare_training(sequences: Sequences, epochs: int) -> tuple[float, BERT4Rec]:
    ours, theirs = learner_of(sequences), plain.PlainBERT4Rec(CONFIG, sequences.n_items)
    assert isinstance(ours.model, BERT4Rec)
    theirs.load_state_dict(ours.model.state_dict())
    optimiser = AdamW(theirs.parameters(), lr=TRAINING.lr, weight_decay=0.0)
    task, ratios = task_of(sequences, bucket=False), []
    for epoch in range(1, epochs + 1):
        seed_epoch(SEED, epoch)
        steps = ours.steps(epoch), plain.train_steps(theirs, optimiser, task.epoch(epoch))
        (fast, slow), (tally, loss) = alternate(*steps)
        assert isinstance(tally, Tally)
        ratios.append(slow / fast)
        print(f"epoch {epoch}: plain {slow:6.2f} s, loss {loss:.4f} · unveil {fast:6.2f} s, loss {tally.loss:.4f}")
    return median(ratios), ours.model


def compare_ranking(sequences: Sequences, model: BERT4Rec, turns: int) -> float:
    theirs = plain.PlainBERT4Rec(CONFIG, sequences.n_items)
    theirs.load_state_dict(model.state_dict())
    ratios = []
    for turn in range(1, turns + 1):
        ours_UK, plain_UK = (torch.empty(sequences.n_users, TOP, dtype=torch.int64) for _ in range(2))
        steps = plain.rank_steps(theirs, sequences, CONFIG.length, plain_UK, BATCH)
        (fast, slow), _ = alternate(rank_steps(model, sequences, ours_UK), steps)
        ratios.append(slow / fast)
        same = (ours_UK == plain_UK).double().mean().item()
        print(f"rank {turn}: plain {slow:6.2f} s · unveil {fast:6.2f} s · {same:.2%} of places hold the same item")
    return median(ratios)


def measure_memory(log: Path | None) -> float:
    """The peak of a process of its own that trains an epoch and ranks everybody."""
    command = [sys.executable, "-m", "benchmarks.train", *([str(log)] if log else []), "--memory-only"]
    return float(subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path, nargs="?", default=default_log())
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--memory-only", action="store_true")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    sequences = log_of(options.log)
    if options.memory_only:
        learner = learner_of(sequences)
        deque(learner.steps(1), maxlen=0)
        assert isinstance(learner.model, BERT4Rec)
        alternate(rank_steps(learner.model, sequences, torch.empty(sequences.n_users, TOP, dtype=torch.int64)))
        print(own_peak_mib())
        return
    print(f"{options.log or 'generated log'}: {sequences}")
    training, model = compare_training(sequences, options.epochs)
    ranking = compare_ranking(sequences, model, options.epochs)
    print(f"train_vs_plain={training:.2f} rank_vs_plain={ranking:.2f} peak_mib={measure_memory(options.log):.0f}")


if __name__ == "__main__":
    main()
