"""Presets: settings by dotted name, the reason beside each that is not plain."""

from collections.abc import Mapping
from typing import Any

#: Seconds to a few minutes: to see that all is well, and for small logs.
QUICK: Mapping[str, Any] = {
    "model.width": 32,
    "model.blocks": 1,
    "model.heads": 2,
    "model.length": 50,
    "model.dropout": 0.1,
    "task.batch_size": 64,
    "training.epochs": 40,
    "training.lr": 3e-3,  # a small network and few epochs bear a high rate
    "training.warmup": 1.0,
    "training.schedule": "linear",
    "training.validate_every": 2,
    "training.patience": 5,
}

#: What the authors' public code does, where the paper leaves it open. Sizes are those it has for ml-1m, naive.
PAPER: Mapping[str, Any] = {
    "model.width": 64,
    "model.blocks": 1,
    "model.heads": 1,
    "model.length": 100,
    "model.dropout": 0.2,
    "model.head": "untied",
    "task.batch_size": 32,
    "task.mask_probability": 0.15,
    "task.last_share": 0.0,
    "task.always_mask": False,
    "training.epochs": 100,
    "training.lr": 1e-3,
    "training.schedule": "step",  # ×0.1 from epoch 50
    "training.clip": None,
    "training.validate_every": 1,  # the best epoch by validation NDCG@10 counts; no early stop
}

#: Trained until it no longer improves: what a backbone can do before anything is debiased.
CONVERGED: Mapping[str, Any] = {
    "model.width": 64,
    "model.blocks": 2,
    "model.heads": 2,
    "model.length": 200,
    "model.dropout": 0.1,
    "model.attention_dropout": 0.0,  # lets the fused attention kernel run
    "task.batch_size": 32,  # many small steps: at equal epochs far ahead of 128 rows at twice the rate on ml-1m
    "task.mask_probability": 0.2,
    "task.last_share": 0.1,
    "training.epochs": 200,  # on ml-1m validation is flat from epoch 180 on: docs/results/ml-1m-converged
    "training.lr": 1e-3,
    "training.warmup": 5.0,
    "training.schedule": "cosine",
    "training.weight_decay": 0.01,
    "training.validate_every": 10,
    "training.patience": 5,  # fifty epochs without a gain
    "training.checkpoint_minutes": 1.0,
}

#: Where a network wants something else than BERT4Rec. Every position of a causal one is a slot, so that an epoch
#: teaches several times as much: fewer epochs are enough, and a higher dropout is needed.
_CAUSAL: Mapping[str, Any] = {
    "model.dropout": 0.2,
    "task.batch_size": 64,
    "training.epochs": 60,
    "training.warmup": 2.0,
    "training.validate_every": 5,
}
OF_NETWORK: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("converged", "sasrec"): _CAUSAL,
    ("converged", "gru4rec"): {**_CAUSAL, "model.blocks": 1},
}

PRESETS = {"quick": QUICK, "paper": PAPER, "converged": CONVERGED}
