"""The one thing that evaluation, simulation and serving ask of a model."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import torch
from torch import Tensor, nn

from unveil.errors import UnveilError


class Scorer(Protocol):
    """Histories in, a score for every item out; the higher the score, the nearer to the top.

    `token_BL` is right-aligned, its last column is MASK: the step that is asked about.
    """

    def scores(self, token_BL: Tensor) -> Tensor:
        """scores_BV of all items at the next step."""
        ...


@contextmanager
def at_rest(scorer: Scorer) -> Iterator[None]:
    """No gradients and, in a network, no dropout while scores are asked for; the mode is restored afterwards."""
    training = isinstance(scorer, nn.Module) and scorer.training
    if isinstance(scorer, nn.Module):
        scorer.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        if isinstance(scorer, nn.Module):
            scorer.train(training)


def checked_scores(scorer: Scorer, token_BL: Tensor, n_items: int) -> Tensor:
    """The scores of a batch, refused where they cannot be ranked."""
    scores_BV = scorer.scores(token_BL)
    name = type(scorer).__name__
    if scores_BV.shape != (len(token_BL), n_items):
        expected = f"{(len(token_BL), n_items)}: a score for each history and item"
        raise UnveilError("scores of the wrong shape", where=name, found=tuple(scores_BV.shape), expected=expected)
    if bool(torch.isnan(scores_BV.amax())):
        hint = "The model has most likely diverged: lower the learning rate, or clip the weights of the estimator."
        raise UnveilError("some scores are not numbers and cannot be ranked", where=name, found="NaN", hint=hint)
    return scores_BV
