"""Recipe: everything that decides what is learnt from a training part, and the presets that fill it in."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field

from unveil.errors import unknown
from unveil.estimators.base import ESTIMATORS
from unveil.estimators.build import refuse_options as refuse_estimator
from unveil.estimators.clips import settled
from unveil.models.base import BACKBONES, NetworkConfig, backbone
from unveil.models.bert4rec import BERT4RecConfig
from unveil.propensity.base import PROPENSITIES
from unveil.propensity.build import refuse_options as refuse_propensity
from unveil.settings import changed, flattened, plain
from unveil.training.config import TrainerConfig
from unveil.training.presets import OF_NETWORK, PRESETS

if TYPE_CHECKING:
    AnyNetwork = NetworkConfig
else:  # the settings of any registered network, told apart by their name
    AnyNetwork = Annotated[reduce(or_, (backbone(name).Config for name in BACKBONES)), Field(discriminator="name")]

#: The propensity of the kind that the estimator needs: the true one where there is a world, else popularity.
AUTO = "auto"


@dataclass(frozen=True)
class TaskConfig:
    """What is asked, and in what batches; see `data.batches.ClozeTask`.

    A network decides by its kind whether items are hidden (Cloze) or every next item is asked for; the latter hides
    nothing and looks at the batches' size and `bucket` alone.
    """

    batch_size: int = 128
    mask_probability: float = 0.2
    last_share: float = 0.1  # rows in which only the last item is hidden: the question asked when recommending
    always_mask: bool = True
    bucket: bool = True  # rows of similar length share a batch; batches hold `batch_size` rows on average


@dataclass(frozen=True)
class Recipe:
    """Model, task, estimator, propensity and training.

    `training.seed` seeds the model, the task and the training; an estimator or a propensity that draws lots has a seed
    of its own.
    """

    model: AnyNetwork = field(default_factory=BERT4RecConfig)
    task: TaskConfig = field(default_factory=TaskConfig)
    estimator: dict[str, Any] = field(default_factory=lambda: {"name": "naive"})  # its name, then its options
    propensity: dict[str, Any] = field(default_factory=lambda: {"name": AUTO})  # auto: what the estimator needs
    training: TrainerConfig = field(default_factory=TrainerConfig)

    def __post_init__(self) -> None:
        """A name that nobody knows, or a value that does not fit, is refused here: before a log is read, not after."""
        for kind, known, choice in (
            ("estimator", list(ESTIMATORS), self.estimator),
            ("propensity", [AUTO, *PROPENSITIES], self.propensity),
        ):
            if choice.get("name") not in known:
                raise unknown(kind, str(choice.get("name")), known)
        refuse_estimator(*named(settled(self.estimator)))
        if self.propensity["name"] != AUTO:
            refuse_propensity(*named(self.propensity))

    @classmethod
    def preset(cls, name: str, model: str | None = None) -> Self:
        """One of the presets, quick, paper or converged, as it is for a network; without one, for BERT4Rec."""
        return cls().changed(preset(name)).changed(of_network(name, model))

    def changed(self, changes: Mapping[str, Any], *, where: object = None) -> Self:
        """With some settings replaced, by dotted names. Another `model.name` keeps the settings both networks have."""
        flat = flattened(changes)
        name = flat.get("model.name", plain(self.model)["name"])
        return changed(replace(self, model=_as(self.model, str(name))), flat, where=where)


def named(choice: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name of an estimator or a propensity, and its options."""
    options = dict(choice)
    return str(options.pop("name")), options


def _as(config: NetworkConfig, name: str) -> NetworkConfig:
    """The settings of another kind of network, with the values it shares with this one."""
    kind = backbone(name).Config
    if isinstance(config, kind):
        return config
    shared = {each.name for each in fields(kind)} & {each.name for each in fields(config)} - {"name"}
    return kind(**{each: getattr(config, each) for each in shared})


def preset(name: str) -> Mapping[str, Any]:
    """The settings of a preset, by dotted names."""
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    return PRESETS[name]


def of_network(name: str, model: str | None) -> Mapping[str, Any]:
    """What a preset has of its own for a network, to be laid over it."""
    return {} if model is None else {"model.name": model, **OF_NETWORK.get((name, model), {})}


def network_in(changes: Mapping[str, Any]) -> str | None:
    """The network that changes name, if they do."""
    name = flattened(changes).get("model.name")
    return None if name is None else str(name)
