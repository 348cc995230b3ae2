"""Experiment: a run as data. Read from TOML, changed by dotted names, written beside the results."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Self

from unveil.data.filters import Filters, Repeats
from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.splits import Split, Targets, leave_one_out, temporal_split
from unveil.errors import UnveilError
from unveil.training.presets import PRESETS
from unveil.training.recipe import Recipe, preset


@dataclass(frozen=True)
class DataConfig:
    """Which log, how to read it, what to leave out, how to split it."""

    log: str = ""
    format: str | None = None
    columns: dict[str, str] = field(default_factory=dict)
    time_unit: str | None = None
    encoding: str = "utf-8"
    query: str | None = None
    min_rating: float | None = None
    min_item: int = 0
    min_user: int = 0
    iterate: bool = False
    repeats: Repeats = "keep"
    world: str | None = None  # the folder of the world that the log was drawn from
    split: Literal["leave-one-out", "temporal"] = "leave-one-out"
    valid_from: float = 0.8  # temporal: shares of the events in time order
    test_from: float = 0.9
    targets: Targets = "last"

    def load(self) -> Interactions:
        """The log less what the filters leave out."""
        log = Interactions.read(
            self.log,
            self.format,
            columns=self.columns,
            time_unit=self.time_unit,
            encoding=self.encoding,
            query=self.query,
        )
        return Filters(self.min_rating, self.min_item, self.min_user, self.iterate, self.repeats)(log)

    def parts(self, log: Interactions) -> Split:
        """Train, validation and test."""
        sequences = Sequences.of(log)
        if self.split == "leave-one-out":
            return leave_one_out(sequences)
        return temporal_split(sequences, valid=self.valid_from, test=self.test_from, targets=self.targets)


@dataclass(frozen=True)
class EvaluationConfig:
    """Which rankings are made, and which of them decides when to stop."""

    uniform: int = 100  # negatives drawn uniformly; 0: none
    popular: int = 100  # negatives drawn by popularity; 0: none
    seed: int = 0  # of the negatives: the same for all runs that are to be compared
    exclude_seen: bool = True  # items of the context do not compete; switch off where users come back to items
    validation: str = "full"  # the ranking that decides when to stop: full, uniform-N or popular-N


@dataclass(frozen=True)
class Experiment(Recipe):
    """A recipe, the data it is applied to, and how the result is judged."""

    data: DataConfig = field(default_factory=DataConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    @classmethod
    def of(cls, base: str | Path, changes: Mapping[str, Any] | None = None) -> Self:
        """A preset or a TOML file, with some settings replaced."""
        experiment = cls()
        for layer, where in layers(base):
            experiment = experiment.changed(layer, where=where)
        return experiment.changed(changes or {})

    @property
    def recipe(self) -> Recipe:
        """What decides what is learnt."""
        return Recipe(**{part.name: getattr(self, part.name) for part in fields(Recipe)})


def layers(base: str | Path, inside: Sequence[Path] = ()) -> list[tuple[Mapping[str, Any], object]]:
    """The settings of a preset or a TOML file, those it extends first, each with where it was found."""
    if str(base) in PRESETS:
        return [(preset(str(base)), None)]
    path = Path(base)
    if path in inside:
        raise UnveilError("configs extend each other in a circle", where=path)
    content = _toml(path)
    extends = content.pop("extends", None)
    if extends is None:
        return [(content, path)]
    below = extends if extends in PRESETS else path.parent / extends
    return [*layers(below, [*inside, path]), (content, path)]


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except FileNotFoundError:
        hint = f"Name a TOML file or one of the presets: {', '.join(PRESETS)}."
        raise UnveilError("no such config", where=path, hint=hint) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UnveilError(f"not TOML: {error}", where=path) from None
    except OSError as error:
        raise UnveilError(f"cannot be read: {error.strerror}", where=path) from None
