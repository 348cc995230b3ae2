"""The learning rate as a pure function of the step: a resumed run needs no memory of it."""

import math

from unveil.training.config import TrainerConfig


def learning_rate(config: TrainerConfig, step: int, steps_per_epoch: int) -> float:
    """The rate of step 0, 1, …: a linear rise during `warmup` epochs times the decay of `schedule`.

    linear: 1 → 0 from the end of the warm-up to the end of the run; cosine: (1 + cos π·progress)/2 over the same;
    step: × `step_factor` once `step_epoch` epochs are over.
    """
    epochs_done = step / steps_per_epoch
    rise = min(1.0, (step + 1) / (config.warmup * steps_per_epoch)) if config.warmup > 0 else 1.0
    return config.lr * rise * _decay(config, epochs_done)


def _decay(config: TrainerConfig, epochs_done: float) -> float:
    progress = max(0.0, epochs_done - config.warmup) / max(config.epochs - config.warmup, 1e-9)
    match config.schedule:
        case "linear":
            return max(0.0, 1 - progress)
        case "cosine":
            return (1 + math.cos(math.pi * min(1.0, progress))) / 2
        case "step":
            return config.step_factor if epochs_done >= config.step_epoch else 1.0
        case "constant":
            return 1.0
