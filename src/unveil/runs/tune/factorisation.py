"""One of the two factorisations behind a world as what is tuned: of relevance, or of exposure.

The paper's section 5.1: r̂ = Σ_k P Q W chosen by its validation MSE, exposure by its validation AUC. The tuples on which
`unveil world fit` reports are left out; the rest is split anew for each replicate, in the same way for all trials.
"""

import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from unveil.data.filters import LogSource
from unveil.errors import UnveilError
from unveil.files import explained, write_json
from unveil.models.tensor_factorization.task import Task, Tuples
from unveil.runs.announce import Tell
from unveil.runs.folder import read_json
from unveil.runs.tune.space import Choice, Space
from unveil.runs.tune.study import Replicate, Reporter
from unveil.settings import changed
from unveil.simulation.fit import Fit, as_toml, counted, observed, shared, tuning_tasks

Part = Literal["relevance", "exposure"]
PARTS: tuple[Part, ...] = ("relevance", "exposure")
_RECIPE = "recipe"
#: What came of a replicate, in its folder.
KEPT = "fit.json"


def part_of(space: Space) -> Part | None:
    """Which factorisation a space is about; None: it is about trainings."""
    sections = {name: name.partition(".")[0] for name in space.dimensions}
    if not set(sections.values()) & {*PARTS, _RECIPE}:
        return None
    for name, section in sections.items():
        if section not in PARTS and name != _RECIPE:
            expected = "recipe = [NAME], and settings of relevance or of exposure"
            hint = "What else a world is fitted with is the same for all trials: --set steps=50."
            where = f"space {space.name}, {name}"
            raise UnveilError("not a setting of a factorisation", where=where, expected=expected, hint=hint)
    recipes = space.dimensions.get(_RECIPE)
    if recipes is not None and not (isinstance(recipes, Choice) and len(recipes.values) == 1):
        hint, where = "Recipes have other settings and draw other negatives: give each a study.", f"space {space.name}"
        raise UnveilError("a study is of one recipe", where=f"{where}, {_RECIPE}", found=recipes.plain(), hint=hint)
    found = [part for part in PARTS if part in sections.values()]
    if len(found) != 1:
        expected = "settings of relevance (relevance.width …) or of exposure (exposure.width …), not of both"
        hint = "They are evaluated by different metrics: give each a space and a study of its own."
        raise UnveilError("a study is of one factorisation", where=f"space {space.name}", expected=expected, hint=hint)
    return found[0]


@dataclass(frozen=True)
class Factorisation:
    """A part of how a world is fitted to a log."""

    source: LogSource
    fit: Fit
    part: Part
    epochs = None  # evaluated at the end only
    command = "unveil world fit LOG --config {config} -o WORLD"

    @classmethod
    def of(cls, source: LogSource, fit: Fit, part: Part, space: Space) -> Self:
        """The part that a space is about, by the recipe that it names, if it does."""
        named = space.dimensions.get(_RECIPE)
        return cls(source, replace(fit, recipe=str(named.values[0])) if isinstance(named, Choice) else fit, part)

    @property
    def lower(self) -> bool:
        """Of errors, less is better."""
        return self.part == "relevance"

    @property
    def metric(self) -> str:
        """MSE of ratings, or AUC of interactions among negatives."""
        return "MSE" if self.lower else "AUC"

    @property
    def seed(self) -> int:
        """The fit's."""
        return self.fit.seed

    def facts(self) -> dict[str, Any]:
        """What the report says of it."""
        return {"kind": "factorisation", "part": self.part}

    def changed(self, settings: Mapping[str, Any]) -> Self:
        """With other options of the recipe; the recipe checks them."""
        return replace(self, fit=_changed(self.fit, settings))

    def identity(self) -> dict[str, Any]:
        """What decides how this part is learnt and evaluated."""
        return _identity(self.fit, self.part)

    def context(self, tried: Collection[str], tell: Tell) -> "FactorisationContext":
        """Read the log."""
        log = self.source.load()
        tell(f"log        {log}")
        untested = self.fit.untested(observed(log, self.fit.steps))
        return FactorisationContext(self.fit, self.part, untested, log.fingerprint())

    def toml(self, head: str) -> str:
        """A config of `unveil world fit`, for this part."""
        return as_toml(self.fit, [self.part], head)


def _changed(fit: Fit, settings: Mapping[str, Any]) -> Fit:
    fit = changed(fit, settings)
    fit.recipes()
    return fit


def _identity(fit: Fit, part: Part) -> dict[str, Any]:
    return {"part": part, "settings": shared(fit) | {part: dict(getattr(fit, part))}}


@dataclass(frozen=True, eq=False)
class FactorisationContext:
    """Fits the replicates of trials. What was stopped in the middle of one is begun anew: it takes minutes at most.

    It does not know the log: the tuples it is given are all it can reach.
    """

    fit: Fit
    part: Part
    tuples: Tuples  # without those for test
    fingerprint: str
    world: None = None

    def announce(self, settings: Mapping[str, Any], tell: Tell) -> None:
        """The number of tuples to learn from and to validate on, negatives not counted."""
        fit = _changed(self.fit, settings)
        train, valid, _ = self._tasks(fit, 0)[PARTS.index("relevance")].parts
        sizes = f"{len(train):,} tuples to learn from, {len(valid):,} to validate on"
        tell(f"{self.part:10} recipe {fit.recipe}; {sizes}")

    def replicate(self, settings: Mapping[str, Any], number: int, place: Path, reporter: Reporter) -> Replicate:
        """Fit, unless it was done before."""
        fit = _changed(self.fit, settings)
        about = {"log": self.fingerprint, **_identity(fit, self.part), "replicate": number}
        if known := _kept(place / KEPT, about):
            return known
        found = self._fitted(fit, number, reporter)
        with explained(place):
            place.mkdir(parents=True, exist_ok=True)
        write_json(place / KEPT, {"of": about, "value": found.value, "seconds": found.seconds})
        return found

    def _fitted(self, fit: Fit, number: int, reporter: Reporter) -> Replicate:
        at = PARTS.index(self.part)
        task, recipe = self._tasks(fit, number)[at], fit.recipes()[at]
        advance = counted(recipe.work(task), lambda done, total: reporter.advance(done / total))
        begun = time.monotonic()
        learnt = recipe.learn(task, np.random.default_rng([fit.seed, 2, number]), advance)
        value = task.score(learnt.valid_N, task.parts.valid)
        if not (np.isfinite(value) and np.isfinite(learnt.valid_N).all()):  # an AUC ranks even what is no number
            raise UnveilError(f"the {task.metric} is not a number: the factors grew without bound")
        return Replicate(value, None, time.monotonic() - begun)

    def _tasks(self, fit: Fit, number: int) -> tuple[Task, Task]:
        return tuning_tasks(self.tuples, fit.sampling, np.random.default_rng([fit.seed, 1, number]))


def _kept(path: Path, about: Mapping[str, Any]) -> Replicate | None:
    """What came of it before. A file that is damaged, or of something else, says nothing: the fit is done again."""
    with suppress(UnveilError, KeyError, TypeError, ValueError):
        known = read_json(path)
        if known["of"] == about:
            return Replicate(float(known["value"]), None, float(known["seconds"]))
    return None
