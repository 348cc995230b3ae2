"""One file that is whole or not there: tensors, a JSON state in the header, and a digest of both.

A single rename puts it in place: no moment of a run leaves the weights of one epoch beside the optimiser of another.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as as_bytes
from torch import Tensor

from unveil.errors import UnveilError
from unveil.files import write_whole

#: Raised when the meaning of what is stored changes.
FORMAT = 1

_MEND = "Start the run anew in another folder, or restore the file from a copy."


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Named tensors and what JSON can hold."""

    tensors: Mapping[str, Tensor]
    state: Mapping[str, Any]

    def save(self, path: Path) -> None:
        """Write atomically; an older file stays until the new one is whole."""
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in self.tensors.items()}
        state = json.dumps(self.state, ensure_ascii=False, allow_nan=False)
        header = {"format": str(FORMAT), "state": state, "digest": _digest(tensors, state)}
        write_whole(path, as_bytes(tensors, header))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read and verify; a truncated, altered or foreign file is refused."""
        header, tensors = _read(path)
        if header.get("format") != str(FORMAT) or "state" not in header:
            raise UnveilError(
                "not a checkpoint of this version", where=path, found=header.get("format"), expected=f"format {FORMAT}"
            )
        if header.get("digest") != _digest(tensors, header["state"]):
            raise UnveilError("the file was altered: its digest does not match", where=path, hint=_MEND)
        return cls(tensors, json.loads(header["state"]))

    def part(self, prefix: str) -> dict[str, Tensor]:
        """The tensors whose name begins with `prefix/`, by the rest of their name."""
        start = f"{prefix}/"
        return {name.removeprefix(start): value for name, value in self.tensors.items() if name.startswith(start)}


def sweep_drafts(path: Path) -> None:
    """Remove what a killed process left half-written beside `path`."""
    for draft in path.parent.glob(f".{path.name}.*.part"):
        draft.unlink(missing_ok=True)


def _read(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    try:
        with safe_open(path, framework="pt") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise UnveilError("there is no checkpoint", where=path) from error
    except (SafetensorError, OSError) as error:
        raise UnveilError(f"cannot be read as a checkpoint ({error})", where=path, hint=_MEND) from error


def _digest(tensors: Mapping[str, Tensor], state: str) -> str:
    digest = sha256(state.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
