"""The page and files of a feedback loop: loop.csv and results.json for programs, a page and a README for people."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unveil.files import versions, write_json, write_whole
from unveil.report.names import COLOURS, listed, named
from unveil.report.page import Cell, Code, Column, Figure, Figures, KeyFigure, Page, Section, Table, Text, write_page
from unveil.report.plots import Line, Scale, lines
from unveil.report.prose import Prose
from unveil.settings import plain
from unveil.simulation.feedback.rounds import Retraining
from unveil.studies.loop import Looped, LoopPlan
from unveil.studies.loop_results import FIGURES, HEADLINE, Group, LoopOutcome
from unveil.studies.paper import paper
from unveil.studies.results import ALPHA, Estimate
from unveil.studies.writer import markdown
from unveil.training.recipe import AUTO, Recipe
from unveil.wording import quantity

_TITLE = "What does feedback do to recommendations?"
_SECTIONS: Sequence[tuple[str, Group]] = (
    ("Novelty and popularity", "novelty"),
    ("Diversity", "diversity"),
    ("The log", "log"),
    ("Ground truth", "truth"),
    ("Training", "training"),
)


class LoopReport:
    """A loop with its tables, figures and prose."""

    def __init__(self, looped: Looped, command: Sequence[str] = ()) -> None:
        self.looped, self.command = looped, shlex.join(command)
        self.plan, self.outcome, self.k = looped.plan, looped.outcome, looped.plan.loop.k
        about_log = {
            "world": looped.world,
            "events": len(looped.log.interacted()),
            "users": len(looped.log.users),
            "items": len(looped.log.items),
            "retraining": Retraining.parse(self.plan.loop.retrain),
        }
        self.prose = prose(self.plan, self.outcome, about_log)

    @property
    def paragraphs(self) -> list[str]:
        """Findings, and what they leave out."""
        return [*self.prose.paragraphs("findings"), *self.prose.paragraphs("caution")]

    def page(self) -> Page:
        """The whole page."""
        (first,) = self.prose.sections("findings", {}, "What happened")
        caution = [block for section in self.prose.sections("caution", {}) for block in section.blocks]
        groups = [(title, self._figures(group)) for title, group in _SECTIONS]
        rules = [Text(paragraph) for paragraph in self.prose.paragraphs("rules")]
        return Page(
            title=_TITLE,
            lede=self.prose.line("lede"),
            key_figures=self._key_figures(),
            sections=[
                Section(first.title, [*first.blocks, self.table(), *caution]),
                *(Section(title, [Figures(figures)]) for title, figures in groups if figures),
                Section("How it was made", [*rules, _models(self.plan), Code(self.command)]),
            ],
        )

    def _key_figures(self) -> list[KeyFigure]:
        outcome, title = self.outcome, FIGURES[HEADLINE].title.format(k=self.k)
        done = f"{quantity(outcome.rounds, 'round')} of feedback, {quantity(outcome.replicates, 'replicate')}"
        last = [(model, outcome.estimate(model, HEADLINE).mean) for model in outcome.models]
        return [
            KeyFigure(f"{outcome.rounds}", done),
            *(KeyFigure(f"{mean:.2f}", f"{title} of {named(model)} in the last round") for model, mean in last),
        ]

    def _figures(self, group: Group) -> list[Figure]:
        keys = [key for key in self.outcome.figures if FIGURES[key].group == group]
        return [self._figure(key) for key in keys if len(self.outcome.rounds_of(key)) > 1]

    def _figure(self, key: str) -> Figure:
        outcome, title = self.outcome, FIGURES[key].title.format(k=self.k)
        models, rounds = outcome.models_of(key), outcome.rounds_of(key)
        drawn = {named(model): _line(outcome, model, key, rounds) for model in models}
        rows: list[list[Cell | str]] = [
            [str(n), *(_cell(outcome.estimate(model, key, n), key) for model in models)] for n in rounds
        ]
        columns = [Column("round", True), *(Column(named(model), True) for model in models)]
        return Figure(
            title,
            lines(drawn, ("round", title), f"loop-{key}", Scale(bottom=None, whole=True)),
            f"{title} along the rounds for {listed(models)}.",
            self.prose.line(key),
            Table(f"{title} by round", columns, rows, sortable=False),
        )

    def table(self, *, last_only: bool = False) -> Table:
        """Every figure in the first round and in the last."""
        outcome = self.outcome
        first = "" if last_only else "First round → "
        keys = [key for key in outcome.figures if FIGURES[key].group != "training" and len(outcome.rounds_of(key)) > 1]
        rows: list[list[Cell | str]] = [
            [FIGURES[key].title.format(k=self.k), *(_from_to(outcome, each, key, last_only) for each in outcome.models)]
            for key in keys
        ]
        return Table(
            f"{first}round {outcome.rounds}: means over {quantity(outcome.replicates, 'replicate')}",
            [Column("figure"), *(Column(named(model), True) for model in outcome.models)],
            rows,
            sortable=False,
        )

    def readme(self) -> str:
        """Findings, the table, how it was made, and what each figure is."""
        named_figures = [
            f"- {FIGURES[key].title.format(k=self.k)} (`{key}`): {self.prose.line(key)}" for key in self.outcome.figures
        ]
        parts = [f"# {_TITLE}", *self.paragraphs, "\n".join(markdown(self.table())).strip(), "## How it was made"]
        parts += [f"```\n{self.command}\n```", *self.prose.paragraphs("rules"), "## The figures"]
        files = "`loop.csv` has a row for each replicate, model and round; `results.json` means and intervals."
        return "\n\n".join([*parts, "\n".join(named_figures), files]) + "\n"

    def results(self) -> dict[str, Any]:
        """All that was found. Nothing in it depends on the clock."""
        plan, outcome = self.plan, self.outcome
        return {
            "question": "loop" if plan.tuned_for is None else "rq5",
            "command": self.command,
            "preset": plan.preset,
            "tuned_for": plan.tuned_for,
            "replicates": outcome.replicates,
            "rounds": outcome.rounds,
            "estimators": outcome.models,
            "data": {"fingerprint": self.looped.log.fingerprint()},
            "loop": plain(plan.loop),
            "models": {name: recipe and plain(recipe) for name, recipe in plan.models.items()},
            "units": "replicates",
            "interval": "95%, Student's t over replicates; none for one replicate",
            "findings": self.prose.paragraphs("findings"),
            "rows": self.rows(),
        }

    def rows(self) -> list[dict[str, Any]]:
        """A row for each model, figure and round."""
        outcome = self.outcome
        same = {"preset": self.plan.preset, "severity": None, "protocol": "loop"}
        return [
            {
                "estimator": model,
                **same,
                "evaluation": FIGURES[key].group,
                "metric": key,
                "k": self.k,
                "round": round,
                "mean": found.mean,
                "low": found.low,
                "high": found.high,
                "replicates": found.n,
                "worlds": int(self.looped.world is not None),
                "paper": None,
            }
            for key in outcome.figures
            for model in outcome.models_of(key)
            for round in outcome.rounds_of(key)
            for found in [outcome.estimate(model, key, round)]
        ]


def write(looped: Looped, folder: Path, command: Sequence[str]) -> LoopReport:
    """Every file of a loop. The same rounds give the same bytes, but for about.json."""
    report = LoopReport(looped, command)
    write_whole(folder / "loop.csv", looped.outcome.table().write_csv())
    write_page(report.page(), folder / "index.html")
    write_whole(folder / "README.md", report.readme())
    times = {"seconds": round(looped.seconds, 1), "worker_seconds": round(looped.worker_seconds, 1)}
    write_json(folder / "about.json", {"command": report.command, "versions": versions(), **times})
    write_json(folder / "results.json", report.results())
    return report


def prose(plan: LoopPlan, outcome: LoopOutcome, more: Mapping[str, Any] | None = None) -> Prose:
    """The template, filled with what sentences are chosen by."""
    models, compared = outcome.models, plan.tuned_for is not None and {"naive", "ips", "itps"} <= set(outcome.models)
    claim = "" if plan.data is None else str(paper()["real"]["data"][plan.data]["loop"])
    changes = {model: outcome.change(model, HEADLINE) for model in models}
    by_first = {model: outcome.change(model, "efd_first") for model in models}
    tested = outcome.replicates > 1 and len(models) > 1
    facts = {
        "plan": plan,
        "outcome": outcome,
        "k": plan.loop.k,
        "alpha": ALPHA,
        "efd": FIGURES[HEADLINE].title.format(k=plan.loop.k),
        "ordered": lambda key, round: _ordered(outcome, key, round),
        "differences": outcome.differences(HEADLINE, models[0]) if tested else {},
        "claim": claim if compared else None,
        "changes": changes,
        "by_first": by_first,
        "same_direction": all((changes[model] < 0) == (by_first[model] < 0) for model in models),
        "overlap": [outcome.change(model, "overlap") for model in models],
        "log_gini": [outcome.change(model, "log_gini") for model in models],
        "widest": outcome.order("coverage"),
        "relevance": _relevance(outcome),
        "weighted": [model for model in plan.networks if model not in ("naive", "ideal")],
        "response": str(plan.loop.response["name"]),
    }
    return Prose(["loop.md.j2"], {**facts, **(more or {})})


def _relevance(outcome: LoopOutcome) -> list[tuple[str, float, float]]:
    """True relevance of the chosen items in the first round of feedback and in the last; the best last value first."""
    key = "taken_relevance"
    if key not in outcome.figures or len(rounds := outcome.rounds_of(key)) < 2:
        return []
    ends = (rounds[0], rounds[-1])
    order = outcome.order(key, rounds[-1])
    return [(model, *(outcome.estimate(model, key, r).mean for r in ends)) for model in order]  # type: ignore[misc]


def _ordered(outcome: LoopOutcome, key: str, round: int | None) -> str:
    digits = FIGURES[key].digits
    means = {model: outcome.estimate(model, key, round).mean for model in outcome.order(key, round)}
    if len(means) == 1:
        return f"{next(iter(means.values())):.{digits}f}"
    return ", ".join(f"{named(model)} {mean:.{digits}f}" for model, mean in means.items())


def _line(outcome: LoopOutcome, model: str, key: str, rounds: Sequence[int]) -> Line:
    """A model's means along the rounds, with a band where there are replicates."""
    found = [outcome.estimate(model, key, round) for round in rounds]
    titles = [f"{named(model)}, round {n}: {_text(each, key)}" for n, each in zip(rounds, found, strict=True)]
    ends = [(each.low, each.high) for each in found if each.low is not None and each.high is not None]
    low, high = zip(*ends, strict=True) if len(ends) == len(found) else (None, None)
    return Line(rounds, [each.mean for each in found], titles, COLOURS.get(model), low, high)


def _from_to(outcome: LoopOutcome, model: str, key: str, last_only: bool) -> Cell | str:
    if model not in outcome.models_of(key):
        return "–"
    rounds, digits = outcome.rounds_of(key), FIGURES[key].digits
    shown = [outcome.estimate(model, key, n).mean for n in ([] if last_only else rounds[:1]) + rounds[-1:]]
    return Cell(" → ".join(f"{mean:,.{digits}f}" for mean in shown), shown[-1])


def _cell(found: Estimate, key: str) -> Cell:
    return Cell(_text(found, key), found.mean)


def _text(found: Estimate, key: str) -> str:
    """A mean with its interval where it has one."""
    digits = FIGURES[key].digits
    interval = "" if found.low is None else f" [{found.low:,.{digits}f}, {found.high:,.{digits}f}]"
    return f"{found.mean:,.{digits}f}{interval}".replace("-", "−")


def _models(plan: LoopPlan) -> Table:
    columns = ("network", "width", "blocks", "tokens", "dropout", "batch", "masked", "epochs", "estimator")
    authors = "" if plan.tuned_for is None else f" with the authors' settings for {plan.tuned_for}"
    return Table(
        f"The models: preset {plan.preset}{authors}, and what was changed",
        [Column("model"), *(Column(title, title not in ("network", "estimator")) for title in columns)],
        [[named(name), *_settings(recipe)] for name, recipe in plan.models.items()],
        sortable=False,
    )


def _settings(recipe: Recipe | None) -> list[str]:
    if recipe is None:
        return ["a rule", *["–"] * 7, "nothing is trained"]
    model, task = recipe.model, recipe.task
    options = {**recipe.estimator, **({} if recipe.propensity["name"] == AUTO else dict(recipe.propensity))}
    changed = ", ".join(f"{name} {value}" for name, value in options.items() if name != "name")
    sizes = (model.width, model.blocks, model.length, model.dropout, task.batch_size, task.mask_probability)
    numbers = [f"{number:g}" for number in (*sizes, recipe.training.epochs)]
    return [str(plain(model)["name"]), *numbers, changed or "as it is"]
