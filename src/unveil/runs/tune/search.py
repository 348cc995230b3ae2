"""Settings for Optuna's trials: by entry where the search is random or a grid, by what was learnt where it is TPE."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unveil.data.readers.database import shown
from unveil.errors import UnveilError
from unveil.runs.announce import Tell
from unveil.runs.tune.claims import Ledger, Pace, Record, Watch, entry_of
from unveil.runs.tune.files import begin, refuse_elsewhere, refuse_unfit, write
from unveil.runs.tune.space import Choice, Dimension, Settings, Space, Valid
from unveil.runs.tune.storage import join, opened, optuna, refuse_silent
from unveil.runs.tune.subject import Bench, Plan, Study, Subject, is_valid
from unveil.runs.tune.worker import Hand, Silent, Watcher, Worker, overseen
from unveil.runs.workers import Engine, Event

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial


#: Trials that TPE leaves to chance before it learns from them.
STARTUP = 10
#: Guesses in a row that no model can have, before chance decides.
_TRIES = 20

Guess = Callable[["optuna.Study", "FrozenTrial", dict[str, "BaseDistribution"]], Settings]


@dataclass
class ByEntry(optuna.samplers.BaseSampler):
    """Entry i has the i-th of the settings, whoever asks and whenever; unless `guess` knows better."""

    settings: Sequence[Settings]
    distributions: Mapping[str, "BaseDistribution"]
    guess: Guess | None = None

    def infer_relative_search_space(self, study: "optuna.Study", trial: "FrozenTrial") -> dict[str, "BaseDistribution"]:
        """All settings at once: which of them go together matters."""
        return {name: each for name, each in self.distributions.items() if not each.single()}

    def sample_relative(
        self, study: "optuna.Study", trial: "FrozenTrial", search_space: dict[str, "BaseDistribution"]
    ) -> dict[str, Any]:
        """The settings of the trial's entry."""
        guessed = self.guess(study, trial, search_space) if self.guess else {}
        entry = entry_of(trial, study.get_trials(deepcopy=False))
        chosen = guessed or self.settings[entry % len(self.settings)]
        return {name: chosen[name] for name in search_space}

    def sample_independent(
        self, study: "optuna.Study", trial: "FrozenTrial", param_name: str, param_distribution: "BaseDistribution"
    ) -> Any:
        """Never asked: every setting belongs to the space."""
        raise AssertionError(param_name)


@dataclass(frozen=True)
class TPE:
    """Guesses by tree-structured Parzen estimators. They depend on what was finished when they were made.

    Chance is seeded by entry, so that one process alone gives the same study again; several do not.
    """

    seed: int
    valid: Valid

    def __call__(
        self, study: "optuna.Study", trial: "FrozenTrial", search_space: dict[str, "BaseDistribution"]
    ) -> Settings:
        """A guess that a model can have, or nothing while too little is known."""
        entry = entry_of(trial, study.get_trials(deepcopy=False))
        seed = int(np.random.SeedSequence([self.seed, 1, entry]).generate_state(1)[0])
        tpe = optuna.samplers.TPESampler(n_startup_trials=STARTUP, seed=seed, multivariate=True, constant_liar=True)
        guesses = (tpe.sample_relative(study, trial, search_space) for _ in range(_TRIES))
        return next((guess for guess in guesses if guess and self.valid(guess)), {})


def distribution(dimension: Dimension) -> "BaseDistribution":
    """The same in Optuna's terms."""
    if isinstance(dimension, Choice):
        return optuna.distributions.CategoricalDistribution(dimension.values)
    if dimension.whole:
        return optuna.distributions.IntDistribution(int(dimension.low), int(dimension.high), log=dimension.log)
    return optuna.distributions.FloatDistribution(dimension.low, dimension.high, log=dimension.log)


def distributions(space: Space) -> dict[str, "BaseDistribution"]:
    """The space in Optuna's terms."""
    return {name: distribution(each) for name, each in space.dimensions.items()}


SIZE = "trials"
#: Share of the epochs before a trial may be pruned, and complete trials before any is.
_WARM_UP, _STARTUP = 0.2, 5


@dataclass(frozen=True)
class Where:
    """The folder of a study, the database where it is not kept in the folder, and how often workers give word."""

    folder: Path
    storage: str | None = None
    pace: Pace = field(default_factory=Pace)

    @property
    def shown(self) -> str:
        """The storage without its password."""
        return "journal" if self.storage is None else shown(self.storage)


@dataclass(frozen=True)
class Crew:
    """So many workers, and who runs them."""

    engine: Engine
    size: int

    def events(self, subject: Subject, plan: Plan, where: Where, command: str) -> Iterator[Event]:
        """Start them."""
        there = replace(where, folder=where.folder.resolve())
        part = partial(_take_part, subject, plan, there, command)
        return self.engine.run([Hand(number, part) for number in range(self.size)])


def _take_part(subject: Subject, plan: Plan, where: Where, command: str, watch: Watcher) -> None:
    tune(subject, plan, where, watch=watch, tell=lambda _: None, command=command)


def tune(
    subject: Subject,
    plan: Plan,
    where: Where,
    *,
    watch: Watcher | None = None,
    tell: Tell = print,
    command: str = "",
    crew: Crew | None = None,
) -> Study:
    """Take part in a study until all its trials are over, whoever does them; then write what came of it.

    With a `crew` the trials are done by its workers, and this process looks on.
    """
    refuse_unfit(where.folder)
    refuse_elsewhere(where.folder, where.shown)
    refuse_silent(where.storage)
    _refuse_pruning(subject, plan)
    bench = subject.bench(plan.space.dimensions.keys(), tell)
    settings = _settings(subject, plan, bench, tell)
    study = Study(where.folder.resolve().name, plan, subject, bench.fingerprint, where.shown, [], len(settings))
    with _storage(where, study) as storage:
        ledger = _ledger(study, storage, settings, bench, where.pace)
        worker = Worker(ledger, bench, plan.replicates, where.folder, watch or Silent(), where.pace)
        try:
            found = worker.work() if crew is None else overseen(worker, crew.events(subject, plan, where, command))
        except KeyboardInterrupt:
            _write_so_far(where.folder, study, worker.records(), command)
            raise
    study = replace(study, records=found)
    write(where.folder, study, command)
    return study


def _write_so_far(folder: Path, study: Study, records: Sequence[Record], command: str) -> None:
    """What came of the trials that are over, for whoever has no more time; nothing if none is complete."""
    study = replace(study, records=[each for each in records if each.over])
    if study.count("complete"):
        write(folder, study, command)


@contextmanager
def _storage(where: Where, study: Study) -> Iterator["BaseStorage"]:
    """The study's storage. A journal lies in the folder; to a database that cannot be used, no folder is bound."""
    if where.storage is None:
        begin(where.folder, study)
    with opened(where.storage, where.folder) as storage:
        begin(where.folder, study)
        yield storage


def _refuse_pruning(subject: Subject, plan: Plan) -> None:
    if plan.prune and subject.epochs is None:
        hint = "Leave it out."
        raise UnveilError("nothing can be stopped early that is judged at its end only", where="--prune", hint=hint)


def _settings(subject: Subject, plan: Plan, bench: Bench, tell: Tell) -> list[Settings]:
    """The settings of all trials; the first of them is built, to find what is wrong before anything is trained."""
    plan.space.check(subject.changed)
    found = plan.settings(subject.seed, partial(is_valid, subject))
    bench.announce(found[0], tell)
    if plan.trials is not None and len(found) < plan.trials:
        tell(f"trials     {len(found)} instead of {plan.trials}: the space has no more combinations")
    return found


def _ledger(study: Study, storage: "BaseStorage", settings: list[Settings], bench: Bench, pace: Pace) -> Ledger:
    subject, plan = study.subject, study.plan
    spread = distributions(plan.space)
    guess = TPE(subject.seed, partial(is_valid, subject)) if plan.sampler == "tpe" else None
    warm_up = int(_WARM_UP * (subject.epochs or 0))
    pruner: optuna.pruners.BasePruner = (
        optuna.pruners.MedianPruner(n_startup_trials=_STARTUP, n_warmup_steps=warm_up)
        if plan.prune
        else optuna.pruners.NopPruner()
    )
    joined = join(
        study.name,
        storage,
        ByEntry(settings, spread, guess),
        pruner,
        plan.identity(subject, bench),
        lower=subject.lower,
    )
    return Ledger(joined, spread, _size(joined, len(settings)), Watch(pace))


def _size(joined: "optuna.Study", asked: int) -> int:
    """A study may grow and not shrink: what was done is not thrown away."""
    known = int(joined.user_attrs.get(SIZE, 0))
    if asked < known:
        hint = f"Join with --trials {known} or more, or name another folder."
        raise UnveilError("the study has more trials", where=f"study {joined.study_name}", found=asked, hint=hint)
    if asked > known:
        joined.set_user_attr(SIZE, asked)
    return asked
