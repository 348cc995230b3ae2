"""The contract of a model, a network or a baseline, and the registry of both.

Shapes: B batch, L length, D width, M slots, V items.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unveil.data.interactions import Sequences
from unveil.data.slots import mask_token, pad_token
from unveil.errors import AtLeastOne, BelowOne, UnveilError, UpToOne, check_ranges
from unveil.registry import Registry

Where = tuple[Tensor, Tensor]
TaskName = Literal["cloze", "next-item"]  # predict masked items of a history, or the next item at every event


@dataclass(frozen=True)
class ModelConfig:
    """What every kind of model has. Each adds its own fields, and `name`."""

    length: AtLeastOne = 100  # the most recent events that are read

    def __post_init__(self) -> None:
        check_ranges(self, "model")


@dataclass(frozen=True)
class NetworkConfig(ModelConfig):
    """Size of a network."""

    width: AtLeastOne = 64
    blocks: AtLeastOne = 2
    dropout: BelowOne = 0.1
    head: Literal["tied", "untied"] = "tied"  # untied: output vectors of items are not their embeddings


@dataclass(frozen=True)
class BaselineConfig(ModelConfig):
    """Constants of a baseline. Popularity has no use for a `decay`."""

    length: AtLeastOne = 1000
    decay: UpToOne | None = None  # what the event before counts, if the last counts 1; None: chosen on validation cases


class Output(NamedTuple):
    """logits_MV = h_MD · table_VDᵀ + bias_V."""

    h_MD: Tensor
    table_VD: Tensor
    bias_V: Tensor


class Model(nn.Module, ABC):
    """Rows of tokens in, scores of items out; built from a `config` of the class `Config`, and saved by its tensors."""

    name: ClassVar[str]
    Config: ClassVar[type[ModelConfig]]
    config: ModelConfig
    n_items: int

    @abstractmethod
    def __init__(self, config: Any, n_items: int, *, seed: int = 0) -> None:
        super().__init__()
        self.config, self.n_items = config, n_items

    @abstractmethod
    def scores(self, token_BL: Tensor) -> Tensor:
        """scores_BV of the next item, at the masked last column of each row."""

    @property
    def device(self) -> torch.device:
        return next(tensor.device for tensor in (*self.parameters(), *self.buffers()))

    def n_parameters(self) -> int:
        """The number of trainable parameters."""
        return sum(parameter.numel() for parameter in self.parameters())


class Baseline(Model):
    """A model that is fitted by counting, in seconds: without an estimator, epochs or gradients."""

    Config: ClassVar[type[BaselineConfig]]
    config: BaselineConfig
    bias: Tensor  # added to scores; 0, but for a calibration
    share: Tensor  # q_V of `baselines.Popularity`
    #: How much the event before counts, to choose from where the config's `decay` is None; else the first.
    decays: ClassVar[tuple[float, ...]] = ()

    def __init__(self, config: Any, n_items: int, *, seed: int = 0) -> None:
        super().__init__(config, n_items)
        self.register_buffer("bias", torch.zeros(n_items))
        self.register_buffer("share", torch.full((n_items,), 1 / n_items))

    @abstractmethod
    def fit(self, train: Sequences) -> Self:
        """Count the training part, with the constants of `config`."""

    @property
    def decay(self) -> float:
        return self.config.decay or next(iter(self.decays), 1.0)

    def n_parameters(self) -> int:
        """The numbers that it holds."""
        return sum(buffer.numel() for buffer in self.buffers())


class Backbone(Model):
    """A network, trained by an estimator on a task."""

    task: ClassVar[TaskName] = "cloze"
    Config: ClassVar[type[NetworkConfig]]
    config: NetworkConfig

    @abstractmethod
    def forward(self, token_BL: Tensor, where: Where | None = None) -> Tensor:
        """h_BLD of every column, or h_MD of the slots `where` = (b_M, l_M)."""

    @abstractmethod
    def head(self, h_MD: Tensor) -> Output:
        """The factors of the logits, which the loss multiplies block by block: all logits are never held at once."""

    def initialise(self, generator: torch.Generator) -> None:
        """As BERT: matrices from a normal of deviation 0.02 cut at two deviations, biases 0, norms the identity."""
        for name, parameter in self.named_parameters():
            if parameter.ndim > 1:
                nn.init.trunc_normal_(parameter, std=0.02, a=-0.04, b=0.04, generator=generator)
            else:
                nn.init.constant_(parameter, float("norm" in name and name.endswith("weight")))

    def logits(self, h_MD: Tensor) -> Tensor:
        """logits_MV over the items."""
        h_MD, table_VD, bias_V = self.head(h_MD)
        return F.linear(h_MD, table_VD, bias_V)

    @torch.no_grad()
    def scores(self, token_BL: Tensor) -> Tensor:
        """scores_BV of the next item, at the masked last column of each row; without dropout, whatever the mode."""
        token_BL = token_BL.to(self.device)
        row_B, was_training = torch.arange(len(token_BL), device=token_BL.device), self.training
        if was_training:
            self.eval()
        scores_BV = self.logits(self(token_BL, (row_B, torch.full_like(row_B, token_BL.shape[1] - 1))))
        self.train(was_training)
        return scores_BV


BACKBONES: Registry[Model] = Registry("model", package="unveil.models", group="unveil.models")
register = BACKBONES.register


def backbone(name: str) -> type[Backbone]:
    """The network of that name; an unknown name suggests the nearest."""
    if not issubclass(kind := BACKBONES[name], Backbone):
        raise UnveilError("a baseline is not trained", found=name, hint="Fit it by `unveil train LOG -o RUN --model`.")
    return kind


class Causal(Backbone):
    """A network whose rows begin with MASK, as in `data.next_item`; `scores` has it at the end, as in all networks."""

    task: ClassVar[TaskName] = "next-item"
    item: nn.Embedding
    table: nn.Embedding | None  # of an untied head
    bias: nn.Parameter

    def scores(self, token_BL: Tensor) -> Tensor:
        """scores_BV for what comes next: the last column has read the whole history."""
        return super().scores(mask_first(token_BL, self.n_items))

    def head(self, h_MD: Tensor) -> Output:
        table_VD = self.item.weight[: self.n_items] if self.table is None else self.table.weight
        return Output(h_MD, table_VD, self.bias)


def mask_first(token_BL: Tensor, n_items: int) -> Tensor:
    """Rows with their last token, MASK, moved to the beginning: PAD x₁ x₂ MASK becomes PAD MASK x₁ x₂."""
    padding_B = (token_BL == pad_token(n_items)).sum(1)
    column_L = torch.arange(token_BL.shape[1], device=token_BL.device)
    rolled_BL = token_BL.roll(1, dims=1).masked_fill(column_L < padding_B[:, None], pad_token(n_items))
    return rolled_BL.masked_fill(column_L == padding_B[:, None], mask_token(n_items))
