"""Numbers for every (user, item, block) from a few small tables that are learnt: logits of exposure, or liking.

Shapes: U users, V items, C blocks, K factors, B takes of a batch, S items looked at.
"""

import numpy as np
import torch
from torch import Tensor, nn

from unveil.propensity.choices.takes import Takes, Values
from unveil.propensity.factors import Factors

#: The logit of exposure at which a descent begins: about one item in ten.
START = -2.0
#: Of the first factors.
_SPREAD = 0.1


class Tables(nn.Module):
    """x_sib = centre + a_s + d_i + Σ_k P_sk Q_ik W_bk; where it is not `personal`, a_s = 0 and P_sk = 1.

    Drawn to 0 as by normal priors: of precision `bias` for a and d, of precision `penalty` for the factors. W is drawn
    to 1 where users have factors, so that at first all blocks are alike, and to 0 where they have not.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        width: int,
        centre: float,
        *,
        personal: bool = True,
        bias: float = 1.0,
        penalty: float = 8.0,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        users, items, blocks = shape
        self.personal, self.bias, self.penalty = personal, bias, penalty
        self.centre = nn.Parameter(torch.tensor(centre))
        self.d_V = nn.Parameter(torch.zeros(items))
        self.Q_VK = nn.Parameter(_SPREAD * torch.randn(items, width, generator=generator))
        W_CK = torch.ones(blocks, width) if personal else _SPREAD * torch.randn(blocks, width, generator=generator)
        self.W_CK = nn.Parameter(W_CK, requires_grad=blocks > 1)
        self.a_U = nn.Parameter(torch.zeros(users), requires_grad=personal)
        P_UK = _SPREAD * torch.randn(users, width, generator=generator) if personal else torch.ones(users, width)
        self.P_UK = nn.Parameter(P_UK, requires_grad=personal)

    def own(self, user_B: Tensor, item_B: Tensor, block_B: Tensor) -> Tensor:
        """x_B of one item each."""
        product_BK = self.P_UK[user_B] * self.Q_VK[item_B] * self.W_CK[block_B]
        return self.centre + self.a_U[user_B] + self.d_V[item_B] + product_BK.sum(1)

    def among(self, user_B: Tensor, block_B: Tensor, item_S: Tensor) -> Tensor:
        """x_BS of the same items for all."""
        row_BK = self.P_UK[user_B] * self.W_CK[block_B]
        return self.centre + self.a_U[user_B, None] + self.d_V[item_S] + row_BK @ self.Q_VK[item_S].T

    def size(self) -> Tensor:
        """Minus the logarithm of the prior, up to a constant."""
        rest = 1.0 if self.personal else 0.0
        biases = self.d_V.square().sum() + self.a_U.square().sum()
        factors = self.Q_VK.square().sum() + (self.W_CK - rest).square().sum()
        if self.personal:
            factors = factors + self.P_UK.square().sum()
        return (self.bias * biases + self.penalty * factors) / 2

    def factors(self) -> Factors:
        """The same numbers as factors, a block in the place of a step."""
        P_UK, Q_VK, W_CK, a_U, d_V = (
            table.detach().numpy() for table in (self.P_UK, self.Q_VK, self.W_CK, self.a_U, self.d_V)
        )
        return Factors.of(P_UK, Q_VK, W_CK).biased(user_U=a_U + float(self.centre.detach()), item_V=d_V)


class Line(nn.Module):
    """x_ib = centre + slope · log popularity of item i in block b: two numbers are learnt.

    A slope below 0 says that popularity is no exposure at all: what is found then is 0.
    """

    def __init__(self, log_popularity_CV: Values, centre: float) -> None:
        super().__init__()
        self.x_CV = torch.from_numpy(log_popularity_CV.astype(np.float32))
        self.centre, self.slope = nn.Parameter(torch.tensor(centre)), nn.Parameter(torch.tensor(0.0))

    def own(self, user_B: Tensor, item_B: Tensor, block_B: Tensor) -> Tensor:
        """x_B of one item each."""
        return self.centre + self.slope * self.x_CV[block_B, item_B]

    def among(self, user_B: Tensor, block_B: Tensor, item_S: Tensor) -> Tensor:
        """x_BS of the same items for all."""
        return self.centre + self.slope * self.x_CV[block_B][:, item_S]

    def size(self) -> Tensor:
        """Of the slope: without evidence it is 0."""
        return self.slope.square() / 2

    @property
    def exponent(self) -> float:
        """The slope that was found, or 0."""
        return max(0.0, float(self.slope.detach()))

    def factors(self, users: int) -> Factors:
        """The same numbers as factors: a column for each block."""
        blocks, items = self.x_CV.shape
        slope_VC = self.x_CV.numpy().T * self.exponent
        return Factors.of(np.ones((users, blocks)), slope_VC, np.eye(blocks)).biased(
            item_V=np.full(items, float(self.centre.detach()))
        )


def log_popularity(takes: Takes) -> Values:
    """log of each item's share (with half a take added) of all takes of the block, less the mean of all."""
    count_CV = np.full(takes.shape[:0:-1], 0.5)
    np.add.at(count_CV, (takes.block_N, takes.item_N), takes.count_N)
    log_CV = np.log(count_CV / count_CV.sum(1, keepdims=True))
    return np.asarray(log_CV - log_CV.mean())
