"""A loop after a round, to a file and back: whole or not there."""

from pathlib import Path

import torch

from unveil.simulation.feedback.growth import grown
from unveil.simulation.feedback.learners import Learner
from unveil.simulation.feedback.lists import Lists
from unveil.simulation.feedback.loop import Loop, State
from unveil.training.checkpoint import Checkpoint


def save(state: State, path: Path) -> None:
    """What users took so far, the lists they have now, the weights behind them, and the records of all rounds."""
    arrays = {"taken": state.taken_RU, "top": state.lists.top_UK, "score": state.lists.score_UK}
    tensors = {f"loop/{name}": torch.from_numpy(array) for name, array in arrays.items()}
    tensors |= {f"weights/{name}": tensor for name, tensor in state.learnt.weights.items()}
    Checkpoint(tensors, {"records": list(state.records)}).save(path)


def load(path: Path, loop: Loop, learner: Learner) -> State:
    """The state as it was saved; a rule is learnt again from the log of the round in which it last was."""
    checkpoint = Checkpoint.load(path)
    arrays = {name: tensor.numpy() for name, tensor in checkpoint.part("loop").items()}
    records = tuple(checkpoint.state["records"])
    trained_on = grown(loop.base, arrays["taken"][: loop.retraining.last_due(len(records) - 1)])
    learnt = learner.recall(checkpoint.part("weights"), trained_on)
    return State(arrays["taken"], Lists(arrays["top"], arrays["score"]), learnt, records)
