"""The last section of a loop's page: how each round goes, for those who repeat it."""

from unveil.experiment.loop.plan import LoopPlan
from unveil.experiment.loop.run import Looped
from unveil.report.names import named
from unveil.report.page import Block, Code, Column, Table, Text
from unveil.settings import plain
from unveil.simulation.feedback.retraining import Retraining
from unveil.training.recipe import AUTO, Recipe
from unveil.wording import quantity

_HELD_OUT = (
    "Nothing is held out: a model is trained on every event there is, for a fixed number of epochs, and its last "
    "weights are used. An event that was held out to say when to stop would reach training a round late."
)
_SHARED = (
    "In one round of one replicate a user has the same luck whichever model serves them. Initial weights, batches and "
    "masks are shared by all models of the same form, and others in every round and replicate."
)


def made(looped: Looped, command: str) -> list[Block]:
    """How to get the same figures again, and what they stand on."""
    return [*map(Text, rules(looped)), _models(looped.plan), Code(command)]


def rules(looped: Looped) -> list[str]:
    """What is not in the figures, each a paragraph."""
    return [_round(looped), _HELD_OUT, _SHARED, *([_world(looped)] if looped.world is not None else [])]


def _round(looped: Looped) -> str:
    plan, log = looped.plan, looped.log
    size = f"{quantity(len(log.interacted()), 'event')} of {quantity(len(log.users), 'user')} with "
    return (
        f"The first log: {size}{quantity(len(log.items), 'item')}. In round 0 a model is trained on it and recommends "
        f"{quantity(plan.loop.k, 'item')} to every user, from the user's whole history and nothing that is in it; "
        f"where fewer are left, the list is shorter. In each later round users respond to the lists of the round "
        f"before, the log grows by what they took, one step further for everybody, and {_retraining(plan)}."
    )


def _retraining(plan: LoopPlan) -> str:
    how = Retraining.parse(plan.loop.retrain)
    if how.every > 1:
        return f"every {how.every} rounds the model is trained anew on the whole of it"
    if not how.warm:
        return "the model is trained anew on the whole of it at once"
    epochs = "" if how.epochs is None else f", for {quantity(how.epochs, 'epoch')}"
    return f"the model is trained on the whole of it at once, from the weights of the round before{epochs}"


def _world(looped: Looped) -> str:
    world = looped.world
    assert world is not None
    return (
        f"The log was drawn from {world!r}, which has {quantity(world.n_steps, 'step')}. A round is a step; beyond the "
        f"world's last one relevance stands still. Exposure in the loop is the recommender's doing, so estimators are "
        f"given popularity, not the exposure of the world."
    )


def _models(plan: LoopPlan) -> Table:
    columns = ("network", "width", "blocks", "tokens", "dropout", "batch", "masked", "epochs", "estimator")
    rows = [[named(name), *_settings(recipe)] for name, recipe in plan.models.items()]
    return Table(
        f"The models: preset {plan.preset}{_tuned(plan)}, and what was changed",
        [Column("model"), *(Column(title, title not in ("network", "estimator")) for title in columns)],
        rows,
        sortable=False,
    )


def _tuned(plan: LoopPlan) -> str:
    return "" if plan.tuned_for is None else f" with the authors' settings for {plan.tuned_for}"


def _settings(recipe: Recipe | None) -> list[str]:
    if recipe is None:
        return ["a rule", *["–"] * 7, "nothing is trained"]
    model, task = recipe.model, recipe.task
    options = {**recipe.estimator, **({} if recipe.propensity["name"] == AUTO else dict(recipe.propensity))}
    told = ", ".join(f"{name} {value}" for name, value in options.items() if name != "name")
    sizes = (model.width, model.blocks, model.length, model.dropout, task.batch_size, task.mask_probability)
    return [
        str(plain(model)["name"]),
        *(f"{number:g}" for number in (*sizes, recipe.training.epochs)),
        told or "as it is",
    ]
