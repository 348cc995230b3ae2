"""Recipe: all settings of model, task, estimator, propensity and training; and the presets."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field

from unveil.errors import AtLeastOne, BelowOne, NotNegative, Positive, UnveilError, check_range, check_ranges, unknown
from unveil.estimators.base import ESTIMATORS
from unveil.estimators.base import check_options as check_estimator
from unveil.estimators.inverse import settled
from unveil.models.base import BACKBONES, BaselineConfig, ModelConfig
from unveil.models.causal import SASRecConfig
from unveil.propensity.base import PROPENSITIES
from unveil.propensity.build import check_options as check_propensity
from unveil.settings import changed, flattened, plain


@dataclass(frozen=True)
class TrainerConfig:
    """Length, optimiser, schedule and patience of a training run."""

    epochs: AtLeastOne = 100
    lr: Positive = 1e-3
    weight_decay: NotNegative = 0.0  # of matrices only: biases and norms never decay
    betas: tuple[float, float] = (0.9, 0.999)
    warmup: NotNegative = 0.0  # epochs in which the learning rate rises from 0
    schedule: Literal["constant", "linear", "cosine", "step"] = "constant"
    step_epoch: int = 50  # "step": the last epoch at the full rate …
    step_factor: NotNegative = 0.1  # … and what it is multiplied with afterwards
    average: BelowOne = 0.0  # decay of the running mean of the weights that is validated and kept; 0: the last ones
    clip: float | None = 5.0  # largest norm of a gradient; None: any
    validate_every: AtLeastOne = 1  # epochs
    patience: AtLeastOne | None = None  # validations without improvement before stopping; None: never
    monitor: str = "NDCG@10"
    blend: bool = False  # a network and baselines score together, by shares fitted on the validation cases
    refit: bool = False  # after the evaluation, as many epochs as the best on all events: this model is served
    start: str | None = None  # folder of a run whose network is gone on with
    seed: int = 0
    minutes: Positive | None = None  # time to train, a refit included; then the best weights so far are kept
    # The following do not change the result: a run may be resumed with other values.
    device: str = "auto"
    threads: int | None = None  # None: as torch has it, or as the run began; another number is refused there
    checkpoint_minutes: float = 0.0  # epochs that end sooner after the last checkpoint leave none

    def __post_init__(self) -> None:
        check_ranges(self, "training")
        for name, valid, expected in (
            ("clip", self.clip is None or self.clip > 0, "above 0, or none"),
            ("threads", self.threads is None or 1 <= self.threads <= 1024, "1 to 1,024, or none"),
            ("betas", all(0 <= beta < 1 for beta in self.betas), "two numbers between 0 and 1"),
            ("checkpoint_minutes", self.checkpoint_minutes >= 0, "not negative"),
            ("seed", 0 <= self.seed < 2**63, "not negative, and below 2⁶³"),
            ("schedule", self.schedule in SCHEDULES, f"one of {', '.join(SCHEDULES)}"),
        ):
            check_range(valid, f"training.{name}", getattr(self, name), expected)


SCHEDULES = ("constant", "linear", "cosine", "step")
#: Fields that may change between a run and its resumption.
WHEREABOUTS = frozenset({"start", "device", "threads", "checkpoint_minutes", "minutes"})

#: The default. What `training.auto` chooses by the log is here for a log of no particular kind.
AUTO_PRESET: Mapping[str, Any] = {
    "auto": [
        "estimator.name",
        "estimator.negatives",
        "model.length",
        "model.dropout",
        "task.batch_size",
        "training.validate_every",
        "training.average",
        "training.blend",
    ],
    "model.width": 64,
    "model.blocks": 2,
    "model.heads": 2,
    "model.length": 50,
    "model.dropout": 0.3,
    "model.attention_dropout": 0.0,  # lets the fused attention kernel run
    "task.windows": True,
    "task.batch_size": 64,
    "training.epochs": 1000,  # in practice validation decides
    "training.lr": 1e-3,
    "training.average": 0.99,
    "training.warmup": 1.0,
    "training.patience": 5,
    "training.refit": True,
    "training.checkpoint_minutes": 1.0,
}

#: Seconds to a few minutes: to try things. Trains a small network on recent events alone, at most 40 epochs.
QUICK: Mapping[str, Any] = {
    "model.width": 32,
    "model.blocks": 1,
    "model.heads": 2,
    "model.length": 50,
    "model.dropout": 0.1,
    "task.batch_size": 64,
    "training.epochs": 40,
    "training.lr": 3e-3,  # a small network and few epochs bear a high rate
    "training.warmup": 1.0,
    "training.schedule": "linear",
    "training.validate_every": 2,
    "training.patience": 5,
}

#: What the authors' public code does, where the paper leaves it open. Sizes are those it has for ml-1m, naive.
PAPER: Mapping[str, Any] = {
    "model.name": "bert4rec",
    "model.width": 64,
    "model.blocks": 1,
    "model.heads": 1,
    "model.length": 100,
    "model.dropout": 0.2,
    "model.head": "untied",
    "task.batch_size": 32,
    "task.mask_probability": 0.15,
    "task.last_share": 0.0,
    "task.always_mask": False,
    "training.epochs": 100,
    "training.lr": 1e-3,
    "training.schedule": "step",  # ×0.1 from epoch 50
    "training.clip": None,
    "training.validate_every": 1,  # the best epoch by validation NDCG@10 counts; no early stop
}

#: Trained until it no longer improves.
CONVERGED: Mapping[str, Any] = {
    "model.width": 64,
    "model.blocks": 2,
    "model.heads": 2,
    "model.length": 200,
    "model.dropout": 0.1,
    "model.attention_dropout": 0.0,  # lets the fused attention kernel run
    "task.batch_size": 32,  # many small steps: at equal epochs far ahead of 128 rows at twice the rate on ml-1m
    "task.mask_probability": 0.2,
    "task.last_share": 0.1,
    "training.epochs": 200,  # on ml-1m validation is flat from epoch 180 on: docs/results/ml-1m-converged
    "training.lr": 1e-3,
    "training.warmup": 5.0,
    "training.schedule": "cosine",
    "training.weight_decay": 0.01,
    "training.validate_every": 10,
    "training.patience": 5,  # fifty epochs without a gain
    "training.checkpoint_minutes": 1.0,
}

#: Every position of a causal network is a slot: fewer epochs are enough, and a higher dropout is needed.
_CAUSAL: Mapping[str, Any] = {
    "model.dropout": 0.2,
    "task.batch_size": 64,
    "training.epochs": 60,
    "training.warmup": 2.0,
    "training.validate_every": 5,
}
OF_NETWORK: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("converged", "sasrec"): _CAUSAL,
    ("converged", "gru4rec"): {**_CAUSAL, "model.blocks": 1},
}

PRESETS = {"auto": AUTO_PRESET, "quick": QUICK, "paper": PAPER, "converged": CONVERGED}


if TYPE_CHECKING:
    AnyNetwork = Any
else:  # the settings of any registered network, distinguished by their name
    AnyNetwork = Annotated[reduce(or_, (BACKBONES[name].Config for name in BACKBONES)), Field(discriminator="name")]

#: The propensity of the kind that the estimator needs: the true one where there is a world, else popularity.
AUTO = "auto"


@dataclass(frozen=True)
class TaskConfig:
    """Masking and batches; see `data.batches.ClozeTask`. Causal networks, trained on next items, mask nothing."""

    batch_size: int = 128
    mask_probability: float = 0.2
    last_share: float = 0.1  # rows in which only the last item is masked, as it is when recommending
    always_mask: bool = True
    windows: bool = False  # rows of all of a user's events, `model.length` in each; else of the last ones alone
    bucket: bool = True  # rows of similar length share a batch; batches hold `batch_size` rows on average


@dataclass(frozen=True)
class Recipe:
    """`training.seed` seeds model, task and training; random estimators and propensities have seeds of their own."""

    model: AnyNetwork = field(default_factory=SASRecConfig)  # the default of every command
    task: TaskConfig = field(default_factory=TaskConfig)
    estimator: dict[str, Any] = field(default_factory=lambda: {"name": "naive"})  # its name, then its options
    propensity: dict[str, Any] = field(default_factory=lambda: {"name": AUTO})  # auto: what the estimator needs
    training: TrainerConfig = field(default_factory=TrainerConfig)
    auto: tuple[str, ...] = ()  # settings that the log is still to decide: `training.auto`

    def __post_init__(self) -> None:
        """Unknown names and values out of range are refused here, before a log is read."""
        name = ESTIMATORS.current_name(str(self.estimator.get("name")))
        object.__setattr__(self, "estimator", {**self.estimator, "name": name})
        check_estimator(*named(settled(self.estimator)))
        if isinstance(self.model, BaselineConfig) and name != "naive":
            problem, hint = "a baseline counts interactions: no estimator trains it", "Leave out one of the two."
            raise UnveilError(problem, found=f"-e {name} --model {plain(self.model)['name']}", hint=hint)
        name = str(self.propensity.get("name"))
        if name not in (AUTO, *PROPENSITIES):
            raise unknown("propensity", name, [AUTO, *PROPENSITIES])
        if name != AUTO:
            check_propensity(*named(self.propensity))

    @classmethod
    def preset(cls, name: str, model: str | None = None) -> Self:
        """The preset auto, quick, paper or converged, for a network; by default the preset's own, or SASRec."""
        recipe = cls()
        for layer in preset(name, model):
            recipe = recipe.changed(layer)
        return recipe

    def changed(self, changes: Mapping[str, Any], *, where: object = None) -> Self:
        """With some settings replaced, by dotted names. Another `model.name` keeps the settings both networks have."""
        flat = flattened(changes)
        name = flat.get("model.name", plain(self.model)["name"])
        auto = tuple(each for each in self.auto if each not in flat)  # what somebody set, no rule decides
        return changed(replace(self, model=_as(self.model, str(name)), auto=auto), flat, where=where)


def named(choice: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name of an estimator or a propensity, and its options."""
    options = dict(choice)
    return str(options.pop("name")), options


def _as(config: ModelConfig, name: str) -> ModelConfig:
    """The settings of another kind of model, with the values it shares with this one; baselines share none."""
    kind = BACKBONES[name].Config
    if isinstance(config, kind):
        return config
    if issubclass(kind, BaselineConfig) or isinstance(config, BaselineConfig):
        return kind()
    shared = {each.name for each in fields(kind)} & {each.name for each in fields(config)} - {"name"}
    return kind(**{each: getattr(config, each) for each in shared})


def preset(name: str, model: str | None = None) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The settings of a preset, by dotted names, and those of its own for a network, which come on top."""
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    network = model or PRESETS[name].get("model.name", SASRecConfig.name)
    return PRESETS[name], {"model.name": network, **OF_NETWORK.get((name, network), {})}


def network_in(changes: Mapping[str, Any]) -> str | None:
    """The `model.name` of some changes, if they have one."""
    name = flattened(changes).get("model.name")
    return None if name is None else str(name)
