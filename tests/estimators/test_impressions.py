"""The loss on impressions: by hand, by brute force over a log, its gradient, and the click rates that it finds."""

from dataclasses import replace
from math import exp, log

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from torch import Tensor

from tests.estimators.test_losses import parts
from unveil.data.batches import ClozeTask, NextItemTask
from unveil.data.indexing import Vocabulary
from unveil.data.interactions import Interactions, Sequences
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.estimators.base import Signal, build, cloze_risk
from unveil.estimators.inverse import weight_diagnostics
from unveil.estimators.losses import Skips

ITEMS = 6


def feed(item: list[int], clicked: list[bool], user: list[int] | None = None) -> Interactions:
    """One item at a time, in this order."""
    rows = len(item)
    return Interactions(
        np.array(user or [0] * rows, np.int32),
        np.array(item, np.int32),
        Vocabulary(["a", "b", "c"]),
        Vocabulary([f"i{item}" for item in range(ITEMS)]),
        time=np.arange(rows),
        clicked=np.array(clicked),
    )


def random_feed(seed: int, rows: int = 60) -> Interactions:
    rng = np.random.default_rng(seed)
    clicked = rng.random(rows) < 0.4
    clicked[-3:] = True  # something to learn from
    clicked[0] = False
    return feed(rng.integers(ITEMS, size=rows).tolist(), clicked.tolist(), sorted(rng.integers(3, size=rows).tolist()))


def signal(log: Interactions, slots: Slots, **options: object) -> Signal:
    return build("impressions", options, train=Sequences.of(log), log=log)(slots)


def every_click(log: Interactions) -> Slots:
    return NextItemTask(Sequences.of(log), 100, 8).slots


def test_what_was_shown_since_the_click_before_goes_with_a_click() -> None:
    """Shown 0, 1, clicked 2, clicked 3, shown 4, clicked 5, shown 0 (before no click)."""
    log = feed([0, 1, 2, 3, 4, 5, 0], [False, False, True, True, False, True, False])
    skips = signal(log, every_click(log)).skips
    assert skips is not None
    assert skips.slot_P.tolist() == [0, 0, 2]
    assert skips.item_P.tolist() == [0, 1, 4]
    latest = signal(log, every_click(log), most=1).skips
    assert latest is not None
    assert latest.slot_P.tolist() == [0, 2]
    assert latest.item_P.tolist() == [1, 4]
    other_order = signal(log, every_click(log).at(torch.tensor([2, 1, 0]))).skips
    assert other_order is not None
    assert other_order.slot_P.tolist() == [0, 2, 2]
    assert other_order.item_P.tolist() == [4, 0, 1]


def test_the_loss_by_hand() -> None:
    """Item 0, with logit log 3, was clicked after item 1, with logit log 2; item 2 has logit 0."""
    network = torch.ones(1, 1), torch.tensor([[3.0], [2.0], [1.0]]).log(), torch.zeros(3)
    target_M = torch.tensor([0])
    for form, expected in (("pairwise", log(1 + 2 / 3)), ("pointwise", log(1 + 1 / 3) + log(1 + 2))):
        skips = Skips(torch.tensor([0]), torch.tensor([1]), form, 0.5)
        for softmax in (0.0, 2.0):
            loss = skips.loss(*network, target_M, torch.tensor([softmax]))
            assert loss.item() == pytest.approx(0.5 * expected + softmax * log(6 / 3), rel=1e-6)


def brute_force(logits_MV: Tensor, log: Interactions, form: str) -> float:
    """Row by row, with everything shown and not clicked since the user's click before."""
    assert log.clicked is not None
    total, waiting, slot = 0.0, dict[int, list[int]](), 0
    for row in range(len(log)):  # rows are by user, then time; so are slots
        user, item = int(log.user[row]), int(log.item[row])
        if not log.clicked[row]:
            waiting.setdefault(user, []).append(item)
            continue
        z_V = logits_MV[slot].tolist()
        others = waiting.pop(user, [])
        if form == "pointwise":
            total += log_1p_exp(-z_V[item]) + sum(log_1p_exp(z_V[j]) for j in others)
        else:
            total += sum(log_1p_exp(z_V[j] - z_V[item]) for j in others)
        slot += 1
    return total


def log_1p_exp(x: float) -> float:
    return log(1 + exp(x))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(["pairwise", "pointwise"]), st.sampled_from([0.0, 0.7]))
def test_against_brute_force_over_a_log(seed: int, form: str, softmax: float) -> None:
    log = random_feed(seed)
    slots = every_click(log)
    h_MD, table_VD, bias_V = parts(len(slots), ITEMS, 4, seed)
    found = signal(log, slots, loss=form, weight=0.3, softmax=softmax)
    plain = cloze_risk(h_MD, table_VD, bias_V, build("naive", {})(slots), normaliser=1.0)
    expected = softmax * plain.item() + 0.3 * brute_force(h_MD @ table_VD.T + bias_V, log, form)
    assert cloze_risk(h_MD, table_VD, bias_V, found, normaliser=1.0).item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("form", ["pairwise", "pointwise"])
@pytest.mark.parametrize("softmax", [0.0, 1.0])
def test_the_gradient_against_finite_differences(form: str, softmax: float) -> None:
    log = random_feed(3)
    found = signal(log, every_click(log), loss=form, softmax=softmax)
    network = [part.detach().double().requires_grad_() for part in parts(len(found.target_M), ITEMS, 3)]

    def risk(h_MD: Tensor, table_VD: Tensor, bias_V: Tensor) -> Tensor:
        return cloze_risk(h_MD, table_VD, bias_V, found)

    assert torch.autograd.gradcheck(risk, network)


@pytest.mark.parametrize("form", ["pairwise", "pointwise"])
def test_the_parts_of_a_batch_add_up_to_the_whole(form: str) -> None:
    log = random_feed(1)
    slots = every_click(log)
    h_MD, table_VD, bias_V = parts(len(slots), ITEMS, 3)

    def risk(start: int, stop: int) -> Tensor:
        part = signal(log, slots.part(start, stop), loss=form)
        return cloze_risk(h_MD[start:stop], table_VD, bias_V, part, normaliser=9.0)

    torch.testing.assert_close(risk(0, len(slots)), risk(0, 7) + risk(7, len(slots)))


def test_without_weight_it_is_naive() -> None:
    log = random_feed(2)
    slots = every_click(log)
    p = parts(len(slots), ITEMS, 3)
    mine, naive = (cloze_risk(*p, each) for each in (signal(log, slots, weight=0.0), build("naive", {})(slots)))
    assert torch.equal(mine, naive)


def test_pairwise_is_the_same_for_any_level_of_a_slot_and_pointwise_is_not() -> None:
    log = random_feed(4)
    slots = every_click(log)
    h_MD, table_VD, bias_V = (part.detach() for part in parts(len(slots), ITEMS, 3))
    for form, same in (("pairwise", True), ("pointwise", False)):
        found = signal(log, slots, loss=form, softmax=0.0)
        before, after = (cloze_risk(h_MD, table_VD, bias_V + level, found).item() for level in (0.0, 1.0))
        assert (before == pytest.approx(after, rel=1e-5)) is same


def test_pointwise_alone_finds_the_click_rates() -> None:
    """With f the same for all histories, it is least where σ(f_i) is the share of i's impressions that were clicked."""
    log = random_feed(5, rows=300)
    found = signal(log, every_click(log), loss="pointwise", softmax=0.0)
    assert found.skips is not None
    shown_V = np.bincount(found.skips.item_P, minlength=ITEMS)
    click_V = np.bincount(found.target_M, minlength=ITEMS)
    nothing_MD, nothing_VD = (torch.zeros(rows, 1, dtype=torch.float64) for rows in (len(found.target_M), ITEMS))

    def risk(f_V: np.ndarray) -> tuple[float, np.ndarray]:
        bias_V = torch.from_numpy(f_V).requires_grad_()
        loss = cloze_risk(nothing_MD, nothing_VD, bias_V, found)
        return loss.item(), torch.autograd.grad(loss, bias_V)[0].numpy()

    f_V = minimize(risk, np.zeros(ITEMS), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    np.testing.assert_allclose(1 / (1 + np.exp(-f_V)), click_V / (click_V + shown_V), atol=1e-4)


def test_the_cloze_task_has_them_at_the_events_that_are_masked() -> None:
    log = random_feed(6)
    train = Sequences.of(log)
    (batch,) = ClozeTask(train, 100, 8, 0.5).epoch(0)
    whole, masked = signal(log, every_click(log)).skips, signal(log, batch.slots).skips
    assert whole is not None
    assert masked is not None
    clicks = every_click(log).event_M
    assert batch.slots.event_M is not None
    assert clicks is not None
    row_of = {row: slot for slot, row in enumerate(clicks.tolist())}
    assert 0 < len(masked.item_P) < len(whole.item_P)
    for slot, row in enumerate(batch.slots.event_M.tolist()):
        assert masked.item_P[masked.slot_P == slot].tolist() == whole.item_P[whole.slot_P == row_of[row]].tolist()


def test_what_is_held_out_is_not_learnt_from() -> None:
    log = feed([0, 1, 2, 3, 4, 5], [False, True, False, True, False, True])
    whole = Sequences.of(log)
    train = whole.cut(np.zeros(3, np.int64), np.array([1, 0, 0]))
    found = build("impressions", {}, train=train, log=log)(NextItemTask(train, 9, 8).slots).skips
    assert found is not None
    assert found.item_P.tolist() == [0]


def test_signals_move_with_their_impressions_and_have_no_weights_to_diagnose() -> None:
    log = random_feed(7)
    moved = signal(log, every_click(log)).to("meta").skips
    assert moved is not None
    assert moved.slot_P.device.type == moved.item_P.device.type == "meta"
    assert weight_diagnostics(build("impressions", {}, train=Sequences.of(log), log=log), every_click(log)) is None


def test_a_log_without_impressions_is_refused() -> None:
    log = feed([0, 1, 2, 3], [True] * 4)
    for without in (log, replace(log, clicked=None), None):
        with pytest.raises(UnveilError, match="'impressions' needs a log with impressions without a click"):
            build("impressions", {}, train=Sequences.of(log), log=without)
    late = feed([0, 1, 2, 3], [True, True, True, False])
    with pytest.raises(UnveilError, match="finds no impression without a click before a click of training"):
        build("impressions", {}, train=Sequences.of(late), log=late)


@pytest.mark.parametrize(
    "options", [{"loss": "listwise"}, {"weight": -1.0}, {"softmax": -0.1}, {"most": 0}, {"weight": 0.0, "softmax": 0.0}]
)
def test_out_of_range(options: dict[str, object]) -> None:
    log = random_feed(8)
    value = 0 if len(options) > 1 else next(iter(options.values()))
    with pytest.raises(UnveilError, match=rf"impressions\.{next(iter(options))}.*: out of range: found '?{value}\b"):
        signal(log, every_click(log), **options)
