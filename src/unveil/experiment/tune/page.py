"""The report of a study."""

from collections.abc import Sequence

from unveil.experiment.tune.importance import Importance, importances
from unveil.experiment.tune.made import made
from unveil.experiment.tune.plots import curve, importance_bars, parallel
from unveil.experiment.tune.record import Record
from unveil.experiment.tune.study import Study
from unveil.experiment.tune.words import figure, settings_text, short, spread, value_text
from unveil.report.page import (
    Block,
    Cell,
    Code,
    Column,
    Figure,
    KeyFigure,
    Note,
    Page,
    Section,
    Table,
    Text,
    count,
    number,
    percent,
    plain,
)
from unveil.wording import quantity

_IMPORTANT = (
    "The share of the variation between trials that knowing this setting alone explains, less what its number of "
    "values would explain by chance (ε²). What settings do together belongs to none of them alone, so the shares need "
    "not add up to 100%."
)
_LEARNT = " TPE tries promising settings more often, which mixes the effects of settings: read these as hints."
#: A group mean of fewer complete trials than this says little.
_FEW = 10


def page(study: Study, command: str) -> Page:
    """The whole page."""
    best, once, words = study.best, study.plan.replicates == 1, study.subject.words
    judged = "best" if once else "best mean"
    off = "" if once else " (± standard deviation of its replicates)"
    less = "; less is better" if study.subject.lower else ""
    return Page(
        title=f"Tuning: {study.name}",
        lede=words.once if once else words.several,
        key_figures=[
            KeyFigure(figure(best), f"{judged} validation {study.metric}{off}{less}"),
            KeyFigure(
                str(study.count("complete")), f"complete trials of {quantity(study.plan.replicates, words.unit)}"
            ),
            KeyFigure(
                f"{sum(each.seconds for each in study.records) / 3600:.2f} h", "of training, all trials together"
            ),
        ],
        sections=[
            Section("The best settings", [*_unfinished(study), *_best(study)]),
            Section("What mattered", _mattered(study)),
            Section("All trials", [*_coordinates(study), _trials(study), *_failures(study)]),
            Section("How it was made", [*map(Text, made(study)), Code(command)]),
        ],
    )


def _unfinished(study: Study) -> list[Block]:
    """A study that was stopped says so."""
    over = len(study.records)
    told = f"The study is not finished: {over} of {quantity(over + study.left, 'trial')} are over."
    return [Note(told, warning=True)] if study.left else []


def _best(study: Study) -> list[Block]:
    best, words = study.best, study.subject.words
    rows: list[list[Cell | str]] = [[name, value_text(value)] for name, value in best.settings.items()]
    table = Table(f"Trial {best.entry}: {settings_text(best.settings)}", [Column("setting"), Column("value")], rows)
    return [table, Code(words.command.format(config="best.toml")), Note(words.chosen), *_replicates(study)]


def _replicates(study: Study) -> list[Block]:
    """How the replicates of the best came to their values, where they were judged on their way."""
    best = study.best
    if study.subject.epochs is None:
        return [_value_table(best)] if len(best.replicates) > 1 else []
    several = (
        f"Thin: each of {quantity(len(best.replicates), 'replicate')}. Thick: their mean where all of them were "
        "validated. The best epoch of each replicate counts."
    )
    return [
        Figure(
            f"Validation {study.metric} of trial {best.entry} by epoch",
            curve(best, study.metric),
            f"Validation {study.metric} of the best trial by epoch, for each replicate and on average.",
            several if len(best.replicates) > 1 else "The best epoch counts.",
            _curve_table(best),
        )
    ]


def _value_table(best: Record) -> Table:
    rows: list[list[Cell | str]] = [
        [str(place), number(each.value, 4), number(each.seconds, 1)] for place, each in enumerate(best.replicates)
    ]
    return Table(
        "Replicates of the best trial", [Column("replicate"), Column("value", True), Column("seconds", True)], rows
    )


def _curve_table(best: Record) -> Table:
    rows: list[list[Cell | str]] = [
        [str(place), number(each.value, 4), count(each.epoch or 0), number(each.seconds, 1)]
        for place, each in enumerate(best.replicates)
    ]
    columns = [Column("replicate"), Column("best value", True), Column("at epoch", True), Column("seconds", True)]
    return Table("Replicates of the best trial", columns, rows)


def _mattered(study: Study) -> list[Block]:
    found = importances(study.records, study.plan.space)
    if not found or all(each.share is None for each in found):
        return [Text("Too few trials are complete, or too much alike, to tell which setting mattered.")]
    told = _IMPORTANT + (_LEARNT if study.plan.sampler == "tpe" else "")
    drawn = Figure(
        "Importance of each setting",
        importance_bars(found),
        "Bars: the share of the variation between trials that each setting explains.",
        told,
        _shares(found),
    )
    few = [Note(f"Only {quantity(study.count('complete'), 'trial')}: these shares are rough.", warning=True)]
    return [*(few if study.count("complete") < _FEW else []), drawn, _means(study, found)]


def _shares(found: Sequence[Importance]) -> Table:
    rows: list[list[Cell | str]] = [[each.name, percent(each.share or 0.0)] for each in found]
    return Table("Importance", [Column("setting"), Column("share", True)], rows)


def _means(study: Study, found: Sequence[Importance]) -> Table:
    rows: list[list[Cell | str]] = [
        [f"{short(each.name)} {group.label}", number(group.mean, 4), count(group.trials)]
        for each in found
        for group in each.groups
    ]
    columns = [Column("setting and value"), Column(f"mean {study.metric}", True), Column("trials", True)]
    return Table("Mean over the complete trials that share a value", columns, rows, sortable=False)


def _coordinates(study: Study) -> list[Block]:
    if study.count("complete") < 2:
        return []
    return [
        Figure(
            "Every trial through its settings",
            parallel(study.records, study.plan.space, study.metric),
            "Parallel coordinates: an axis for each setting and one for the value, a line for each trial.",
            "The best fifth in colour, the best of all thick. Point at a line to read it.",
        )
    ]


def _trials(study: Study) -> Table:
    names = list(study.plan.space.dimensions)
    columns = [Column("trial"), Column(f"mean {study.metric}", True), Column("± sd", True)]
    columns += [*(Column(short(name), True) for name in names), Column("seconds", True), Column("state")]
    rows = [_row(each, names) for each in study.ranked()]
    return Table("All trials, the best first", columns, rows)


def _row(record: Record, names: Sequence[str]) -> list[Cell | str]:
    blank = Cell("–", "–")  # sorted last either way: some metrics are better when lower
    value = blank if record.value is None else number(record.value, 4)
    off = blank if record.value is None or len(record.replicates) == 1 else number(spread(record), 4)
    settings = [_cell(record.settings.get(name)) for name in names]
    state = record.state + (f", attempt {record.attempts}" if record.attempts > 1 else "")
    return [str(record.entry), value, off, *settings, number(record.seconds, 1), state]


def _failures(study: Study) -> list[Block]:
    rows: list[list[Cell | str]] = [[str(each.entry), each.why] for each in study.records if each.why]
    return [Table("Trials that failed", [Column("trial"), Column("why")], rows)] if rows else []


def _cell(value: object) -> Cell | str:
    return plain(value) if isinstance(value, int | float) and not isinstance(value, bool) else value_text(value)
