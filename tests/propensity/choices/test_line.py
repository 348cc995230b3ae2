"""Two numbers in the place of a table: the line through log popularity."""

import numpy as np
import pytest
import torch

from unveil.propensity.choices.tables import Line


@pytest.mark.parametrize(("slope", "exponent"), [(0.7, 0.7), (0.0, 0.0), (-0.4, 0.0)])
def test_the_factors_are_the_line_and_never_fall_with_popularity(slope: float, exponent: float) -> None:
    x_CV = np.random.default_rng(0).normal(size=(3, 5))
    line = Line(x_CV, -1.5)
    with torch.no_grad():
        line.slope.fill_(slope)
    user, block = (index.ravel() for index in np.indices((4, 3)))
    assert line.exponent == pytest.approx(exponent)
    np.testing.assert_allclose(line.factors(4).logits(user, block), -1.5 + exponent * x_CV[block], atol=1e-5)
    user_B, block_B = (torch.from_numpy(index.astype(np.int64)) for index in (user, block))
    among = line.among(user_B, block_B, torch.arange(5)).detach().numpy()
    np.testing.assert_allclose(among, -1.5 + slope * x_CV[block], atol=1e-5)
