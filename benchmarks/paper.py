"""The paper's ITPS on MovieLens 1M, with its authors' settings, against a loop of the form of their code, in turns.

    python -m benchmarks.paper [LOG] [--turns 6] [--batches 100] [--threads N]

That form, written anew: a row of tokens made item by item in Python, rows padded to full length, logits and their log-
softmax at every position, all of them divided by the weight of their position, `nn.Dropout`, Adam as it comes. The two
take turns of some batches, so that whoever shares the machine disturbs both alike. Validation is left out of both.
Prints, last, one line: `itps_vs_form=X epoch_seconds=Y form_epoch_seconds=Z`: the ratio of the sums, and the medians of
the turns as seconds of an epoch.
"""

import argparse
import random
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.plain_bert4rec import PlainBlock
from benchmarks.train import default_log, log_of
from unveil.data.batches import ClozeTask
from unveil.data.interactions import Sequences
from unveil.data.splits import leave_one_out
from unveil.estimators.inverse import ITPS
from unveil.models.bert4rec import BERT4Rec, BERT4RecConfig
from unveil.propensity.popularity import TemporalPopularity
from unveil.training.device import seed_epoch
from unveil.training.recipe import TrainerConfig
from unveil.training.trainer import Trainer

#: The settings of the authors for ITPS on ml-1m.
CONFIG = BERT4RecConfig(width=64, blocks=1, heads=1, length=100, dropout=0.1, head="untied")
BATCH, MASKED, EXPONENT, LR, SEED = 8, 0.4, 0.2, 1e-3, 0


def ours(train: Sequences) -> Trainer:
    task = ClozeTask(train, CONFIG.length, BATCH, MASKED, seed=SEED, always_mask=False)
    estimator = ITPS(TemporalPopularity().fit(train), exponent=EXPONENT)
    model = BERT4Rec(CONFIG, train.n_items, seed=SEED)
    return Trainer(TrainerConfig(lr=LR, clip=None, device="cpu"), model, estimator, task)


class Form(nn.Module):
    """Item 0 is padding, the last one the mask; an output of its own."""

    def __init__(self, n_items: int) -> None:
        super().__init__()
        self.item = nn.Embedding(n_items + 2, CONFIG.width, padding_idx=0)
        self.position = nn.Embedding(CONFIG.length, CONFIG.width)
        self.blocks = nn.ModuleList(PlainBlock(CONFIG) for _ in range(CONFIG.blocks))
        self.dropout, self.output = nn.Dropout(CONFIG.dropout), nn.Linear(CONFIG.width, n_items + 1)

    def forward(self, token: Tensor) -> Tensor:
        x = self.dropout(self.item(token) + self.position.weight)
        for block in self.blocks:
            x = block(x, token == 0)
        logits: Tensor = self.output(x)
        return logits


def form_rows(train: Sequences, rng: random.Random) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Tokens, labels (0: not asked) and steps of batches of users at random, endlessly."""
    while True:
        users = rng.sample(range(train.n_users), train.n_users)
        for start in range(0, len(users), BATCH):
            rows = [_row(train, user, rng) for user in users[start : start + BATCH]]
            token, label, step = (torch.tensor(column) for column in zip(*rows, strict=True))
            yield token, label, step


def _row(train: Sequences, user: int, rng: random.Random) -> tuple[list[int], list[int], list[int]]:
    events = slice(*train.offset_U1[user : user + 2].tolist())
    tokens, labels = [], []
    for item in train.item_N[events].tolist():
        asked = rng.random() < MASKED
        tokens.append(train.n_items + 1 if asked else item + 1)
        labels.append(item + 1 if asked else 0)
    return _padded(tokens), _padded(labels), _padded(train.step_N[events].tolist())


def _padded(row: list[int]) -> list[int]:
    return ([0] * (CONFIG.length - len(row)) + row)[-CONFIG.length :]


def form_theta(train: Sequences) -> Tensor:
    """Temporal popularity in a table of every item, 0 being padding, and every step."""
    count_VT = np.zeros((train.n_items + 1, train.n_steps))
    np.add.at(count_VT, (train.item_N + 1, train.step_N), 1)
    return torch.from_numpy(count_VT / len(train) + np.finfo(float).eps).float()


def form_loss(logits: Tensor, label: Tensor, theta: Tensor) -> Tensor:
    """All log-probabilities divided by the weight of their position, of which one is read."""
    return F.nll_loss(torch.log_softmax(logits, 1) / theta.pow(EXPONENT)[:, None], label, ignore_index=0)


def form_steps(train: Sequences) -> Iterator[None]:
    """Steps of the form, endlessly."""
    torch.manual_seed(SEED)
    model, theta_VT = Form(train.n_items), form_theta(train)
    optimiser = torch.optim.Adam(model.parameters(), lr=LR)
    model.train()
    for token, label, step in form_rows(train, random.Random(SEED)):
        optimiser.zero_grad()
        logits, label = model(token).view(-1, train.n_items + 1), label.view(-1)
        loss = form_loss(logits, label, theta_VT[label, step.view(-1)])
        torch.autograd.backward(loss)
        optimiser.step()
        loss.item()
        yield


def our_steps(learner: Trainer) -> Iterator[None]:
    """Ours, epoch after epoch, endlessly."""
    for epoch in range(1, 1_000_000):
        seed_epoch(SEED, epoch)
        for _ in learner.steps(epoch):
            yield


def seconds(steps: Iterator[None], batches: int) -> float:
    start = time.perf_counter()
    for _ in range(batches):
        next(steps)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path, nargs="?", default=default_log())
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    train = leave_one_out(log_of(options.log)).train
    learner = ours(train)
    mine, form, turns = our_steps(learner), form_steps(train), []
    for steps in (mine, form):
        seconds(steps, 20)
    for turn in range(1, options.turns + 1):
        turns.append((seconds(mine, options.batches), seconds(form, options.batches)))
        ours_took, form_took = turns[-1]
        print(f"turn {turn}: unveil {ours_took:6.2f} s · the form {form_took:6.2f} s of {options.batches} batches")
    fast, slow = zip(*turns, strict=True)
    epoch = len(learner.task) / options.batches
    print(
        f"itps_vs_form={sum(slow) / sum(fast):.2f} epoch_seconds={median(fast) * epoch:.1f} "
        f"form_epoch_seconds={median(slow) * epoch:.1f}"
    )


if __name__ == "__main__":
    main()
