"""`unveil world fit|draw|describe`: simulated worlds whose relevance and exposure are known."""

from dataclasses import asdict, dataclass
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unveil.cli.options import CHOICES, AsJson, Assignments, LogFile, LogOptions, Overwrite, option
from unveil.cli.results import print_table
from unveil.cli.terminal import bar, print_page_table, this_command, write_where_possible
from unveil.errors import UnveilError, unknown
from unveil.files import check_free, check_new_file

if TYPE_CHECKING:
    from unveil.simulation.world import World

HELP = "Simulated worlds whose relevance and exposure are known."

WorldArgument = Annotated[str, typer.Argument(help="'builtin', or the folder of a saved world.")]
Severity = Annotated[float | None, option("Exponent p of exposure, above 0; by default the world's own.")]


@dataclass(frozen=True)
class FitOptions:
    """How a world is fitted; None: as the config or the default has it."""

    steps: Annotated[int | None, option("T: last interactions used of each user; 100 by default.", min=1)] = None
    recipe: Annotated[str | None, option("posterior (default), regularised or paper.")] = None
    seed: Annotated[int | None, option("Seed of everything random.", min=0)] = None
    severity: Annotated[float | None, option("Exponent p of exposure, above 0; 1 by default.")] = None
    centre: Annotated[float | None, option("Rating with relevance 1/2: γ = σ(r − centre); 0 by default.")] = None
    negatives: Annotated[int | None, option("Sampled unexposed tuples per exposed one; 3 by default.", min=1)] = None
    redraw: Annotated[bool | None, option("Sample the negatives anew in each epoch; the default.")] = None
    real_lengths: Annotated[bool | None, option("Users are active as long as their history.", "--real-lengths")] = None


def fit(
    *,
    options: LogOptions,
    output: Annotated[Path, option("Folder of the world.", "--output", "-o")],
    config: Annotated[list[Path] | None, option("TOML file that `unveil tune` wrote; one per part or both.")] = None,
    how: FitOptions,
    assignments: Assignments = None,
    overwrite: Overwrite = False,
) -> None:
    """Fit a world to a log: relevance learnt from ratings, exposure from interactions.

    The recipe `posterior` draws factors from their posterior, which keeps the differences between users; `regularised`
    predicts best and is smoother; `paper` has no biases and no penalty. --set changes an option of the recipe for both
    parts (width=50) or for one (exposure.width=10).
    """
    from unveil.runs.world_page import write_world_page
    from unveil.simulation.fit import fit_of, fit_world

    check_free(output, overwrite=overwrite, inputs=[options.log, *(config or [])])
    given = {name: value for name, value in vars(how).items() if value is not None}
    wanted = fit_of(config or [], given | _recipe_options(assignments or []))
    wanted.recipes()
    log = options.source().load()
    with bar("fitting relevance and exposure") as progress:
        fitted = fit_world(log, wanted, progress)
    fitted.save(output, overwrite=overwrite)
    print_world(fitted)
    typer.echo(f"the world is in {output}; next: unveil world draw {output} -o log.csv")
    write_where_possible(lambda: write_world_page(fitted, output / "index.html", this_command()))


def _recipe_options(assignments: list[str]) -> dict[str, Any]:
    """`name=value` for both parts, `relevance.name=value` and `exposure.name=value` for one of them."""
    from unveil.settings import parsed

    parts, options = ("relevance", "exposure"), dict[str, Any]()
    for name, value in map(parsed, assignments):
        part, _, last = name.rpartition(".")
        if part and part not in parts:
            raise unknown("part of a world", part, parts, where=f"--set {name}")
        options |= {f"{each}.{last}": value for each in ([part] if part else parts)}
    return options


def draw(
    world: WorldArgument,
    output: LogFile,
    severity: Severity = None,
    foresight: Annotated[float, option("How strongly exposure follows relevance, in logits per SD.")] = 0.0,
    seed: Annotated[int, option("Seed of the draw, and of the built-in world.", min=0)] = 0,
    choice: Annotated[str, option(f"Choice model: {CHOICES}")] = "rational_exposed",
    relevance_draw: Annotated[bool, option("Keep a choice with probability γ; or keep every choice.")] = True,
    ratings: Annotated[bool, option("Add ratings: relevance logit plus noise.", "--ratings")] = False,
    ratings_noise: Annotated[float, option("Standard deviation of the noise of ratings.")] = 1.0,
    stars: Annotated[bool, option("Round the ratings to 1 … 5.", "--stars")] = False,
    impressions: Annotated[float | None, option("Share of impressions without a click to record, up to 1.")] = None,
    save_world: Annotated[Path | None, option("Save the world with its severity and foresight here.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Draw a log: each interaction has its step, its true propensity and, with --ratings, a rating.

    The folder of --save-world is what `unveil train --world` needs. Impressions are rows with `clicked` 0.
    """
    import numpy as np

    from unveil.data.writers import write
    from unveil.report.prose import Prose
    from unveil.simulation.choice import CHOICES
    from unveil.simulation.world import World

    check_new_file(output, overwrite=overwrite)
    if save_world is not None:
        check_free(save_world, overwrite=overwrite)
    CHOICES[choice]()
    saved = World.open(world, seed)
    source = (saved if severity is None else saved.with_severity(severity)).with_foresight(foresight)
    noise = ratings_noise if ratings or stars else None
    how: dict[str, Any] = {"ratings_noise": noise, "stars": stars, "impressions": impressions}
    with bar("drawing the log") as progress:
        rng = np.random.default_rng(seed)
        log = source.log(rng, choice, relevance_draw=relevance_draw, progress=progress, **how)
    if not len(log):
        hint = "Lower --severity: at this one next to nothing is ever exposed."
        raise UnveilError(f"there are no interactions in {source!r}", hint=hint)
    write(log, output)
    if save_world is not None:
        source.save(save_world, overwrite=overwrite)
    another = source.severity != saved.severity or foresight or (world == "builtin" and seed)
    facts = {"output": output, "log": log, "world": repr(source), "impressions": impressions}
    drawn = Prose(["terminal.md.j2"], {**facts, "save_world": save_world, "another": another})
    typer.echo(drawn.text("drawn"), nl=False)


def describe(
    world: WorldArgument,
    severity: Severity = None,
    seed: Annotated[int, option("Seed of the built-in world.", min=0)] = 0,
    json: AsJson = False,
) -> None:
    """Describe a world: its size, its favourites, how much relevance and exposure differ, and its origin."""
    from unveil.simulation.world import World

    source = World.open(world, seed)
    source = source if severity is None else source.with_severity(severity)
    if json:
        typer.echo(dumps({**asdict(source.describe()), "origin": source.origin}, indent=2))
    else:
        print_world(source)


def print_world(world: "World") -> None:
    """How well the world was fitted, if it was; its figures; its origin."""
    from unveil.runs.world_page import fit_table
    from unveil.simulation.describe import rows

    origin, kind = world.origin, world.origin.get("kind", "unknown")
    text = f"The built-in world, seed {origin.get('seed')}." if kind == "builtin" else f"Origin: {kind}."
    if kind == "fitted":
        try:
            fit, seed = fit_table(origin), origin["settings"]["seed"]
            learnt = f"from {origin['relevance']['tuples']:,} ratings of the log {origin['log']}"
            text = f"Fitted {learnt} by the recipe {origin['recipe']!r}, seed {seed}."
        except (KeyError, TypeError, ValueError) as error:
            hint = "Fit the world again; --json shows what there is."
            raise UnveilError(f"a damaged world: it does not say how it was fitted ({error})", hint=hint) from error
        print_page_table(fit)
    print_table(["world", ""], [list(row) for row in rows(world.describe())])
    typer.echo(text)


COMMANDS = (fit, draw, describe)
