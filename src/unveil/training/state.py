"""All that a run is between two epochs, to a checkpoint and back."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from torch import Tensor

from unveil.models.base import Backbone
from unveil.training.adamw import AdamW
from unveil.training.checkpoint import Checkpoint
from unveil.training.history import Epoch
from unveil.training.progress import Best


@dataclass
class TrainingState:
    """Epochs done, the best of them with its weights, and the validations since."""

    epochs: list[Epoch] = field(default_factory=list)
    best: Best | None = None
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    waited: int = 0

    @property
    def done(self) -> int:
        """Epochs done."""
        return len(self.epochs)

    def validated(self, value: float, model: Backbone) -> None:
        """Keep the weights where validation improved; a tie does not count as better."""
        if self.best is not None and not value > self.best.value:
            self.waited += 1
            return
        self.best, self.waited = Best(self.done + 1, value), 0
        self.best_weights = {name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()}


def checkpoint_of(state: TrainingState, model: Backbone, optimiser: AdamW, identity: Mapping[str, Any]) -> Checkpoint:
    """Weights, optimiser and best weights under their names; the rest as JSON."""
    tensors = {f"model/{name}": tensor for name, tensor in model.state_dict().items()}
    tensors |= {f"best/{name}": tensor for name, tensor in state.best_weights.items()}
    for name, parameter in model.named_parameters():
        tensors |= {f"optimiser/{name}/{key}": value for key, value in optimiser.state[parameter].items()}
    told = {
        "epochs": [asdict(epoch) for epoch in state.epochs],
        "best": None if state.best is None else asdict(state.best),
        "waited": state.waited,
        "identity": identity,
    }
    return Checkpoint(tensors, told)


def restored(checkpoint: Checkpoint, model: Backbone, optimiser: AdamW) -> TrainingState:
    """Set model and optimiser as they were, and give back the rest."""
    model.load_state_dict(checkpoint.part("model"))
    for name, parameter in model.named_parameters():
        saved = checkpoint.part(f"optimiser/{name}")
        optimiser.state[parameter] = {key: value.to(parameter.device) for key, value in saved.items()}
    told = checkpoint.state
    return TrainingState(
        epochs=[Epoch(**epoch) for epoch in told["epochs"]],
        best=None if told["best"] is None else Best(**told["best"]),
        best_weights=checkpoint.part("best"),
        waited=told["waited"],
    )
