"""`unveil advise`: which estimator, clip and propensity to use on a log.

Worlds are fitted to the log (or given); logs are drawn from them in several scenarios; every candidate is trained on
each and evaluated on true relevance. Shapes: Z scenarios, W worlds, R replicates.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from unveil.audit.evidence import evidence
from unveil.data.describe import describe
from unveil.data.filters import LogSource
from unveil.data.interactions import Interactions
from unveil.errors import AtLeastOne, UnveilError, UpToOne, check_range, check_ranges, unknown
from unveil.estimators.base import estimator
from unveil.models.tensor_factorization.recipes import RECIPES
from unveil.propensity.base import PROPENSITIES
from unveil.runs.progress import spell
from unveil.simulation.choice import CHOICES
from unveil.simulation.fit import Fit, check_share, fit_world, implicit_worlds
from unveil.simulation.generate import rate_that_leaves
from unveil.simulation.world import World
from unveil.studies import arms, candidates, shipped
from unveil.studies.decision import Advice, Draw, Scenario
from unveil.studies.engine import Answer, Cell, Context, Source, Study, Work
from unveil.studies.results import BASE, BOUND
from unveil.studies.semisynthetic import BUILTIN, digest, is_world, ratings_noise, world_folder
from unveil.studies.trial import TrialContext, rank_rows, record
from unveil.training.recipe import Recipe, network_in
from unveil.wording import quantity

#: Of a fitted world, unless another number is given.
MOST_STEPS = 100
#: Streams of random numbers of one draw, kept apart.
_LOG, _TRAINING = 0, 1

#: How much is tried, unless options say otherwise; lists are tuples, which studies can be hashed with.
EFFORTS: Mapping[str, Mapping[str, Any]] = {
    effort: {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
    for effort, settings in shipped("defaults")["advise"].items()
}


def scenarios(choices: Iterable[str], severities: Iterable[float], liked: Iterable[float] = ()) -> tuple[Scenario, ...]:
    """Every combination."""
    return tuple(Scenario(*each) for each in product(choices, severities, tuple(liked) or (None,)))


class Advise(Study):
    """Where worlds come from, which candidates are tried on the logs drawn from them, and how they are trained."""

    name: ClassVar[str] = "advise"
    title: ClassVar[str] = "Which estimator for this log?"
    template: ClassVar[str] = "advise.md.j2"
    format: ClassVar[int] = 2
    extent = frozenset({"worlds", "replicates", "scenarios", "estimators", "clips", "propensities"})

    log: LogSource = Field(default_factory=LogSource, exclude=True)
    preset: str = "quick"  # of training, as in `unveil train`
    users: AtLeastOne = 500  # of the log that worlds are fitted to
    steps: AtLeastOne = MOST_STEPS
    fit: str = "posterior"
    liked: tuple[float, ...] = ()  # for logs without ratings: declared shares of popularity that are relevance
    world: str | None = None  # a saved world, or 'builtin', in the place of one that is fitted
    seed: int = 0
    changes: tuple[str, ...] = ()  # settings of all trainings, or of one estimator
    left: float = 0.0  # impressions without a click for each event of the log: drawn logs record as many
    impressions: UpToOne = 1.0  # the share of impressions without a click that the log records
    scenarios: tuple[Scenario, ...] = scenarios(EFFORTS["quick"]["choices"], EFFORTS["quick"]["severities"])
    worlds: AtLeastOne = 1
    replicates: AtLeastOne = 3
    estimators: tuple[str, ...] = EFFORTS["quick"]["estimators"]
    clips: tuple[str, ...] = EFFORTS["quick"]["clips"]
    propensities: tuple[str, ...] = ()  # none named: all that the log allows
    required: tuple[str, ...] = Field(default=(), exclude=True)  # propensities that must be had

    @model_validator(mode="after")
    def check(self) -> Self:
        check_ranges(self, "advise")
        for what, names, known in (
            ("way to fit a world", [self.fit], list(RECIPES)),
            ("choice model", [scenario.choice for scenario in self.scenarios], list(CHOICES)),
            ("propensity", self.propensities, arms.families()),
        ):
            for name in names:
                if name not in known:
                    raise unknown(what, name, known)
        self._check_worlds()
        self._check_estimators()
        usable = [name for name in self.propensities if name in map(arms.family, candidates.from_a_log())]
        for arm in candidates.candidates(self.estimators, usable, self.clips).arms:
            self.recipe(arm, 0)
        return self

    def _check_worlds(self) -> None:
        if not self.scenarios:
            raise UnveilError("there is no scenario to try", expected="at least one of --choices and of --severities")
        for scenario in self.scenarios:
            check_range(0 < scenario.severity < np.inf, "--severities", scenario.severity, "above 0")
        for share in self.liked:
            check_share(share, "--implicit")
        arms.check_distinct({scenario.severity for scenario in self.scenarios}, "--severities")
        arms.check_distinct(self.liked, "--implicit")
        if self.liked and self.world is not None:
            problem, hint = "a world that is given has a liking of its own", "Leave out --implicit, or --world."
            raise UnveilError(problem, where="--implicit", found=self.liked[0], hint=hint)
        if self.world not in (None, BUILTIN) and self.worlds > 1:
            raise UnveilError("a saved world is one world", found=f"{self.worlds} worlds", hint="Pass --worlds 1.")

    def _check_estimators(self) -> None:
        for name in self.estimators:
            if "@" in name or "+" in name:
                hint = "Use --propensities, --clips, and for other options --set ESTIMATOR:estimator.NAME=VALUE."
                raise UnveilError("estimators are named alone here", where="--estimators", found=name, hint=hint)
            estimator(name)
        if set(self.estimators) <= {BASE, BOUND}:
            raise UnveilError("there is nothing to compare with the naive loss", expected="at least one estimator more")
        for name in self.required:
            if not any("@" in arm for arm in candidates.candidates(self.estimators, (name,), ("",)).usable):
                problem, hint = "no estimator that is tried can use this propensity", "Name others with --estimators."
                found = ", ".join(self.estimators)
                raise UnveilError(problem, where=f"--propensities {name}", found=found, hint=hint)
        arms.check_changes((BASE, BOUND, *self.estimators), self.changes)

    @property
    def groups(self) -> int:
        """Worlds of one draw from the posterior: one for each declared share."""
        return max(1, len(self.liked))

    def world_number(self, draw: Draw) -> int:
        liked = draw.scenario.liked
        return draw.world * self.groups + (0 if liked is None else self.liked.index(liked))

    def entropy(self, draw: Draw, stream: int) -> list[int]:
        """Of what is random in a draw: its log, or the trainings on it."""
        return [self.seed, self.world_number(draw), draw.scenario.seed, draw.replicate, stream]

    def training_seed(self, draw: Draw) -> int:
        """Of all that is random in the trainings on a draw: the same for all arms."""
        return int(np.random.SeedSequence(self.entropy(draw, _TRAINING)).generate_state(1)[0])

    def recipe(self, arm: str, seed: int, rate: float | None = None) -> Recipe:
        """How an arm is trained; `rate`: the share of impressions that its log records, by default the real log's."""
        # The same figures, however many processes there are.
        changes: dict[str, Any] = {"training.device": "cpu", "training.threads": 1}
        changes |= arms.settings(arm, self.changes, seed, arms.TRUE_THETA)
        if (given := changes.get("propensity.name")) and "rate" in PROPENSITIES.options(given):
            changes["propensity.rate"] = self.impressions if rate is None else rate
        recipe = Recipe.preset(self.preset, network_in(changes) or "bert4rec")
        return recipe.changed({"estimator.name": changes["estimator.name"]}).changed(changes)

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    def open_data(self) -> Source:
        shown = user_log(self)
        if self.world not in (None, BUILTIN):
            World.load(Path(self.world))
        candidates.check_impressions(self.impressions, self.left, shown)
        candidates.check_columns(self.required, shown, recorded=self.left > 0)
        events = shown.interacted()
        if self.world is None and not self.liked and events.rating is None:
            raise UnveilError(
                "the log has no ratings, and without them relevance cannot be told from exposure",
                hint="Name a world with --world; or declare with --implicit 0.25,0.75 which share of popularity is "
                "relevance: a world is then made for each.",
            )
        if self.world is None:
            candidates.check_items(len(events.items), "what the users that are drawn took")
        return Source(self.log.log, events.fingerprint(), str(events))

    def identity(self, source: Source) -> dict[str, Any]:
        """Without the impressions: cells that depend on them name them."""
        fields = self.model_dump(mode="json", exclude={*self.extent, "left", "impressions"})
        given = digest(Path(self.world)) if self.world not in (None, BUILTIN) else self.world
        return fields | {"world": given, "log": source.fingerprint}

    def stages(self, work: Work) -> Iterator[tuple[str, Sequence[Cell]]]:
        """Worlds; then which propensities can be estimated; then the trainings that follow from both."""
        worlds = [Cell(f"worlds-{draw}", {"world": draw}, method="run_worlds") for draw in range(self.worlds)]
        for cell in worlds:
            if not is_world(world_folder(work.folder, cell.at["world"] * self.groups)):
                work.store.remove(cell.key)  # its folder was removed
        yield "worlds", worlds
        probed = Cell(self.probe_key, {}, method="run_probe")
        if work.left([probed]):
            candidates.check_items(len(self._first_log(work.folder).items), "a log that was drawn from the world")
            work.say("Fitting every propensity to your log and to a drawn one, to find out which can be estimated.")
        yield "looks at propensities", [probed]
        tried, size = self.candidates(work.records[probed.key]).arms, tuple(work.records[probed.key]["size"])
        # 2 seconds beside the training: propensities, evaluation, and a part of drawing the log.
        seconds = {arm: 2.0 + arms.seconds_of(self.recipe(arm, 0), size) for arm in tried}
        axes = product(range(self.worlds), range(self.replicates), self.scenarios, tried)
        cells = [
            Cell(
                self.cell_key(Draw(world, scenario, replicate), arm),
                {"scenario": scenario.key, "world": world, "replicate": replicate, "estimator": arm},
                seconds[arm],
            )
            for world, replicate, scenario, arm in axes  # whole replicates first; log by log: a process draws few
        ]
        left, logs = work.left(cells), quantity(len(cells) // len(tried), "drawn log")
        time, workers = sum(cell.cost for cell in left) / work.workers, quantity(work.workers, "process", "processes")
        about = f"about {spell(time)} on {workers}, by a rough estimate" if left else "nothing to do"
        work.say(f"{len(cells)} trainings on {logs}, {len(left)} left: {about}.")
        yield "cells", cells

    def cell_key(self, draw: Draw, arm: str) -> str:
        """d0-rational_exposed-p1-r0-naive; with impressions, how many there are for each event."""
        kept = f"-i{self.left:.3g}" if candidates.learns_from(arm) == "impressions" else ""
        return f"d{draw.world}-{draw.scenario.key}-r{draw.replicate}-{arm}{kept}".replace(":", "-")

    @property
    def wanted(self) -> list[str]:
        known = candidates.from_a_log()
        return [name for name in known if not self.propensities or arms.family(name) in self.propensities]

    @property
    def probe_key(self) -> str:
        kept = f" {self.left:.3g}" if self.left else ""
        return f"propensities-{sha256((','.join(self.wanted) + kept).encode()).hexdigest()[:8]}"

    def tried(self, probed: Mapping[str, Any]) -> tuple[candidates.Candidates, dict[str, str]]:
        """The arms that the real log allows, and a drawn one; and what cannot be tried, with the reason."""
        real, drawn = probed["real"], probed["drawn"]
        candidates.check_available(self.required, real, drawn)
        able = dict.fromkeys(arms.family(name) for name in real if not (real[name] or drawn[name]))
        order = self.propensities or tuple(able)
        found, unfit = candidates.for_log(self.estimators, sorted(able, key=order.index), self.clips, user_log(self))
        if found.usable == (BASE,):
            raise UnveilError(
                "of what is asked for, this log allows the naive loss alone",
                found=", ".join((*self.estimators, *self.propensities)),
                hint="Try more --estimators, or --propensities all.",
            )
        reasons = {**drawn, **{name: why for name, why in real.items() if why}}  # the real log's first
        return found, {arms.family(name): why for name, why in reasons.items() if why} | unfit

    def candidates(self, probed: Mapping[str, Any]) -> candidates.Candidates:
        """What is tried; drawn logs always have ratings."""
        return self.tried(probed)[0]

    def run_worlds(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        draw: int = cell.at["world"]
        advance, log = context.advance, user_log(self).interacted()
        fit = Fit(steps=self.steps, recipe=self.fit, seed=self.seed + draw, real_lengths=True)
        if self.world is not None:
            made = [World.open(self.world, fit.seed)]
        else:
            made = implicit_worlds(log, fit, self.liked, advance) if self.liked else [fit_world(log, fit, advance)]
        for group, world in enumerate(made):
            world.save(world_folder(context.folder, draw * self.groups + group), overwrite=True)
        about = [{"origin": world.origin, "description": asdict(world.describe())} for world in made]
        return {"draw": draw, "worlds": about}

    def run_probe(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        log, window = self._first_log(context.folder), self.recipe(BASE, 0).model.length
        return {
            "real": candidates.probe(self.wanted, user_log(self), window),
            "drawn": candidates.probe(self.wanted, log, window),
            "size": [len(log.users), len(log.items), len(log.interacted())],
        }

    def _first_log(self, folder: Path) -> Interactions:
        return draw_log(self, folder, Draw(0, self.scenarios[0], 0), self.left > 0)[1]

    def run_cell(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        scenario = next(each for each in self.scenarios if each.key == cell.at["scenario"])
        draw, arm = Draw(cell.at["world"], scenario, cell.at["replicate"]), cell.at["estimator"]
        recorded = candidates.learns_from(arm) == "impressions"
        trial, rate = trial_context(self, context.folder, draw, recorded)
        recipe = self.recipe(arm, self.training_seed(draw), rate if recorded else None)
        where = {"draw": draw.world, "scenario": scenario.key, "replicate": draw.replicate, "estimator": arm}
        looks = asdict(candidates.LogShape.of(trial.log))
        return {**where, "looks": looks, **record(trial, arm, recipe, context.on_progress)}

    def rows(self, cell: Cell, record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        return rank_rows(record, by_user=self.worlds * self.replicates == 1)

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        return advice_of(answer).findings()

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        return advice_of(answer).facts()

    def csv(self, answer: Answer) -> list[dict[str, Any]]:
        return list(advice_of(answer).rows())


def advise_study(log: LogSource, *, effort: str = "quick", **options: Any) -> Advise:
    """The study of a log; options are its fields, `choices` and `severities`; None is as the effort has it."""
    if effort not in EFFORTS:
        raise unknown("effort", effort, EFFORTS)
    chosen = {name: value for name, value in options.items() if value is not None}
    given = {**EFFORTS[effort], **chosen}
    tried = scenarios(given.pop("choices"), given.pop("severities"), given.get("liked", ()))
    world = given.get("world")
    if world not in (None, BUILTIN):
        given["worlds"] = chosen.get("worlds", 1)
    study = Advise(log=log, scenarios=tried, required=chosen.get("propensities", ()), **given)
    shown = user_log(study)
    longest = int(np.bincount(shown.interacted().user).max(initial=1))
    steps = given.get("steps", min(MOST_STEPS, longest) if world is None else MOST_STEPS)
    return study.model_copy(update={"steps": steps, "left": candidates.impressions_per_event(shown)})


@lru_cache(maxsize=1)
def user_log(study: Advise) -> Interactions:
    """Some users of the log, with their impressions."""
    return candidates.some_users(study.log.load(), study.users, study.seed)


def draw_log(study: Advise, folder: Path, draw: Draw, recorded: bool = False) -> tuple[World, Interactions, float]:
    """The scenario's world as its log shows it, that log with ratings, and the share of impressions in it."""
    scenario = draw.scenario
    whole = World.load(world_folder(folder, study.world_number(draw))).with_severity(scenario.severity)
    log_of = partial(whole.log, choice=scenario.choice, ratings_noise=ratings_noise(whole))
    rng = partial(np.random.default_rng, study.entropy(draw, _LOG))
    events = log_of(rng()).compact()
    seen = whole.aligned_with(events)
    if not recorded:
        return seen, events, 0.0
    rate = rate_that_leaves(seen, len(events), study.left)
    return seen, log_of(rng(), impressions=rate).within_interacted(), rate


@lru_cache(maxsize=2)  # with impressions and without
def trial_context(study: Advise, folder: Path, draw: Draw, recorded: bool) -> tuple[TrialContext, float]:
    """What the arms of a draw share, and its rate of impressions; held-out interactions choose the epoch."""
    recipe = study.recipe(BASE, study.training_seed(draw))
    world, log, rate = draw_log(study, folder, draw, recorded)
    return TrialContext.of(world, log, recipe, negatives=0, popular=False, by_log=True), rate


@lru_cache(maxsize=1)
def advice_of(answer: Answer) -> Advice:
    """What follows from an answer."""
    study, log = answer.study, user_log(answer.study).interacted()
    found, refused = study.tried(answer.records[study.probe_key])
    repeats = describe(log).repeats / len(log)
    shape, needed = candidates.LogShape.of(log), evidence(study.log.load())
    return Advice(answer, found, refused, shape, repeats, needed)
