"""What is looped: rounds, users' responses, and a recipe for each model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from unveil.errors import UnveilError, unknown
from unveil.estimators.base import ESTIMATORS
from unveil.experiment.tuned import tuned
from unveil.settings import parsed, plain
from unveil.simulation.feedback.learners import RULES, Network
from unveil.simulation.feedback.responses import response_model
from unveil.simulation.feedback.retraining import Retraining
from unveil.training.recipe import Recipe, network_in

#: One thread a model: then figures do not depend on how many models are trained side by side.
ALWAYS: Mapping[str, Any] = {"training.threads": 1, "training.device": "cpu"}


@dataclass(frozen=True)
class LoopConfig:
    """How the loop goes; see `simulation.feedback.loop.Loop`."""

    rounds: int = 10
    k: int = 10
    response: dict[str, Any] = field(default_factory=lambda: {"name": "uniform"})  # its name, then its options
    retrain: str = "scratch"  # scratch, warm, warm:EPOCHS or every:ROUNDS
    replicates: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("rounds", 1), ("k", 1), ("replicates", 1), ("seed", 0)):
            if getattr(self, name) < least:
                expected = f"at least {least}"
                raise UnveilError("out of range", where=name, found=getattr(self, name), expected=expected)
        Retraining.parse(self.retrain)
        response_model(self.response)


@dataclass(frozen=True)
class LoopPlan:
    """The loop, and what each model is trained by; None for a rule that learns next to nothing."""

    loop: LoopConfig
    models: dict[str, Recipe | None]
    preset: str = "quick"
    tuned_for: str | None = None  # the data set to which the authors tuned the settings
    data: str | None = None  # the data set of the paper that the log has the size of

    @classmethod
    def of(
        cls,
        loop: LoopConfig,
        models: Sequence[str],
        preset: str = "quick",
        assignments: Sequence[str] = (),
        tuned_for: str | None = None,
    ) -> Self:
        """Models by the names of their estimators, or of rules; `MODEL:name=value` changes one of them only."""
        shared, own, response = _sorted_out(assignments, models)
        loop = LoopConfig(**{**plain(loop), "response": {**loop.response, **response}})
        authors = {name: {} if tuned_for is None else tuned(tuned_for, name, preset) for name in models}
        recipes = {
            name: _recipe(name, preset, {**authors[name], **shared, **own.get(name, {})}) for name in _different(models)
        }
        return cls(loop, recipes, preset, tuned_for)

    @property
    def networks(self) -> list[str]:
        """The models that are trained."""
        return [name for name, recipe in self.models.items() if recipe is not None]

    @property
    def trainings(self) -> int:
        """Of one network in one replicate."""
        how = Retraining.parse(self.loop.retrain)
        return sum(how.due(round) for round in range(self.loop.rounds + 1))

    def identity(self) -> dict[str, Any]:
        """All that decides the figures of a round. More rounds and replicates may follow later."""
        loop = plain(self.loop)
        del loop["rounds"], loop["replicates"]
        return {"loop": loop, "models": {name: recipe and plain(recipe) for name, recipe in self.models.items()}}


def _sorted_out(
    assignments: Sequence[str], models: Sequence[str]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]], dict[str, Any]]:
    """Settings of all models, settings of one, and options of the response."""
    shared: dict[str, Any] = {}
    own: dict[str, dict[str, Any]] = {}
    response: dict[str, Any] = {}
    for name, value in map(parsed, assignments):
        model, colon, setting = name.partition(":")
        if colon and model not in models:
            raise unknown("model", model, models, where=f"--set {name}")
        if colon:
            own.setdefault(model, {})[setting] = value
        elif name.startswith("response."):
            response[name.removeprefix("response.")] = value
        else:
            shared[name] = value
    return shared, own, response


def _recipe(name: str, preset: str, changes: Mapping[str, Any]) -> Recipe | None:
    if name in RULES:
        return None
    if name not in ESTIMATORS:
        raise unknown("model", name, [*ESTIMATORS, *RULES])
    recipe = Recipe.preset(preset, network_in(changes)).changed({**ALWAYS, "estimator.name": name, **changes})
    Network(recipe)
    return recipe


def _different(models: Sequence[str]) -> Sequence[str]:
    if not models:
        raise UnveilError("there is no model to loop", expected="at least one, such as naive")
    if len(set(models)) < len(models):
        raise UnveilError("a model was named twice", found=", ".join(models))
    return models
