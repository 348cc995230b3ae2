"""Whether an ONNX model says what the network in torch says, asked on real histories.

Shapes: B histories, L tokens, V items, U users.
"""

import numpy as np
import torch
from torch import Tensor

from unveil.data.sequences import Sequences
from unveil.data.tokens import histories, tokens_of
from unveil.errors import UnveilError
from unveil.evaluation.scorer import Scorer, at_rest

#: Histories that are asked; the largest difference allowed, as a share of the spread of the scores.
ASKED, TOLERANCE = 32, 1e-4


def refuse_difference(exported: Scorer, model: Scorer, sequences: Sequences, length: int) -> float:
    """The largest difference found; a difference that could change a list is an error."""
    differences = [_difference(exported, model, token_BL) for token_BL in _questions(sequences, length)]
    largest = float(np.max(differences))  # NaN, where any of them is
    if not largest <= TOLERANCE:
        hint = "Nothing was written. Please report it, with the run's config.json."
        raise UnveilError(
            "the ONNX model differs from the network", found=f"{largest:.2g}", expected=f"{TOLERANCE:g}", hint=hint
        )
    return largest


def _questions(sequences: Sequences, length: int) -> list[Tensor]:
    """Users of every length in one batch, the longest and the shortest alone, and somebody without a history."""
    user_U = np.argsort(sequences.length_U, kind="stable")
    user_B = user_U[np.linspace(0, len(user_U) - 1, min(ASKED, len(user_U))).astype(np.int64)]
    together = histories(sequences, user_B, sequences.length_U[user_B], length)
    ends = (histories(sequences, user_B[[end]], sequences.length_U[user_B[[end]]], length) for end in (0, -1))
    return [together, *ends, tokens_of([np.zeros(0, np.int64)], sequences.n_items, length)]


def _difference(exported: Scorer, model: Scorer, token_BL: Tensor) -> float:
    """max |difference|, over the standard deviation of the scores of a history."""
    with at_rest(model):
        expected_BV = model.scores(token_BL).cpu()
    spread = max(float(expected_BV.std(dim=1, correction=0).mean()), torch.finfo(torch.float32).tiny)
    return float((exported.scores(token_BL) - expected_BV).abs().max()) / spread
