"""A network and baselines that score together.

Shapes: B histories, C cases, L tokens, P parts, V items.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor, nn

from unveil.models.base import BACKBONES, Model, ModelConfig
from unveil.settings import built, plain


@dataclass(frozen=True)
class BlendConfig(ModelConfig):
    """The settings of each part, with its name; the length is the most that any part reads."""

    parts: tuple[dict[str, Any], ...] = ()
    name: Literal["blend"] = "blend"


class Blend(Model):
    """f_i = Σ_p w_p f_pi + b_i with w_p ≥ 0: P(i | history) ∝ Π_p P_p(i | history)^w_p, and b is 0."""

    name = "blend"
    Config = BlendConfig
    config: BlendConfig
    share_P: Tensor

    def __init__(self, config: BlendConfig, n_items: int, *, seed: int = 0) -> None:
        super().__init__(config, n_items)
        kinds = [BACKBONES[str(part["name"])] for part in config.parts]
        chosen = zip(kinds, config.parts, strict=True)
        self.parts = nn.ModuleList(kind(built(kind.Config, part), n_items) for kind, part in chosen)
        self.register_buffer("share_P", torch.ones(len(kinds)))
        self.register_buffer("bias", torch.zeros(n_items))

    @classmethod
    def of(cls, parts: Sequence[Model], share_P: NDArray[np.float64]) -> Self:
        """Of fitted parts; those that count for less than a hundredth of the largest are left out."""
        kept = [n for n, share in enumerate(share_P) if share > 0.01 * share_P.max()]
        settings = tuple(plain(parts[n].config) for n in kept)
        blend = cls(BlendConfig(max(parts[n].config.length for n in kept), settings), parts[0].n_items)
        blend.parts = nn.ModuleList(parts[n] for n in kept)
        blend.share_P.copy_(torch.from_numpy(share_P[kept]))
        return blend

    @property
    def models(self) -> list[Model]:
        return [part for part in self.parts if isinstance(part, Model)]

    @property
    def shares(self) -> list[tuple[float, str]]:
        """Of each part, by its name."""
        return [(share, model.name) for share, model in zip(self.share_P.tolist(), self.models, strict=True)]

    def scores(self, token_BL: Tensor) -> Tensor:
        total_BV = torch.zeros(len(token_BL), self.n_items, device=self.device) + self.get_buffer("bias")
        for share, part in zip(self.share_P, self.models, strict=True):
            total_BV += share * part.scores(token_BL[:, -part.config.length :])
        return total_BV


def fitted_shares(score_PCV: Tensor, barred_CV: Tensor, target_C: Tensor) -> NDArray[np.float64]:
    """The w ≥ 0 that maximise Σ_c log softmax(Σ_p w_p f_pc)[target of c] over the items that are not barred: concave.

    The slope in w_p is Σ_c f_pc[target] − Σ_i softmax_i f_pci.
    """
    score_PCV = score_PCV - score_PCV.masked_fill(barred_CV, -torch.inf).amax(-1, keepdim=True)  # for exactness
    target_PC = score_PCV.gather(2, target_C.expand(len(score_PCV), -1)[..., None])[..., 0]

    def loss(share_P: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        share = torch.from_numpy(share_P).to(score_PCV.dtype)
        log_p_CV = torch.einsum("p,pcv->cv", share, score_PCV).masked_fill(barred_CV, -torch.inf).log_softmax(-1)
        expected_PC = torch.einsum("cv,pcv->pc", log_p_CV.exp(), score_PCV)
        value = -log_p_CV.gather(1, target_C[:, None]).mean()
        return float(value), (expected_PC - target_PC).mean(1).double().numpy()

    start_P = np.full(len(score_PCV), 1 / len(score_PCV))
    found: NDArray[np.float64] = minimize(loss, start_P, jac=True, method="L-BFGS-B", bounds=[(0, 5)] * len(start_P)).x
    return found
