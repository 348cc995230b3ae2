"""Experiment: a run as data. Read from TOML, changed by dotted names, written beside the results."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Self
from warnings import warn

import numpy as np

from unveil.data.filters import LogSource
from unveil.data.interactions import Interactions, Sequences
from unveil.data.readers.database import shown
from unveil.data.splits import Split, Targets, leave_one_out, temporal_split
from unveil.errors import UnveilError, UnveilWarning, check_ranges
from unveil.settings import flattened, plain, read_toml, toml_value
from unveil.training.recipe import PRESETS, Recipe, network_in, preset
from unveil.wording import quantity

Tell = Callable[[str], None]


@dataclass(frozen=True)
class DataConfig(LogSource):
    """Which log, how to read it, what to leave out, how to split it."""

    world: str | None = None  # the folder of the world that the log was drawn from
    split: Literal["leave-one-out", "temporal"] = "leave-one-out"
    valid_from: float = 0.8  # temporal: shares of the events in time order
    test_from: float = 0.9
    targets: Targets = "last"

    def load(self) -> Interactions:
        """As of any log, without the rows that a random policy showed: they are a test without exposure bias."""
        log = super().load()
        if log.randomised is None or not log.randomised.any() or log.randomised.all():
            return log
        if log.histories() is not None:
            hint = "Pack the rows of the standard policy alone, and name the others with --test."
            raise UnveilError("a packed log holds rows shown at random (is_rand)", where=self.log, hint=hint)
        random = f"{self.log}: {quantity(int(log.randomised.sum()), 'row')} shown at random (is_rand)"
        warn(f"{random}, left out of training. Test on them: unveil evaluate RUN --test {self.log}", UnveilWarning, 2)
        return log.where(~log.randomised).compact()

    def parts(self, log: Interactions, tell: Tell = lambda _: None) -> Split:
        """Train, validation and test; their sizes are printed. Impressions without a click are in no history."""
        sequences = Sequences.of(log)
        if self.split == "leave-one-out":
            split = leave_one_out(sequences)
        else:
            split = temporal_split(sequences, valid=self.valid_from, test=self.test_from, targets=self.targets)
        if log.clicked is None:
            tell(f"log        {log}")
        else:
            tell(f"clicked    {_sizes(log.interacted(), 'click')}")
            tell(f"shown      {_sizes(log, 'impression')}; all items shown can be recommended")
        tell(f"split      {split.rule}; {quantity(split.train_only, 'user')} for training only")
        tell(f"           {split}")
        return split


def _sizes(log: Interactions, noun: str) -> str:
    users, items = len(np.unique(log.user)), len(np.unique(log.item))
    return f"{quantity(len(log), noun)}, {quantity(users, 'user')}, {quantity(items, 'item')}"


@dataclass(frozen=True)
class EvaluationConfig:
    """Which rankings are made, and which of them decides when to stop."""

    uniform: int | None = None  # negatives drawn uniformly; 0: none; None: 100, or as many as there are for all cases
    popular: int | None = None  # the same, drawn by popularity
    seed: int = 0  # of the negatives: the same for all runs that are to be compared
    exclude_seen: bool = True  # items of the context do not compete; switch off where users come back to items
    validation: str = "full"  # the ranking that decides when to stop: full, uniform-N or popular-N
    labelled: str | None = None  # a labelled test that decides instead; training.monitor is its metric
    candidates: str | None = None  # of it: a file of the items that are ranked, one id a line
    seen: Literal["error", "skip", "keep"] = "error"  # its rows of items in the user's history

    def __post_init__(self) -> None:
        check_ranges(self, "evaluation", uniform="0 or more", popular="0 or more", seed="0 or more")
        if not re.fullmatch(r"full|(uniform|popular)-[1-9]\d*", self.validation):
            expected, found = "full, uniform-N or popular-N with a number N", self.validation
            raise UnveilError("no such ranking", where="evaluation.validation", found=found, expected=expected)
        if self.labelled is None and (self.candidates is not None or self.seen != "error"):
            hint = "Name it: --validation FILE."
            raise UnveilError("candidates and seen are of a labelled validation", where="evaluation", hint=hint)


@dataclass(frozen=True)
class Experiment(Recipe):
    """A recipe, the data it is applied to, and how the result is evaluated."""

    data: DataConfig = field(default_factory=DataConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    @classmethod
    def of(cls, base: str | Path, changes: Mapping[str, Any] | None = None, network: str | None = None) -> Self:
        """A preset, by name, or a TOML file, by path, changed; `network` counts where no layer names one."""
        ground, files = _files(base)
        trees = [changes or {}, *(content for content, _ in reversed(files)), PRESETS.get(ground or "", {})]
        network = next((name for name in map(network_in, trees) if name is not None), network)
        experiment, under = cls(), {} if network is None else {"model.name": network}
        presets = [under] if ground is None else preset(ground, network)
        for layer, where in (*((each, None) for each in presets), *files, (changes or {}, None)):
            experiment = experiment.changed(layer, where=where)
        return experiment

    @property
    def recipe(self) -> Recipe:
        return Recipe(**{part.name: getattr(self, part.name) for part in fields(Recipe)})


def _files(base: str | Path) -> tuple[str | None, list[tuple[dict[str, Any], Path]]]:
    """The preset that a TOML file rests on, if any, and the files with their content, each after the one it extends."""
    files: list[tuple[dict[str, Any], Path]] = []
    inside: set[Path] = set()
    while isinstance(base, Path):
        if base.resolve() in inside:
            raise UnveilError("configs extend each other in a circle", where=base)
        inside.add(base.resolve())
        content = read_toml(base, "config")
        files.insert(0, (content, base))
        extends = content.pop("extends", None)
        if extends is None:
            return None, files
        if not isinstance(extends, str) or "\0" in extends:
            raise UnveilError("not a name", where=f"{base}, extends", found=extends, expected="a TOML file or a preset")
        base = base.parent / extends if extends.endswith(".toml") else extends
    return base, files


def as_toml(experiment: Experiment, head: str) -> str:
    """TOML cannot say "none": where that differs from the default, the file extends a preset that says it."""
    tree = plain(experiment)
    tree["data"]["log"] = shown(tree["data"]["log"])
    left = tree.pop("auto")
    lines = [f"# {line}" if line else "#" for line in head.splitlines()]
    if (ground := _ground(tree)) is not None:
        lines.append(f"extends = {json.dumps(ground)}")
    if left:
        lines.append(f"auto = {toml_value(left)}")
    for section, values in tree.items():
        lines += ["", f"[{section}]"]
        lines += [f"{name} = {toml_value(value)}" for name, value in values.items() if value is not None]
    return "\n".join(lines) + "\n"


def _ground(tree: Mapping[str, Any]) -> str | None:
    nothing = {name for name, value in flattened(tree).items() if value is None}
    for ground in (None, *PRESETS):
        base = Experiment() if ground is None else Experiment.of(ground)
        base = base.changed({"model.name": tree["model"]["name"]})
        if all(flattened(plain(base)).get(name) is None for name in nothing):
            return ground
    raise UnveilError("these settings cannot be written as TOML", found=", ".join(sorted(nothing)))
