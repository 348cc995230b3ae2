"""A log with one law, the next item is the one after it on a circle, and a small run on it.

As a program, `python -m tests.training.cyclic FOLDER BATCH`, it pauses at that batch to be interrupted.
"""

import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from unveil.data.batches import ClozeTask
from unveil.data.interactions import Sequences
from unveil.data.slots import mask_token
from unveil.estimators.naive import Naive
from unveil.models.base import Backbone
from unveil.models.bert4rec import BERT4Rec, BERT4RecConfig
from unveil.training.progress import Silent, Watcher
from unveil.training.recipe import TrainerConfig
from unveil.training.trainer import Fitted, Keep, Stopped, Trainer

V, LENGTH = 12, 8
MODEL = BERT4RecConfig(width=16, blocks=2, heads=2, length=LENGTH, dropout=0.1)
TRAINING = TrainerConfig(epochs=5, lr=3e-3, warmup=1, schedule="linear", threads=1, device="cpu", validate_every=2)


def circle(users: int = 60) -> Sequences:
    """User u meets u, u + 1, u + 2, … (mod V), some more of them than others."""
    length_U = 3 + np.arange(users) % 9
    offset_U1 = np.concatenate([[0], np.cumsum(length_U)])
    nth_N = np.arange(offset_U1[-1]) - np.repeat(offset_U1[:-1], length_U)
    item_N = ((np.repeat(np.arange(users), length_U) + nth_N) % V).astype(np.int32)
    event_N = np.arange(len(item_N), dtype=np.int32)
    return Sequences(item_N, nth_N.astype(np.int32), event_N, None, offset_U1, n_items=V, n_steps=11)


def accuracy(model: Backbone) -> float:
    """How often the item after three in a row comes out on top."""
    row_VL = (np.arange(V)[:, None] + np.arange(4)) % V
    token_VL = torch.from_numpy(row_VL.copy())
    token_VL[:, -1] = mask_token(V)
    right_V = model.scores(token_VL).argmax(1).cpu() == torch.from_numpy(row_VL[:, -1])
    return float(right_V.double().mean())


def certainty(model: Backbone) -> dict[str, float]:
    """A validation that changes with every step: the mean probability of the right item, and how often it is on top."""
    row_VL = (np.arange(V)[:, None] + np.arange(4)) % V
    token_VL = torch.from_numpy(row_VL.copy())
    token_VL[:, -1] = mask_token(V)
    p_VV = model.scores(token_VL).softmax(1).double()
    return {"NDCG@10": float(p_VV[range(V), row_VL[:, -1]].mean()), "accuracy": accuracy(model)}


@dataclass
class Trained:
    """A model and what its training told."""

    model: BERT4Rec
    fitted: Fitted


def train(
    config: TrainerConfig = TRAINING,
    keep: Keep | None = None,
    watch: Watcher | None = None,
    model: BERT4RecConfig = MODEL,
) -> Trained:
    """One small run."""
    network = BERT4Rec(model, V, seed=1)
    task = ClozeTask(circle(), LENGTH, batch_size=16, mask_probability=0.3, last_share=0.2, seed=2)
    return Trained(network, Trainer(config, network, Naive(), task).fit(certainty, keep=keep, watch=watch))


class Pause(Silent):
    """Says so and waits for a signal at one batch of the run."""

    def __init__(self, at: int) -> None:
        self.left = at

    def batch(self, loss: float) -> None:
        """Count down, then wait."""
        self.left -= 1
        if not self.left:
            print("paused", flush=True)
            time.sleep(600)


def main() -> None:
    """Train in the folder that is named, up to the batch that is named."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs are begun deaf to it
    try:
        train(keep=Keep(Path(sys.argv[1]), resume=True), watch=Pause(int(sys.argv[2])))
    except Stopped as stopped:
        print(stopped)
        sys.exit(130)


if __name__ == "__main__":
    main()
