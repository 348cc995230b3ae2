"""Checkpoints: the state of a run after an epoch as one file, and the file of epochs beside it."""

import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as as_bytes
from torch import Tensor

from unveil.checksums import DIGEST, digest
from unveil.errors import UnveilError, UnveilWarning
from unveil.estimators.base import ESTIMATORS
from unveil.files import versions, write_whole
from unveil.models.base import Backbone
from unveil.settings import built, flattened
from unveil.training.optimiser import AdamW, WeightAverage


def differences(saved: Mapping[str, Any], now: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Dotted names with their old and new values; the network first. An old name of an estimator is no difference, nor
    is a setting that an earlier version did not have, where it is off."""
    before, after = (
        {name: ESTIMATORS.current_words(each) for name, each in flattened(tree).items() if each != {}}
        for tree in (saved, now)
    )
    return [
        (name, str(before.get(name, "nothing")), str(after.get(name, "nothing")))
        for name in sorted(before.keys() | after.keys(), key=lambda name: (not name.endswith("model.name"), name))
        if before.get(name) != after.get(name) and (name in before or after[name])
    ]


def check_same_run(saved: Mapping[str, Any], now: Mapping[str, Any], where: object) -> None:
    """Refuse to resume a run whose identity differs, by the first difference."""
    for name, before, after in differences(saved, now):
        hint = "Resume with the settings the run began with, or start another run."
        raise UnveilError(f"the run began with {name} = {before}, and now it is {after}", where=where, hint=hint)


@dataclass(frozen=True)
class Epoch:
    """One line of the file of epochs."""

    epoch: int  # counted from 1
    loss: float  # mean risk over the epoch's slots, as the estimator weighs them
    lr: float  # of the last step
    slots: int
    seconds: float  # of training, validation apart
    validation: Mapping[str, float] | None  # None where the epoch was not validated

    def line(self) -> str:
        """One JSON object; a line cut off by a kill is written again on resumption."""
        return json.dumps(asdict(self), ensure_ascii=False) + "\n"


@dataclass(frozen=True)
class Best:
    """The best validation so far."""

    epoch: int
    value: float


def read_epochs(path: Path) -> list[Epoch]:
    """The epochs of a run that is over."""
    try:
        lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        return [built(Epoch, json.loads(line), where=f"{path}, row {row}") for row, line in lines]
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise UnveilError(f"cannot be read as a file of epochs: {error}", where=path) from None


def made_with() -> dict[str, Any]:
    """What the weights depend on beside the settings: sums of other threads or versions differ in the last digit."""
    known = {name: each for name, each in versions().items() if name not in ("python", "polars")}
    return {"threads": torch.get_num_threads(), "versions": known}


FORMAT = 1  # one more when the meaning of what is stored changes
_REMEDY = "Start the run anew in another folder, or restore the file from a copy."


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Named tensors, and a state that JSON can hold."""

    tensors: Mapping[str, Tensor]
    state: Mapping[str, Any]

    def save(self, path: Path) -> None:
        """Write atomically; an older file stays until the new one is whole."""
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in self.tensors.items()}
        state = json.dumps(self.state, ensure_ascii=False, allow_nan=False)
        header = {"format": str(FORMAT), "state": state, DIGEST: _digest(tensors, state)}
        write_whole(path, as_bytes(tensors, header))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read and verify; a truncated, altered or foreign file is refused."""
        try:
            with safe_open(path, framework="pt") as file:
                header = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except FileNotFoundError as error:
            raise UnveilError("there is no checkpoint", where=path) from error
        except (SafetensorError, OSError) as error:
            raise UnveilError(f"cannot be read as a checkpoint ({error})", where=path, hint=_REMEDY) from error
        found, expected = header.get("format"), f"format {FORMAT}"
        if found != str(FORMAT) or "state" not in header:
            raise UnveilError("not a checkpoint of this version", where=path, found=found, expected=expected)
        if header.get(DIGEST) != _digest(tensors, header["state"]):
            raise UnveilError("the file was altered: its digest does not match", where=path, hint=_REMEDY)
        return cls(tensors, json.loads(header["state"]))

    def part(self, prefix: str) -> dict[str, Tensor]:
        """The tensors named `prefix/…`, by the rest of their name."""
        start = f"{prefix}/"
        return {name.removeprefix(start): value for name, value in self.tensors.items() if name.startswith(start)}


def _digest(tensors: Mapping[str, Tensor], state: str) -> str:
    return digest({name: tensor.numpy() for name, tensor in tensors.items()}, state)


@dataclass
class TrainingState:
    """Epochs done, the best of them with its weights, and the validations since."""

    epochs: list[Epoch] = field(default_factory=list)
    best: Best | None = None
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    waited: int = 0
    began: Mapping[str, Any] = field(default_factory=dict)  # `made_with` of its beginning

    @property
    def done(self) -> int:
        return len(self.epochs)

    def begin(self, threads: int | None, where: Path) -> None:
        """Note what the run is made with, or go on with the number of threads it began with: another one that is named
        is refused. Other versions, which cannot be had here, are a warning."""
        if not self.began:
            self.began = made_with()
        if threads not in (None, self.began["threads"]):
            found, expected = f"training.threads = {threads}", f"{self.began['threads']}, as the run began"
            hint = "Leave training.threads out, which takes that number, or start another run."
            problem = "with another number of threads the weights would be others"
            raise UnveilError(problem, where=where, found=found, expected=expected, hint=hint)
        torch.set_num_threads(self.began["threads"])
        now = made_with()["versions"]
        apart = [
            f"{name} {old} and now {now[name]}" for name, old in self.began["versions"].items() if old != now[name]
        ]
        if apart:
            text = (
                f"{where}: the run began with {', '.join(apart)}: its weights may differ from those of an unbroken run."
            )
            warnings.warn(UnveilWarning(text), stacklevel=2)

    def validated(self, value: float, model: Backbone) -> None:
        """Keep the weights if validation improved; a tie is no improvement."""
        if self.best is not None and not value > self.best.value:
            self.waited += 1
            return
        self.best, self.waited = Best(self.done + 1, value), 0
        self.best_weights = {name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()}

    def checkpoint(
        self, model: Backbone, optimiser: AdamW, average: WeightAverage, identity: Mapping[str, Any]
    ) -> Checkpoint:
        tensors = {f"model/{name}": tensor for name, tensor in model.state_dict().items()}
        tensors |= {f"best/{name}": tensor for name, tensor in self.best_weights.items()}
        tensors |= {f"average/{name}": tensor for name, tensor in average.weights.items()}
        for name, parameter in model.named_parameters():
            tensors |= {f"optimiser/{name}/{key}": value for key, value in optimiser.state[parameter].items()}
        rest = {
            "epochs": [asdict(epoch) for epoch in self.epochs],
            "best": None if self.best is None else asdict(self.best),
            "waited": self.waited,
            "identity": identity,
            "began": self.began,
        }
        return Checkpoint(tensors, rest)

    @classmethod
    def restored(cls, checkpoint: Checkpoint, model: Backbone, optimiser: AdamW, average: WeightAverage) -> Self:
        model.load_state_dict(checkpoint.part("model"))
        for name, parameter in model.named_parameters():
            saved = checkpoint.part(f"optimiser/{name}")
            optimiser.state[parameter] = {key: value.to(parameter.device) for key, value in saved.items()}
        average.weights = {name: tensor.clone() for name, tensor in checkpoint.part("average").items()}
        rest = checkpoint.state
        best = None if rest["best"] is None else Best(**rest["best"])
        epochs, began = [Epoch(**epoch) for epoch in rest["epochs"]], rest.get("began", {})
        return cls(epochs, best, checkpoint.part("best"), rest["waited"], began)
