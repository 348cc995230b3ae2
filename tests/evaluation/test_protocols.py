"""Tests."""

from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from tests.data.on_disk import many_events, on_disk, peak_of
from tests.evaluation.small import Table, histories_of, random_histories
from unveil.data import mapped
from unveil.data.splits import Split, leave_one_out
from unveil.errors import UnveilError
from unveil.evaluation import protocols
from unveil.evaluation.evaluator import Evaluator
from unveil.evaluation.protocols import Candidates, draw, most_negatives
from unveil.wording import quantity


def counts(split: Split) -> np.ndarray:
    return np.bincount(split.train.item_N, minlength=split.train.n_items)


def split_of(seed: int) -> Split:
    return leave_one_out(random_histories(np.random.default_rng(seed)))


@given(seed=st.integers(0, 5_000))
def test_negatives_are_neither_the_target_nor_seen(seed: int) -> None:
    split = split_of(seed)
    drawn = Candidates.draw(split.test, split.whole, counts(split), uniform=10, popular=5, seed=seed)
    assert drawn.protocols == ("full", "uniform-10", "popular-5")
    for negative_CN in drawn.negatives.values():
        for c, row in enumerate(negative_CN.tolist()):
            context = split.whole.history(int(split.test.user_C[c]))[: split.test.seen_C[c]]
            assert not set(row) & {*context.tolist(), int(split.test.item_C[c])}
            assert len(set(row)) == len(row)
    assert (counts(split)[drawn.negatives["popular-5"]] > 0).all()


def test_where_users_come_back_to_items_only_the_target_is_left_out() -> None:
    split = leave_one_out(histories_of([0, 1, 2, 0, 1], n_items=4))
    drawn = Candidates.draw(split.test, split.whole, counts(split), uniform=3, popular=2, exclude_seen=False)
    assert sorted(drawn.negatives["uniform-3"][0].tolist()) == [0, 2, 3]
    assert sorted(drawn.negatives["popular-2"][0].tolist()) == [0, 2]


def test_a_seed_gives_the_same_negatives_and_another_seed_others() -> None:
    split = split_of(0)

    def drawn(seed: int, popular: int = 5) -> Candidates:
        return Candidates.draw(split.test, split.whole, counts(split), uniform=10, popular=popular, seed=seed)

    assert drawn(1).fingerprint() == drawn(1).fingerprint() != drawn(2).fingerprint()
    assert np.array_equal(drawn(1).negatives["uniform-10"], drawn(1, popular=0).negatives["uniform-10"])


def test_popular_items_are_drawn_more_often() -> None:
    split = leave_one_out(random_histories(np.random.default_rng(5), n_users=400, n_items=200))
    drawn = Candidates.draw(split.test, split.whole, counts(split), uniform=20, popular=20)
    mean = {name: counts(split)[negative_CN].mean() for name, negative_CN in drawn.negatives.items()}
    unmet = [np.delete(counts(split), split.whole.history(user)).mean() for user in split.test.user_C.tolist()]
    assert mean["uniform-20"] == pytest.approx(np.mean(unmet), rel=0.05)
    assert mean["popular-20"] > 2 * mean["uniform-20"]


def test_saved_and_loaded_they_are_the_same(tmp_path: Path) -> None:
    split = split_of(1)
    drawn = Candidates.draw(split.test, split.whole, counts(split), uniform=10, popular=5, exclude_seen=False)
    drawn.save(tmp_path / "negatives.safetensors")
    loaded = Candidates.load(tmp_path / "negatives.safetensors", split.test, split.whole)
    assert loaded.fingerprint() == drawn.fingerprint()
    assert loaded.protocols == drawn.protocols
    assert not loaded.exclude_seen
    assert [path.name for path in tmp_path.iterdir()] == ["negatives.safetensors"]


def test_negatives_of_other_cases_are_refused(tmp_path: Path) -> None:
    split = split_of(1)
    Candidates.draw(split.test, split.whole, counts(split), uniform=10, popular=0).save(tmp_path / "n")
    other = replace(split.test, item_C=np.roll(split.test.item_C, 1))
    with pytest.raises(UnveilError, match="belong to other cases"):
        Candidates.load(tmp_path / "n", other, split.whole)


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "other"])
def test_a_file_that_is_none_is_refused(tmp_path: Path, damage: str) -> None:
    split, path = split_of(1), tmp_path / "n"
    Candidates.draw(split.test, split.whole, counts(split), uniform=10, popular=0).save(path)
    content = {"empty": b"", "cut": path.read_bytes()[:-7], "other": b"user,item\n1,2\n"}
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(content[damage])
    with pytest.raises(UnveilError, match=r"no such file|not a file of negatives"):
        Candidates.load(path, split.test, split.whole)


def test_the_most_negatives_can_be_drawn_and_one_more_cannot() -> None:
    split = split_of(2)
    most = most_negatives(split.test, split.whole, counts(split))

    def drawn(uniform: int, popular: int) -> Candidates:
        return Candidates.draw(split.test, split.whole, counts(split), uniform=uniform, popular=popular)

    assert len(drawn(most["uniform"], most["popular"]).negatives) == 2
    for uniform, popular in ((most["uniform"] + 1, 0), (0, most["popular"] + 1)):
        with pytest.raises(UnveilError, match="more negatives than items"):
            drawn(uniform, popular)


def test_very_many_negatives_are_drawn_the_same_and_held_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = leave_one_out(many_events(users=4000, each=9, items=60))
    disk, count_V = leave_one_out(on_disk(memory.whole, tmp_path / "columns")), counts(memory)

    def drawn(split: Split) -> Candidates:
        return Candidates.draw(split.test, split.whole, count_V, uniform=40, popular=40)

    monkeypatch.setattr(protocols, "CELLS", 60 * 50)  # how many cases are drawn together decides what is drawn
    expected = drawn(memory)
    expected.save(tmp_path / "memory")
    monkeypatch.setattr(mapped, "HELD", 1 << 10)
    monkeypatch.setattr(mapped, "BLOCK", 1 << 10)
    found = drawn(disk)
    assert peak_of(lambda: drawn(disk)) < 300_000  # each kind is 640 kB
    assert all(isinstance(negative_CN, np.memmap) for negative_CN in found.negatives.values())
    found.save(tmp_path / "disk")
    assert found.fingerprint() == expected.fingerprint()
    assert (tmp_path / "disk").read_bytes() == (tmp_path / "memory").read_bytes()
    assert Candidates.load(tmp_path / "disk", memory.test, memory.whole).fingerprint() == expected.fingerprint()
    evaluators = [
        Evaluator(split.test, split.whole, negatives, count_V, length=5)
        for split, negatives in ((disk, found), (memory, expected))
    ]
    scorer = Table.drawn(np.random.default_rng(0), 60)
    for protocol in expected.protocols:
        one, other = (evaluator.ranks(scorer, protocol) for evaluator in evaluators)
        assert np.array_equal(one, other)


def drawn(weight: list[float], n: int, barred: np.ndarray, n_cases: int, seed: int = 0) -> np.ndarray:
    barred_CV = np.broadcast_to(barred, (n_cases, len(weight)))
    return draw(np.array(weight), n, lambda part: barred_CV[part].copy(), n_cases, np.random.default_rng(seed))


def successive(weight: list[float], barred: list[int], n: int) -> dict[tuple[int, ...], float]:
    """The law of n draws one after the other, each ∝ weight among what is left, by enumeration."""
    law: dict[tuple[int, ...], float] = {}
    for order in permutations([i for i, w in enumerate(weight) if w > 0 and i not in barred], n):
        left, p = sum(w for i, w in enumerate(weight) if i not in barred), 1.0
        for item in order:
            p, left = p * weight[item] / left, left - weight[item]
        law[order] = p
    return law


@pytest.mark.parametrize(
    ("weight", "barred", "n"),
    [
        ([5.0, 3.0, 1.0, 1.0, 0.0], [], 2),  # mostly settled by rejection
        ([1.0, 1.0, 1.0, 1.0, 1.0], [2], 3),
        ([90.0, 5.0, 3.0, 2.0, 50.0], [4], 3),  # mostly left to the Gumbel keys
    ],
)
def test_follows_the_law_of_successive_draws(weight: list[float], barred: list[int], n: int) -> None:
    mask = np.isin(np.arange(len(weight)), barred)
    negative_CN = drawn(weight, n, mask, 40_000, seed=1)
    law = successive(weight, barred, n)
    found = dict.fromkeys(law, 0)
    for row in negative_CN.tolist():
        found[tuple(row)] += 1
    assert chisquare(list(found.values()), [40_000 * p for p in law.values()]).pvalue > 0.001


def test_first_draws_are_by_weight_over_a_catalogue() -> None:
    weight = [float(w) for w in np.random.default_rng(3).integers(0, 60, 200)]
    first_C = drawn(weight, 10, np.zeros(200, bool), 30_000, seed=2)[:, 0]
    count_V, expected_V = np.bincount(first_C, minlength=200), 30_000 * np.array(weight) / sum(weight)
    drawable = expected_V > 0
    assert not count_V[~drawable].any()
    assert chisquare(count_V[drawable], expected_V[drawable]).pvalue > 0.001


@given(seed=st.integers(0, 10_000), n=st.integers(1, 6))
def test_never_twice_never_barred_never_without_weight(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    weight_V, barred_CV = rng.integers(0, 4, 14).astype(float), rng.random((9, 14)) < 0.3
    left = int(((weight_V > 0) & ~barred_CV).sum(axis=1).min())
    if left < n:
        found = f"{quantity(n, 'negative')} required, {quantity(left, 'item')} to draw from"
        with pytest.raises(UnveilError, match=f"more negatives than items.*{found}"):
            draw(weight_V, n, lambda part: barred_CV[part], 9, rng)
        return
    negative_CN = draw(weight_V, n, lambda part: barred_CV[part], 9, rng)
    assert all(len(set(row)) == n for row in negative_CN.tolist())
    assert not np.take_along_axis(barred_CV, negative_CN, axis=1).any()
    assert (weight_V[negative_CN] > 0).all()


def test_everything_that_is_left_can_be_drawn() -> None:
    negative_CN = drawn([1.0, 1000.0, 1.0, 0.0, 1.0], 3, np.array([0, 1, 0, 0, 0], bool), 50)
    assert {tuple(sorted(row)) for row in negative_CN.tolist()} == {(0, 2, 4)}


def test_works_in_parts_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocols, "CELLS", 3 * 7)
    asked: list[int] = []

    def barred(part: slice) -> np.ndarray:
        asked.append(part.stop - part.start)
        return np.zeros((part.stop - part.start, 7), bool)

    assert draw(np.ones(7), 2, barred, 10, np.random.default_rng(0)).shape == (10, 2)
    assert asked == [3, 3, 3, 1]


def test_the_case_with_too_few_items_is_named() -> None:
    barred_CV = np.zeros((5, 6), bool)
    barred_CV[3, :4] = True
    with pytest.raises(UnveilError, match=r"case 3: more negatives than items.*at most 2 negatives"):
        draw(np.ones(6), 3, lambda part: barred_CV[part], 5, np.random.default_rng(0))
