"""What every registered estimator promises. A new one is tested here by being registered."""

import pytest
import torch

from tests.estimators.toys import Toy, random_world
from unveil.data.slots import Slots
from unveil.errors import UnveilWarning
from unveil.estimators.base import ESTIMATORS, Estimator, Signal, build, cloze_risk
from unveil.estimators.inverse import ITPS, weight_diagnostics
from unveil.estimators.losses import Wide
from unveil.propensity.build import build as propensity
from unveil.propensity.known import KnownTemporal
from unveil.studies.arms import Variant, changes_of
from unveil.training.checkpoint import differences

TOY = Toy.drawn(random_world(users=30), impressions=1.0)


@pytest.fixture(params=list(ESTIMATORS))
def estimator(request: pytest.FixtureRequest) -> Estimator:
    needs = ESTIMATORS[request.param].needs
    known = {"static": "known-static", "temporal": "known-temporal"}.get(needs)
    theta = propensity(known, {}, TOY.train, world=TOY.world) if known else None
    few = {"batches": 50} if "batches" in ESTIMATORS.options(request.param) else {}  # what is promised hangs on none
    return build(request.param, few, propensity=theta, world=TOY.world, train=TOY.train, log=TOY.log)


def rows(slots: Slots, order: torch.Tensor) -> Slots:
    assert slots.event_M is not None
    return Slots(slots.user_M[order], slots.item_M[order], slots.step_M[order], slots.event_M[order])


def wide(signal: Signal) -> list[Wide]:
    """What a signal has of every item."""
    parts = (signal.offset_MV, signal.rival_MV, signal.imputed_MV, signal.theta_MV)
    return [part_MV for part_MV in parts if part_MV is not None]


def test_one_target_and_one_weight_a_slot(estimator: Estimator) -> None:
    signal = estimator(TOY.slots)
    assert signal.target_M.shape == signal.weight_M.shape == (len(TOY.slots),)
    assert signal.target_M.dtype == torch.int64
    assert 0 <= signal.target_M.min() <= signal.target_M.max() < TOY.world.n_items
    assert signal.weight_M.isfinite().all()
    assert (signal.weight_M >= 0).all()
    assert not signal.weight_M.requires_grad
    for table_MV in wide(signal):
        assert table_MV[:].shape == (len(TOY.slots), TOY.world.n_items)
        assert not table_MV[:].requires_grad


def test_a_slot_is_judged_by_itself(estimator: Estimator) -> None:
    order = torch.randperm(len(TOY.slots), generator=torch.Generator().manual_seed(0))
    whole, shuffled = estimator(TOY.slots), estimator(rows(TOY.slots, order))
    assert torch.equal(whole.target_M[order], shuffled.target_M)
    torch.testing.assert_close(whole.weight_M[order], shuffled.weight_M)
    for whole_MV, shuffled_MV in zip(wide(whole), wide(shuffled), strict=True):
        torch.testing.assert_close(whole_MV[order], shuffled_MV[:])
        torch.testing.assert_close(whole_MV[3:9], whole_MV[:][3:9])


def test_the_same_slots_give_the_same_signal(estimator: Estimator) -> None:
    first, second = estimator(TOY.slots), estimator(TOY.slots)
    assert torch.equal(first.target_M, second.target_M)
    assert torch.equal(first.weight_M, second.weight_M)


def test_no_slots_no_signal(estimator: Estimator) -> None:
    signal = estimator(TOY.slots.part(0, 0))
    assert len(signal.target_M) == len(signal.weight_M) == 0


def test_it_can_be_trained_with(estimator: Estimator) -> None:
    h_MD = torch.randn(len(TOY.slots), 4, generator=torch.Generator().manual_seed(1), requires_grad=True)
    table_VD, bias_V = torch.randn(TOY.world.n_items, 4), torch.zeros(TOY.world.n_items)
    signal = estimator(TOY.slots)
    risk = cloze_risk(h_MD, table_VD, bias_V, signal)
    assert risk.isfinite()
    (gradient,) = torch.autograd.grad(risk, h_MD)
    assert gradient.isfinite().all()
    assert gradient.any()


def test_it_says_what_it_is(estimator: Estimator) -> None:
    assert isinstance(estimator.self_normalised, bool)
    assert estimator.needs in ("nothing", "static", "temporal", "ratings", "impressions", "truth")
    assert any(mark in (type(estimator).__doc__ or "") for mark in ("eq. of", "∝"))  # its equation
    assert ESTIMATORS[estimator.name] is type(estimator)


class Imputing(ITPS):
    """One of somebody's own: half of each weight is left to what is imputed."""

    def __call__(self, slots: Slots) -> Signal:
        imputed_MV = torch.full((len(slots), TOY.world.n_items), 0.5 / TOY.world.n_items)
        return Signal(slots.item_M, 0.5 * self.inverse(slots), imputed_MV=imputed_MV)


def test_propensities_count_as_clipped_whoever_imputes() -> None:
    plain, mine = (weight_diagnostics(kind(KnownTemporal(TOY.world), 0.5), TOY.slots) for kind in (ITPS, Imputing))
    assert plain is not None
    assert mine is not None
    assert mine.clipped == plain.clipped > 0


@pytest.mark.parametrize(("old", "new"), ESTIMATORS.aliases.items())
def test_old_names_are_found_with_a_warning(old: str, new: str) -> None:
    with pytest.warns(UnveilWarning, match=f"{old}.*{new}"):
        assert ESTIMATORS[old].name == new
    with pytest.warns(UnveilWarning):
        assert Variant.of(old).estimator == new
    changes = [f"{old}:training.epochs=2"]
    assert changes_of(new, changes) == changes_of(old, changes) == {"training.epochs": 2}


def test_old_names_are_no_difference_between_two_runs() -> None:
    begun = {"estimator": {"name": "ever"}, "changes": ["tempered:model.width=8", "model.width=4"], "seed": 0}
    now = {"estimator": {"name": "wmf-distilled"}, "changes": ("corrected-tempered:model.width=8", "model.width=4")}
    assert [name for name, *_ in differences(begun, now)] == ["seed"]
    assert differences({"space": {"estimator.name": ["ever", "itps"]}}, {"space": {"estimator.name": ["ips", "itps"]}})
    kept = ["however", "ever/log.csv", "itps@noisy:1", "corrected", 3, None]
    assert ESTIMATORS.current_words(kept) == kept
    arm = "corrected-taught@popularity+clip=0.1"
    assert ESTIMATORS.current_words(arm) == "corrected-distilled@popularity+clip=0.1"
