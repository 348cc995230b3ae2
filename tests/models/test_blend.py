"""Blends: their scores by hand, their shares against a search, and that they are written and read like any model."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.data.ragged import sequences_of
from tests.run_folders import small_log
from unveil.data.interactions import Sequences
from unveil.data.slots import tokens_of
from unveil.models.base import Model
from unveil.models.baselines import fitted
from unveil.models.blend import Blend, fitted_shares
from unveil.models.causal import SASRec, SASRecConfig
from unveil.serving.recommender import Recommender
from unveil.serving.server.model_store import ItemInfo, ServedModel
from unveil.serving.server.schemas import RecommendRequest


def parts_of(train: Sequences) -> list[Model]:
    network = SASRec(SASRecConfig(width=8, length=4), train.n_items, seed=3)
    return [network.eval(), fitted("ease", train), fitted("markov", train)]


def test_scores_are_weighted_sums_and_each_part_reads_what_it_can() -> None:
    train = sequences_of([[0, 1, 2, 3, 4], [2, 1, 0], [3, 4]], 5)
    parts = parts_of(train)
    blend = Blend.of(parts, np.array([0.5, 2.0, 0.25]))
    assert blend.config.length == max(part.config.length for part in parts)
    token_BL = tokens_of([np.array([0, 1, 2, 3, 4, 2, 1]), np.array([3])], 5, 8)
    found = [part.scores(token_BL[:, -part.config.length :]) for part in parts]
    expected = 0.5 * found[0] + 2 * found[1] + 0.25 * found[2]
    assert torch.allclose(blend.scores(token_BL), expected)


def test_parts_that_hardly_count_are_left_out() -> None:
    train = sequences_of([[0, 1, 2, 3, 4], [2, 1, 0], [3, 4]], 5)
    blend = Blend.of(parts_of(train), np.array([1.0, 0.0, 0.009]))
    assert [part["name"] for part in blend.config.parts] == ["sasrec"]


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_shares_are_the_maximum_of_the_likelihood(seed: int, parts: int) -> None:
    """No step from them, within what is allowed, makes the targets likelier."""
    generator = torch.Generator().manual_seed(seed)
    score_PCV = torch.randn(parts, 30, 7, generator=generator)
    target_C = torch.randint(0, 7, (30,), generator=generator)
    barred_CV = torch.rand(30, 7, generator=generator) < 0.3
    barred_CV[torch.arange(30), target_C] = False
    share_P = fitted_shares(score_PCV, barred_CV, target_C)
    assert ((share_P >= 0) & (share_P <= 5)).all()

    def likelihood(share_P: np.ndarray) -> float:
        total = 0.0
        for c in range(30):  # item by item, as the equation has it
            f_V = sum(w * score_PCV[p, c].double() for p, w in enumerate(share_P.tolist()))
            free_V = [i for i in range(7) if not barred_CV[c, i]]
            total += float(f_V[target_C[c]] - torch.logsumexp(f_V[free_V], 0))
        return total

    best, rng = likelihood(share_P), np.random.default_rng(seed)
    for size in (0.01, 0.1, 1.0):
        for _ in range(5):
            other_P = np.clip(share_P + size * rng.normal(size=parts), 0, 5)
            assert likelihood(other_P) <= best + 1e-3


def test_shares_that_made_the_choices_are_found() -> None:
    generator = torch.Generator().manual_seed(1)
    score_PCV = torch.randn(3, 20_000, 6, generator=generator)
    p_CV = torch.einsum("p,pcv->cv", torch.tensor([0.7, 0.0, 1.5]), score_PCV).softmax(-1)
    target_C = torch.multinomial(p_CV, 1, generator=generator)[:, 0]
    share_P = fitted_shares(score_PCV, torch.zeros(20_000, 6, dtype=torch.bool), target_C)
    assert share_P == pytest.approx([0.7, 0.0, 1.5], abs=0.05)


def test_a_blend_is_saved_and_loaded(tmp_path: Path) -> None:
    log = small_log()
    sequences = Sequences.of(log)
    blend = Blend.of(parts_of(sequences), np.array([0.5, 2.0, 0.25]))
    recommender = Recommender(blend, log.items, log.users, sequences, blend.config.length)
    recommender.save(tmp_path / "model")
    again = Recommender.load(tmp_path / "model")
    assert again.recommend(users=log.users.ids.to_list()).frame.equals(
        recommender.recommend(users=log.users.ids.to_list()).frame
    )


def test_a_blend_is_served(tmp_path: Path) -> None:
    log = small_log()
    sequences = Sequences.of(log)
    blend = Blend.of(parts_of(sequences), np.array([0.5, 2.0, 0.25]))
    recommender = Recommender(blend, log.items, log.users, sequences, blend.config.length)
    recommender.save(tmp_path / "model")
    served = ServedModel.load("model", tmp_path / "model", ItemInfo())
    assert served.network == "blend"
    (answer,) = served.answer([RecommendRequest(history=served.ids[:2], k=3)])
    expected = recommender.recommend_for([served.ids[:2]], k=3).frame["item_id"].to_list()
    assert [item.item_id for item in answer.items] == expected
