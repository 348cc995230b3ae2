"""The density ratio of standard against random clicks finds the power of popularity that exposure was drawn with."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from unveil.data.interactions import Interactions, Sequences
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.propensity.build import build, is_popularity
from unveil.propensity.popularity import _DensityRatio, density_ratio

ITEMS = 40


def drawn(power: float, folder: Path) -> tuple[Interactions, Path]:
    """Standard clicks on i ∝ θ_i appeal_i = popularity_i, random ones ∝ appeal_i = popularity_i^(1 − power)."""
    rng = np.random.default_rng(0)
    popularity_V = np.exp(rng.normal(size=ITEMS))
    for kind, chance_V in (("log", popularity_V), ("random", popularity_V ** (1 - power))):
        item_N = rng.choice(ITEMS, 20_000, p=chance_V / chance_V.sum())
        user_N = rng.integers(200, size=len(item_N))
        frame = pl.DataFrame({"user_id": user_N, "item_id": item_N, "timestamp": np.arange(len(item_N))})
        frame.write_csv(folder / f"{kind}.csv")
    return Interactions.read(folder / "log.csv"), folder / "random.csv"


@pytest.mark.parametrize("power", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("kind", ["static", "temporal"])
def test_the_power_of_popularity_is_found(power: float, kind: str, tmp_path: Path) -> None:
    log, random = drawn(power, tmp_path)
    train = Sequences.of(log)
    model = build(f"density-ratio-{kind}", {"slice": str(random)}, train, log=log)
    assert isinstance(model, _DensityRatio)
    assert model.exponent == pytest.approx(power, abs=0.06)
    damped = build(f"damped-{kind}", {"exponent": model.exponent}, train)
    slots = Slots(torch.zeros(ITEMS, dtype=torch.int64), torch.arange(ITEMS), torch.arange(ITEMS))
    torch.testing.assert_close(model(slots), damped(slots), rtol=0, atol=0)
    torch.testing.assert_close(model.of_all(slots), damped.of_all(slots), rtol=0, atol=0)
    assert not is_popularity(model)


def test_it_is_a_logistic_regression() -> None:
    """The likelihood of every click by itself, each kind with half of the weight, over a grid."""
    x_C, standard_C, random_C = np.array([0.0, 1.0, 2.5]), np.array([2, 5, 9]), np.array([3, 2, 1])
    x_N = np.concatenate([np.repeat(x_C, standard_C), np.repeat(x_C, random_C)])
    y_N = np.repeat([1.0, -1.0], [standard_C.sum(), random_C.sum()])
    weight_N = np.where(y_N > 0, 1 / standard_C.sum(), 1 / random_C.sum())
    a, b = np.meshgrid(np.linspace(-4, 2, 301), np.linspace(-1, 3, 401), indexing="ij")
    loss = sum(w * np.log1p(np.exp(-y * (a + b * x))) for w, y, x in zip(weight_N, y_N, x_N, strict=True))
    assert density_ratio(x_C, standard_C, random_C) == pytest.approx(b.ravel()[np.argmin(loss)], abs=0.02)


def test_items_that_are_never_shown_at_random_do_not_count(tmp_path: Path) -> None:
    """Without the 20 most popular among the random rows, they look like over-exposed; candidates say they are not."""
    log, random = drawn(0.4, tmp_path)
    train, ids = Sequences.of(log), log.items.ids.to_list()
    pool = [ids[place] for place in np.argsort(train.count_V)[:-20]]
    rows = pl.read_csv(random, infer_schema=False)
    rows.filter(pl.col("item_id").is_in(pool)).write_csv(random)
    (tmp_path / "items.txt").write_text("\n".join(pool))
    named = {"slice": str(random), "candidates": str(tmp_path / "items.txt")}
    right = build("density-ratio-static", named, train, log=log)
    wrong = build("density-ratio-static", {"slice": str(random)}, train, log=log)
    assert isinstance(right, _DensityRatio)
    assert isinstance(wrong, _DensityRatio)
    assert right.exponent == pytest.approx(0.4, abs=0.1)
    assert wrong.exponent > right.exponent + 0.5


def test_bad_input_is_one_message(tmp_path: Path) -> None:
    log, random = drawn(1.0, tmp_path)
    train = Sequences.of(log)
    with pytest.raises(UnveilError, match="needs random rows"):
        build("density-ratio-static", {}, train, log=log)
    pl.DataFrame({"user_id": ["a"], "item_id": ["unknown"]}).write_csv(random)
    with pytest.raises(UnveilError, match="no random row is of an item"):
        build("density-ratio-static", {"slice": str(random)}, train, log=log)
    with pytest.raises(UnveilError, match="nowhere"):
        build("density-ratio-static", {"slice": str(random), "candidates": "nowhere.txt"}, train, log=log)
