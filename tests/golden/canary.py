"""Whether this machine's arithmetic is that of the machine that recorded: a small training without our code."""

import hashlib
from functools import cache

import numpy as np
import torch
from torch import nn


@cache
def canary() -> str:
    """A hash of weights after a few steps of attention, a GRU and AdamW, and of a decomposition by numpy."""
    torch.set_num_threads(1)
    state = torch.random.get_rng_state()
    torch.manual_seed(0)
    embedding, block, gru = nn.Embedding(30, 8), nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), nn.GRU(8, 8)
    parts = nn.ModuleList([embedding, block, gru])
    optimiser = torch.optim.AdamW(parts.parameters(), lr=0.01)
    item_BL = torch.randint(30, (16, 10))
    for _ in range(5):
        logits_BLV = gru(block(embedding(item_BL)))[0] @ embedding.weight.T
        loss = nn.functional.cross_entropy(logits_BLV.flatten(0, 1), item_BL.flatten())
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    torch.random.set_rng_state(state)
    return hashlib.sha256(b"".join(w.detach().numpy().tobytes() for w in parts.parameters()) + _numpy()).hexdigest()[
        :16
    ]


def _numpy() -> bytes:
    x_ND = np.random.default_rng(0).standard_normal((40, 8))
    return np.linalg.inv(np.exp(x_ND.T @ x_ND / 40)).tobytes()
