"""What is learnt of impressions: ψ by hand, and what the penalty is on."""

import numpy as np
import pytest
import torch

from tests.propensity.impressions.seen import ITEMS, USERS, impressions
from unveil.propensity.impressions.learn import Learning, Net, _epoch
from unveil.propensity.impressions.pairs import Draw
from unveil.propensity.impressions.shown import Shown


def test_a_logit_by_hand() -> None:
    """centre + slope · recent + slope' · steady + Σ_k P_k Q_k W_hk, each hour with a factor of its own."""
    net = Net((1, 2), (np.array([[-1.0, -2.0]]), np.array([[-3.0, -4.0]])), 2, seed=0)
    with torch.no_grad():
        net.line.copy_(torch.tensor([0.5, 2.0, 0.1]))
        net.P.copy_(torch.tensor([[2.0, 3.0]]))
        net.Q.copy_(torch.tensor([[7.0, 7.0], [1.0, 0.5]]))
        net.W[5] = torch.tensor([1.0, 10.0])
    zero_B, item_B = torch.tensor([0, 0]), torch.tensor([1, 1])
    psi_B = net(zero_B, item_B, zero_B, torch.tensor([4, 5]))
    shared = 0.5 - 4.0 - 0.4
    assert psi_B.tolist() == pytest.approx([shared + 2 + 1.5, shared + 2 + 15])


@pytest.mark.parametrize("penalty", [0.0, 30.0])
def test_the_batches_of_an_epoch_have_the_penalty_once_between_them(penalty: float) -> None:
    """(penalty / 2) · (‖Q‖² + ‖W − 1‖² + ‖P‖²) beside the loss of all pairs; with P = 0 these say nothing of Q or W."""
    shown, how = Shown.of(impressions(each=1)), Learning(width=2, batch=135, penalty=penalty)
    shares = np.zeros((shown.n_days, ITEMS))
    net = Net((USERS, ITEMS), (shares, shares), 2, seed=0)
    with torch.no_grad():
        net.W.add_(torch.randn(net.W.shape, generator=torch.Generator().manual_seed(0)))
    still = torch.optim.Adam(net.parameters(), lr=0.0)  # each batch finds the weights as they were
    _epoch(net, still, Draw.mixed(3, np.ones(ITEMS)), shown, how, np.random.default_rng(0))
    assert len(shown) == 4 * 135
    for table, rest in ((net.Q, 0.0), (net.W, 1.0)):
        assert table.grad is not None
        torch.testing.assert_close(4 * 135 * table.grad, penalty * (table.detach() - rest))
    assert net.P.grad is not None
    assert net.P.grad.any()
