"""AdamW by torch's own kernel, and the learning rate of every step."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from unveil.training.recipe import TrainerConfig


def learning_rate(config: TrainerConfig, step: int, steps_per_epoch: int) -> float:
    """The rate of step 0, 1, …: a linear rise during `warmup` epochs times the decay of `schedule`.

    linear: 1 → 0 from the end of the warm-up to the end of the run; cosine: (1 + cos π·progress)/2 over the same;
    step: × `step_factor` once `step_epoch` epochs are over.
    """
    epochs_done = step / steps_per_epoch
    rise = min(1.0, (step + 1) / (config.warmup * steps_per_epoch)) if config.warmup > 0 else 1.0
    progress = max(0.0, epochs_done - config.warmup) / max(config.epochs - config.warmup, 1e-9)
    decay = 1.0
    match config.schedule:
        case "linear":
            decay = max(0.0, 1 - progress)
        case "cosine":
            decay = (1 + math.cos(math.pi * min(1.0, progress))) / 2
        case "step" if epochs_done >= config.step_epoch:
            decay = config.step_factor
    return config.lr * rise * decay


EPSILON = 1e-8  # torch's and the paper's usual value


class AdamW:
    """m ← β₁m + (1 − β₁)g,  v ← β₂v + (1 − β₂)g²,  p ← (1 − ηλ)p − η · m̂ / (√v̂ + ε).

    Loshchilov and Hutter, ICLR 2019; λ is 0 for biases and norms. By torch's kernel: `torch.optim.AdamW` would load a
    compiler first (ADR 17). `state` holds m, v and the steps of each parameter with a gradient, named as by torch.
    """

    def __init__(
        self, parameters: Iterable[Tensor], betas: tuple[float, float] = (0.9, 0.999), weight_decay: float = 0.0
    ) -> None:
        self.parameters, self.betas, self.weight_decay = list(parameters), betas, weight_decay
        self.state: defaultdict[Tensor, dict[str, Tensor]] = defaultdict(dict)

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self, lr: float) -> None:
        for matrices, decay in ((True, self.weight_decay), (False, 0.0)):
            moved = [each for each in self.parameters if each.grad is not None and (each.ndim > 1) is matrices]
            if not moved:
                continue
            mean, square, count = map(list, zip(*map(self._state, moved), strict=True))
            torch._foreach_add_(count, 1)
            gradients = [each.grad for each in moved if each.grad is not None]
            beta1, beta2 = self.betas
            rates: dict[str, Any] = {"lr": lr, "beta1": beta1, "beta2": beta2, "weight_decay": decay, "eps": EPSILON}
            torch._fused_adamw_(moved, gradients, mean, square, [], count, **rates, amsgrad=False, maximize=False)

    def _state(self, parameter: Tensor) -> tuple[Tensor, ...]:
        if not self.state[parameter]:
            zeros = {name: torch.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq")}
            self.state[parameter] = {**zeros, "step": torch.zeros((), device=parameter.device)}
        return tuple(self.state[parameter][name] for name in ("exp_avg", "exp_avg_sq", "step"))


@dataclass
class WeightAverage:
    """a ← d a + (1 − d) w after step n = 1, 2, …, with d = min(decay, (1 + n) / (10 + n)), of all weights w.

    The average of a network that is trained at a constant rate is about as good as its end after a falling one
    (Morales-Brotons et al., TMLR 2024), at any time: nothing needs to know when training ends. Decay 0: w itself.
    """

    decay: float
    weights: dict[str, Tensor] = field(default_factory=dict)

    @torch.no_grad()
    def update(self, model: nn.Module, n: int) -> None:
        if self.decay:
            now = dict(model.named_parameters())
            if not self.weights:
                self.weights = {name: weight.detach().clone() for name, weight in now.items()}
            share = 1 - min(self.decay, (1 + n) / (10 + n))
            torch._foreach_lerp_(list(self.weights.values()), [now[name] for name in self.weights], share)

    @contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        """The model with the averaged weights; afterwards with its own again."""
        own = {name: weight.detach().clone() for name, weight in model.named_parameters()} if self.weights else {}
        model.load_state_dict(self.weights, strict=False)
        try:
            yield
        finally:
            model.load_state_dict(own, strict=False)
