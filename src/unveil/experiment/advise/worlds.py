"""The worlds of the advice: fitted to the log by its ratings, or by what is declared where it has none; or given."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from unveil.data.filters import LogSource
from unveil.data.interactions import Interactions
from unveil.errors import UnveilError
from unveil.experiment.advise.source import read
from unveil.experiment.advise.study import AdviceStudy
from unveil.experiment.reproduce.worlds import BUILTIN, place
from unveil.runs.workers import OnProgress
from unveil.simulation.fit import Fit, fit_world, implicit_worlds
from unveil.simulation.world import World

_HINT = (
    "Name a world with --world; or declare with --implicit 0.25,0.75 which share of what makes items popular is that "
    "they are liked: a world is then made for each."
)


@dataclass(frozen=True)
class WorldsOfDraw:
    """Make the worlds of one draw from the posterior, one for each declared share, and keep them."""

    study: AdviceStudy
    source: LogSource
    folder: Path
    draw: int

    @property
    def key(self) -> str:
        """The number of the draw."""
        return f"worlds-{self.draw}"

    @property
    def cost(self) -> float:
        """Draws are alike."""
        return 1.0

    def run(self, tell: OnProgress) -> Mapping[str, Any]:
        """Make, save, describe."""
        made = _made(self.study, self.source, self.draw, tell)
        for group, world in enumerate(made):
            world.save(place(self.folder, self.draw * self.study.groups + group), overwrite=True)
        about = [{"origin": world.origin, "description": asdict(world.describe())} for world in made]
        return {"draw": self.draw, "worlds": about}


def refuse_without_relevance(log: Interactions, study: AdviceStudy) -> None:
    """Before any work is done: relevance has to come from somewhere."""
    if study.world is None and not study.liked and log.rating is None:
        raise UnveilError("the log has no ratings, and without them relevance cannot be told from exposure", hint=_HINT)


def refuse_no_world(study: AdviceStudy) -> None:
    """Before any work is done: a world that was named can be read."""
    if study.world is not None and study.world != BUILTIN:
        World.load(Path(study.world))


def _made(study: AdviceStudy, source: LogSource, draw: int, tell: OnProgress) -> list[World]:
    if study.world == BUILTIN:
        return [World.builtin(seed=study.seed + draw)]
    if study.world is not None:
        return [World.load(Path(study.world))]
    log = read(source, study.users, study.seed)
    fit = Fit(steps=study.steps, recipe=study.fit, seed=study.seed + draw, real_lengths=True)
    if study.liked:
        return implicit_worlds(log, fit, study.liked, lambda n, of: tell(n / of))
    return [fit_world(log, fit, lambda n, of: tell(n / of)).world]
