"""Networks trained on logs drawn from worlds with known relevance, and evaluated on it.

A cell is one arm trained on one replicate's log of one world at one severity. Worlds are made first and kept.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import model_validator

from unveil.data.filters import Filters
from unveil.data.interactions import Interactions
from unveil.data.readers import convert_first
from unveil.errors import AtLeastOne, Share, UnveilError, UpToOne, check_range, check_ranges, unknown
from unveil.estimators.base import ESTIMATORS, estimator
from unveil.files import atomic_folder
from unveil.models.tensor_factorization.recipes import RECIPES
from unveil.propensity.impressions import RecordedStatic, RecordedTemporal
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.choice import CHOICES
from unveil.simulation.fit import Fit, fit_world, observed
from unveil.simulation.world import World
from unveil.studies import arms, tables
from unveil.studies.arms import NOISY, TRUE_THETA, Variant
from unveil.studies.engine import Answer, Cell, Context, Source, Study, Work
from unveil.studies.paper import Published, paper_rows
from unveil.studies.presets import Preset, preset
from unveil.studies.results import BASELINES, TRUE, Measure, Results
from unveil.studies.tables import Records
from unveil.studies.trial import TrialContext, rank_rows, record
from unveil.training.recipe import Recipe, network_in

BUILTIN = "builtin"
#: What the paper leaves out of a log with ratings: rare items, then short users.
FILTERS = Filters(min_item=5, min_user=5)
#: Propensities that are learnt from the impressions of a drawn log.
RECORDED = (RecordedStatic.name, RecordedTemporal.name)
#: Propensities on the scale of the true ones, for which the clips of presets are meant.
_TRUE_SCALE = (TRUE_THETA, NOISY, "recorded")
#: Streams of random numbers of one replicate, kept apart.
_LOG, _TRAINING = 0, 1


class SemiSynthetic(Study):
    """Where worlds come from, how logs are drawn from them, how networks are trained and evaluated."""

    template: ClassVar[str] = "semisynthetic.md.j2"
    #: Whether targets are ranked against negatives drawn by popularity as well.
    by_popularity: ClassVar[bool] = False
    defaults: ClassVar[Mapping[str, Any]] = {
        "foresight": 0.0, "epoch_by": "truth", "stars": False, "impressions": 0.1
    }  # fmt: skip

    data: str = "ml-100k"  # 'builtin', the folder of a world, or a log with ratings that worlds are fitted to
    preset: str = "paper"
    steps: AtLeastOne = 100  # T: of each user the last so many ratings
    fit: str = "posterior"  # how worlds are fitted to the log
    choice: str = "rational_exposed"
    catalogue: str = "observed"  # items that the drawn log shows, or the whole world's
    propensity: str = "true"  # given to the estimators: true, noisy:SD, estimated or one of the registry
    clip: Share | None = None  # θ is clipped from below at this; None: as the preset says
    negatives: AtLeastOne = 100
    seed: int = 0
    changes: tuple[str, ...] = ()  # settings of all trainings, or of one estimator, as NAME=VALUE or ips:NAME=VALUE
    foresight: float = 0.0  # how far exposure follows relevance
    epoch_by: str = "truth"  # as in the paper, or taken: by the held-out interactions, as on a real log
    stars: bool = False  # whether ratings of drawn logs are rounded to 1 … 5
    impressions: UpToOne = 0.1  # the share of impressions without a click that drawn logs record, for arms that use it
    severities: tuple[float, ...] = (1.0,)
    worlds: AtLeastOne = 1
    replicates: AtLeastOne = 5
    estimators: tuple[str, ...] = ("naive", "ips", "itps", "ideal")

    @model_validator(mode="after")
    def check(self) -> Self:
        check_ranges(self, "", seed="0 or more")
        check_range(abs(self.foresight) < float("inf"), "foresight", self.foresight, "a number")
        for what, name, known in (
            ("catalogue", self.catalogue, ("observed", "whole")),
            ("rule for the epoch", self.epoch_by, ("truth", "taken")),
            ("choice model", self.choice, CHOICES),
            ("way to fit a world", self.fit, RECIPES),
        ):
            if name not in list(known):
                raise unknown(what, name, known)
        for severity in self.severities:
            if not 0 < severity < float("inf"):
                raise UnveilError("the severity is out of range", found=severity, expected="a number above 0")
        arms.check_distinct(self.severities, "--severity")
        if not self.estimators or not self.severities:
            raise UnveilError("nothing to compare", expected="at least one estimator and one severity")
        arms.check_duplicates(self.estimators)
        arms.check_changes(self.estimators, self.changes)
        for name in ("naive", "ips", "itps", *self.estimators):
            self.recipe(name, 0)
        return self

    @property
    def training(self) -> Preset:
        return preset(self.preset)

    @property
    def about(self) -> str:
        return arms.with_changes(self.training.about, self.changes)

    @property
    def recipes(self) -> dict[str, Recipe]:
        return {arm: self.recipe(arm, 0) for arm in dict.fromkeys(self.estimators)}

    def recipe(self, arm: str, seed: int) -> Recipe:
        """That of naive for baselines, unused; another network keeps of the preset what it has as well."""
        arm = "naive" if arm in BASELINES else arm
        changes = arms.settings(arm, self.changes, seed, self.propensity)
        name, given = changes["estimator.name"], Variant.of(arm).propensity or self.propensity
        if self.clip is not None and "clip" in ESTIMATORS.options(name):
            changes.setdefault("estimator.clip", self.clip)
        if changes.get("propensity.name") in RECORDED:
            changes.setdefault("propensity.rate", self.impressions)
        preset = self.training.settings(name, network_in(changes))
        if given.partition(":")[0] not in _TRUE_SCALE:
            preset.pop("estimator.clip", None)  # it is on the scale of true propensities
        return Recipe().changed({"model.name": "bert4rec", "estimator.name": name}).changed(preset).changed(changes)

    def log_seed(self, world: int, replicate: int) -> list[int]:
        """Of the draw of a replicate's log: the same for all estimators and all severities."""
        return [self.seed, world, replicate, _LOG]

    def training_seed(self, world: int, replicate: int) -> int:
        """Of all that is random in a replicate's trainings and evaluation: the same for all estimators."""
        return int(np.random.SeedSequence([self.seed, world, replicate, _TRAINING]).generate_state(1)[0])

    def open_data(self) -> Source:
        """A case is ranked against all items but its own at most; a drawn log may show fewer, and no more."""
        if self.data == BUILTIN:
            source, items = Source(BUILTIN, BUILTIN, "the built-in world"), WorldSpec().items
        elif is_world(self.data):
            if self.worlds > 1:
                found, hint = f"{self.worlds} worlds", "Name the log that it was fitted to, or ask for one world."
                raise UnveilError("a saved world is one world", where=self.data, found=found, hint=hint)
            world = World.load(self.data)
            source, items = Source(self.data, digest(Path(self.data)), repr(world)), world.n_items
        else:
            log = self.read_log()
            observed(log, self.steps)  # raises where no world can be fitted
            source, items = Source(self.data, log.fingerprint(), repr(log)), len(log.items)
        arms.check_negatives(self.negatives, items - 1)
        return source

    def read_log(self) -> Interactions:
        with convert_first(self.data):
            return FILTERS(Interactions.read(self.data))

    def identity(self, source: Source) -> dict[str, Any]:
        """The preset as it is now: cells of an earlier revision are not continued."""
        return super().identity(source) | {"preset": self.training.called(self.preset)}

    def cells(self) -> Iterable[Cell]:
        for severity, arm in product(self.severities, (*BASELINES, *dict.fromkeys(self.estimators))):
            for world, replicate in product(range(self.worlds), range(self.replicates)):
                place = {"severity": severity, "estimator": arm, "world": world, "replicate": replicate}
                yield Cell(cell_key(arm, severity, world, replicate), place, self.cost(arm))

    def cost(self, arm: str) -> float:
        """About the seconds on a log drawn from a world of ml-100k."""
        return 4.0 if arm in BASELINES else 6.0 + arms.seconds_of(self.recipe(arm, 0), (943, 1349, 92_414))

    def stages(self, work: Work) -> Iterator[tuple[str, Sequence[Cell]]]:
        """Worlds, then cells. A world whose folder is gone is made again, where cells are left to do."""
        cells = list(self.cells())
        worlds = [Cell(f"w{number}", {"world": number}, method="run_world") for number in range(self.worlds)]
        for number in range(self.worlds):
            there, here = world_folder(work.other or work.folder, number), world_folder(work.folder, number)
            if is_world(there) and not here.exists():  # its cells and the new ones are then of the same world
                with atomic_folder(here) as draft:
                    shutil.copytree(there, draft, dirs_exist_ok=True)
        for cell in worlds if work.left(cells) else ():
            if not is_world(world_folder(work.folder, cell.at["world"])):
                work.store.remove(cell.key)
        yield "worlds", worlds
        yield "cells", cells

    def run_world(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        number: int = cell.at["world"]
        seed = self.seed + number
        if self.data == BUILTIN or is_world(self.data):
            world = World.open(self.data, seed)
        else:
            world = fit_world(self.read_log(), Fit(self.steps, self.fit, seed=seed), context.advance)
        world.save(world_folder(context.folder, number), overwrite=True)
        return {"world": number, "origin": world.origin, "description": asdict(world.describe())}

    def run_cell(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        return self.run_arm(cell.at, cell.at["estimator"], context)

    def run_arm(self, at: Mapping[str, Any], arm: str, context: Context) -> dict[str, Any]:
        where = {name: at[name] for name in ("world", "severity", "replicate")}
        recipe = self.recipe(arm, self.training_seed(at["world"], at["replicate"]))
        shown = recipe.propensity["name"] in RECORDED or estimator(str(recipe.estimator["name"])).needs == "impressions"
        trial = drawn_trial(self, context.folder, *where.values(), shown)
        return {**where, "estimator": arm, **record(trial, arm, recipe, context.on_progress)}

    def rows(self, cell: Cell, record: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
        return rank_rows(record, by_user=self.worlds == self.replicates == 1)

    def headline(self, results: Results, evaluation: str = TRUE) -> Measure:
        """The measure that conclusions are drawn from: the paper's NDCG@10."""
        return Measure(evaluation, results.protocol("uniform"), "NDCG", 10)

    def first(self, answer: Answer) -> Results:
        return answer.results.at(severity=self.severities[0])

    def world_records(self, answer: Answer) -> list[Mapping[str, Any]]:
        return [answer.records[f"w{number}"] for number in range(self.worlds)]

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        results, headline = answer.results, self.headline(answer.results)
        gaps = {arm: results.gap_closed(arm, headline) for arm in results.trained}
        return {
            "preset": self.preset,
            "headline": headline._asdict(),
            "gap_closed": {arm: gap and gap.mean for arm, gap in gaps.items()},
            "gap_closed_interval": {arm: gap and [gap.low, gap.high] for arm, gap in gaps.items()},
            "world": [world["description"] for world in self.world_records(answer)],
        }

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        trained, warnings = self._trained(answer), dict[str, tuple[float, str]]()
        for p, records in trained.items():
            for arm, text in tables.weight_warnings(records).items():
                warnings.setdefault(arm, (p, text))  # at the severity where it is seen first
        log = ("users", "items", "events", "favourite_taken", "unlearnable")
        return {
            "measure": self.headline(answer.results),
            "here": self.first(answer),
            "trained": trained,
            "warnings": warnings,
            "weighting": {p: tables.weight_means(records) for p, records in trained.items()},
            "logs": {p: tables.means_of(answer.where(severity=p), "log", *log) for p in self.severities},
        }

    def _trained(self, answer: Answer) -> dict[float, dict[str, Records]]:
        return {p: answer.by_arm(severity=p) for p in self.severities}

    def csv(self, answer: Answer) -> list[dict[str, Any]]:
        return csv_rows(answer.results, self.preset)


def is_world(data: str | Path) -> bool:
    """Whether the data are a saved world."""
    return (Path(data) / "world.json").is_file()


def digest(folder: Path) -> str:
    """A hash that identifies a saved world."""
    parts = ("world.json", "ids.json", "factors.safetensors")
    return sha256(b"".join((folder / part).read_bytes() for part in parts)).hexdigest()


def world_folder(folder: Path, number: int) -> Path:
    """Where a world of a study is kept."""
    return folder / "worlds" / f"{number:02d}"


def ratings_noise(world: World) -> float:
    """How far ratings of a drawn log are from r̂: as far as the fit's test predictions, or 1 if none was fitted."""
    if world.origin.get("kind") != "fitted":
        return 1.0
    return float(np.sqrt(world.origin["relevance"]["recipe"]["test"]))


def cell_key(arm: str, severity: float, world: int, replicate: int) -> str:
    """w0-p1-r0-naive; no colon, which not every file system accepts."""
    return f"w{world}-p{severity:g}-r{replicate}-{arm}".replace(":", "-")


@lru_cache(maxsize=1)
def drawn_trial(
    study: SemiSynthetic, folder: Path, world: int, severity: float, replicate: int, recorded: bool = False
) -> TrialContext:
    """The log of a replicate with its cases, shared by its arms; `recorded` impressions come on top."""
    whole = World.load(world_folder(folder, world)).with_severity(severity).with_foresight(study.foresight)
    log = whole.log(
        np.random.default_rng(study.log_seed(world, replicate)),
        study.choice,
        ratings_noise=ratings_noise(whole),  # for estimates that need ratings
        stars=study.stars,
        impressions=study.impressions if recorded else None,
    )
    shown = log.within_interacted() if study.catalogue == "observed" else log
    return TrialContext.of(
        whole.aligned_with(shown),
        shown,
        study.recipe("naive", study.training_seed(world, replicate)),
        negatives=study.negatives,
        popular=study.by_popularity,
        validation="full" if study.training.validation == "full" else f"uniform-{study.negatives}",
        by_log=study.epoch_by == "taken",
    )


def csv_rows(results: Results, preset: str) -> list[dict[str, Any]]:
    """Rows of results.csv: a row for each severity, estimator and measure."""
    rows = []
    for measure, row in paper_rows(results, preset, Published.semisynthetic):
        arm, here = row["estimator"], results.at(severity=row["severity"])
        ranked = measure in results.ranked and measure.evaluation == TRUE and arm in results.trained
        gap = here.gap_closed(arm, measure) if ranked else None
        bounds = {"gap_closed_low": gap and gap.low, "gap_closed_high": gap and gap.high}
        rows.append({**row, "gap_closed": gap and gap.mean, **bounds})
    return rows
