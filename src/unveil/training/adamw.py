"""AdamW by the kernel of torch's own: the same numbers at once. To make torch's own imports a compiler, for seconds."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

#: What keeps a quotient finite: torch's and the paper's usual value.
EPSILON = 1e-8


@dataclass(frozen=True, eq=False)
class AdamW:
    """m ← β₁m + (1 − β₁)g,  v ← β₂v + (1 − β₂)g²,  p ← (1 − ηλ)p − η · m̂ / (√v̂ + ε).

    Matrices decay (λ); biases and norms never do. `state` holds m, v and the count of steps of each parameter that has
    had a gradient, under the names torch gives them. Decoupled decay: Loshchilov and Hutter, ICLR 2019.
    """

    parameters: Sequence[Tensor]
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    state: defaultdict[Tensor, dict[str, Tensor]] = field(default_factory=lambda: defaultdict(dict))

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def step(self, lr: float) -> None:
        """One step at the rate η, with the gradients there are."""
        moved = [parameter for parameter in self.parameters if parameter.grad is not None]
        self._step([parameter for parameter in moved if parameter.ndim > 1], lr, self.weight_decay)
        self._step([parameter for parameter in moved if parameter.ndim <= 1], lr, 0.0)

    @torch.no_grad()
    def _step(self, parameters: list[Tensor], lr: float, decay: float) -> None:
        if not parameters:
            return
        for parameter in parameters:
            self.state[parameter] = self.state[parameter] or _fresh(parameter)
        mean, square, count = (self._all(parameters, name) for name in ("exp_avg", "exp_avg_sq", "step"))
        torch._foreach_add_(count, 1)
        torch._fused_adamw_(
            parameters,
            [parameter.grad for parameter in parameters if parameter.grad is not None],
            mean,
            square,
            [],
            count,
            lr=lr,
            beta1=self.betas[0],
            beta2=self.betas[1],
            weight_decay=decay,
            eps=EPSILON,
            amsgrad=False,
            maximize=False,
        )

    def _all(self, parameters: Iterable[Tensor], name: str) -> list[Tensor]:
        return [self.state[parameter][name] for parameter in parameters]


def _fresh(parameter: Tensor) -> dict[str, Tensor]:
    return {
        "exp_avg": torch.zeros_like(parameter),
        "exp_avg_sq": torch.zeros_like(parameter),
        "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
    }
