import re
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.evaluation.small import Table, histories_of, random_histories
from tests.run_folders import TINY, Finished, small_log, write_log
from unveil.data.indexing import Vocabulary
from unveil.errors import UnveilError, UnveilWarning
from unveil.runs.config import Experiment
from unveil.runs.train import run
from unveil.serving.recommender import Recommender
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World
from unveil.training.checkpoint import Best, Epoch
from unveil.training.progress import Silent


@dataclass(frozen=True)
class ByLength:
    """score_i = (length of the history) · [i even] − i: what is listed depends on how much is shown."""

    n_items: int

    def scores(self, token_BL: Tensor) -> Tensor:
        seen_B1 = (token_BL < self.n_items).sum(1, keepdim=True)
        item_V = torch.arange(self.n_items)
        return (seen_B1 * (item_V % 2 == 0) - item_V).float()


def by_hand() -> Recommender:
    sequences = histories_of([0, 1], [3], [], n_items=4)
    return Recommender(ByLength(4), Vocabulary("abcd"), Vocabulary(["u0", "u1", "u2"]), sequences, 10)


def lists(frame: pl.DataFrame) -> dict[str, list[str]]:
    return {str(user): part["item_id"].to_list() for (user,), part in frame.group_by("user_id", maintain_order=True)}


def test_by_hand() -> None:
    recommender = by_hand()
    assert lists(recommender.recommend(k=2).frame) == {"u0": ["c", "d"], "u1": ["a", "b"], "u2": ["a", "b"]}
    assert lists(recommender.recommend(["u0"], k=3, filter_seen=False).frame) == {"u0": ["a", "c", "b"]}
    after = recommender.recommend_for([["d", "c", "b"], ["b"]], k=4)
    assert lists(after.frame) == {"0": ["a"], "1": ["a", "c", "d"]}
    assert after.frame["rank"].to_list() == [1, 1, 2, 3]
    assert after.frame["score"].to_list() == [3.0, 1.0, -1.0, -3.0]


def test_a_recommender_says_what_it_is(finished: Finished) -> None:
    assert repr(by_hand()) == "Recommender(ByLength, 3 users, 4 items, 10 tokens a history)"
    assert repr(finished.run.recommender) == "Recommender(sasrec, 40 users, 30 items, 8 tokens a history)"


def test_the_answer_has_its_four_columns_even_when_it_is_empty() -> None:
    wanted = {"user_id": pl.String, "item_id": pl.String, "score": pl.Float32, "rank": pl.Int32}
    for answer in (by_hand().recommend(k=1), by_hand().recommend([], k=1), by_hand().recommend_for([], k=1)):
        assert answer.frame.schema == wanted


def test_users_are_answered_in_the_order_in_which_they_were_asked_for() -> None:
    frame = by_hand().recommend(["u2", "u0", "u2"], k=1).frame
    assert frame["user_id"].to_list() == ["u2", "u0", "u2"]


def test_unknown_ids_are_passed_over_and_reported() -> None:
    recommender = by_hand()
    answer = recommender.recommend(["u1", "who", "u0", "what"], k=1)
    assert (answer.unknown_users, answer.frame["user_id"].to_list()) == (("who", "what"), ["u1", "u0"])
    answer = recommender.recommend_for([["x", "a"], ["b", "y", "x"]], k=4)
    assert answer.unknown_items == ("x", "y")
    assert answer.frame.equals(recommender.recommend_for([["a"], ["b"]], k=4).frame)


def test_nobody_and_nothing_known_is_an_error() -> None:
    with pytest.raises(UnveilError, match=r"none of the users is known: found 'who'\. Give a history instead"):
        by_hand().recommend(["who"], k=1)
    with pytest.raises(UnveilError, match=r"no item of the history is known: found 'x, y'"):
        by_hand().recommend_for([["x", "y"]], k=1)
    with pytest.raises(UnveilError, match=r"history 1: no item"):
        by_hand().recommend_for([["a"], ["y"]], k=1)


@pytest.mark.parametrize("k", [0, -1, 5])
def test_k_beyond_the_catalogue_is_an_error(k: int) -> None:
    with pytest.raises(UnveilError, match=rf"k is out of range: found {k}, expected between 1 and the 4 items"):
        by_hand().recommend(k=k)
    with pytest.raises(UnveilError, match=f"k is out of range: found {k}"):
        by_hand().recommend_for([["a"]], k=k)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 40), filter_seen=st.booleans(), levels=st.sampled_from([2, 1000]))
def test_lists_are_what_sorting_gives(seed: int, k: int, filter_seen: bool, levels: int) -> None:
    """Against plain Python: score everything, leave out what was seen, sort by score and then by place."""
    rng = np.random.default_rng(seed)
    sequences = random_histories(rng)
    table = Table.drawn(rng, sequences.n_items, levels)
    items = Vocabulary([f"{n:03d}" for n in range(sequences.n_items)])
    users = Vocabulary([f"u{n:03d}" for n in range(sequences.n_users)])
    frame = Recommender(table, items, users, sequences, 6).recommend(k=k, filter_seen=filter_seen).frame
    expected = []
    for user in range(sequences.n_users):
        history = sequences.history(user)
        score = table.value_VV[history[-1]]
        left = [item for item in range(sequences.n_items) if not (filter_seen and item in history)]
        for rank, item in enumerate(sorted(left, key=lambda item: (-score[item], item))[:k], start=1):
            expected.append((users[user], items[item], float(score[item]), rank))
    assert frame.rows() == expected


def test_many_users_are_answered_as_few_are(finished: Finished) -> None:
    """More than one batch of users and of histories."""
    recommender = finished.run.recommender
    asked = [recommender.users[n % 40] for n in range(700)]
    many = recommender.recommend(asked, k=5).frame
    assert many.slice(0, 200).equals(many.slice(200, 200))
    one = recommender.recommend(asked[:1], k=5).frame
    assert many.head(5)["item_id"].equals(one["item_id"])
    assert np.allclose(many.head(5)["score"], one["score"], atol=1e-5)
    after = recommender.recommend_for([["001", "002"]] * 600, k=2).frame
    assert after["user_id"].to_list() == [str(n) for n in range(600) for _ in range(2)]
    assert after["item_id"].n_unique() == 2


class TestFit:
    """A recommender in one call is the recommender of a run with the same settings."""

    def test_it_is_what_a_run_gives(self, finished: Finished) -> None:
        with pytest.warns(UnveilWarning, match="popularity stands in for exposure"):
            fitted = Recommender.fit(small_log(), estimator="itps", preset="quick", overrides=TINY)
        assert fitted.recommend().frame.equals(finished.run.recommender.recommend().frame)
        assert fitted.users == finished.run.recommender.users

    def test_the_default_is_what_the_command_serves(self, tmp_path: Path) -> None:
        write_log(tmp_path / "log.csv")
        experiment = Experiment.of("auto", {**TINY, "data.log": str(tmp_path / "log.csv")})
        run(experiment, tmp_path / "run", tell=lambda _: None, baselines=False)
        served = Recommender.load(tmp_path / "run")
        fitted = Recommender.fit(small_log(), overrides=TINY)
        assert fitted.recommend().frame.equals(served.recommend().frame)
        assert fitted.length == served.length

    def test_what_is_doubtful_is_a_warning_at_the_call(self) -> None:
        overrides = {**TINY, "training.epochs": 1, "estimator.exponent": 0}
        with pytest.warns(UnveilWarning) as told:
            Recommender.fit(small_log(), estimator="ips", overrides=overrides)
        assert [re.split(r"[:.(]", str(each.message))[0].strip() for each in told] == [
            "The weights are all but equal",
            "popularity stands in for exposure",
        ]
        assert {each.filename for each in told} == {__file__}

    def test_true_exposure_is_no_proxy(self) -> None:
        world = World.builtin(WorldSpec(users=30, items=20, steps=12), seed=1)
        log = world.log(np.random.default_rng(0))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            Recommender.fit(log, estimator="itps", overrides={**TINY, "training.epochs": 1}, world=world)
        assert not [each for each in told if "popularity" in str(each.message)]

    def test_saved_and_loaded(self, tmp_path: Path) -> None:
        fitted = Recommender.fit(small_log(), overrides={**TINY, "training.epochs": 1})
        fitted.save(tmp_path / "model")
        loaded = Recommender.load(tmp_path / "model")
        assert loaded.recommend().frame.equals(fitted.recommend().frame)

    def test_it_can_be_watched(self) -> None:
        class Count(Silent):
            epochs = 0

            def epoch(self, epoch: Epoch, best: Best | None) -> None:
                self.epochs += 1
                assert best is not None

        watch = Count()
        Recommender.fit(small_log(), overrides=TINY, watch=watch)
        assert watch.epochs == 3

    def test_a_world_gives_the_truth_and_without_one_there_is_none(self) -> None:
        world = World.builtin(WorldSpec(users=30, items=20, steps=12), seed=1)
        log = world.log(np.random.default_rng(0))
        fitted = Recommender.fit(log, estimator="ideal", overrides={**TINY, "training.epochs": 1}, world=world)
        assert len(fitted.items) == len(log.items)
        with pytest.raises(UnveilError, match="'ideal' needs a world"):
            Recommender.fit(log, estimator="ideal", overrides=TINY)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"estimator": "itsp"}, "Did you mean 'itps'"),
            ({"preset": "qiuck"}, "Did you mean 'quick'"),
            ({"overrides": {"model.widht": 3}}, r"Did you mean 'model\.width'"),
        ],
    )
    def test_what_is_wrong_is_named(self, arguments: dict[str, object], message: str) -> None:
        with pytest.raises(UnveilError, match=message):
            Recommender.fit(small_log(), **arguments)  # type: ignore[arg-type]
