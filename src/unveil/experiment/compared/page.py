"""The page of a report."""

from unveil.experiment.compared import belief, novelty, results, training
from unveil.experiment.compared.examples import Example
from unveil.experiment.compared.run import Report
from unveil.experiment.compared.words import caution, reading
from unveil.report.page import Block, Code, Entry, KeyFigure, Lists, Note, Page, Ranked, Section, Text
from unveil.wording import quantity

_KEYS = 4
_EXAMPLES = (
    "What users would have been shown in the place of the last event that was held out. A few of them say nothing "
    "about the mean; they show what the figures are about. Beside an item: how often it stands in the "
    "training part{places}."
)
_PLACES = ", and its place in the lists of other runs"
_BARRED = " The user had met it before, and lists leave out what was met."
_MADE = (
    "Accuracy is on the events that were held out for the test; ties go against the target; a user counts once. "
    "Novelty, slices and calibration are of the same cases. Popularity is counted in the training part."
)


def report_page(report: Report, command: str, files: str) -> Page:
    """The whole page; `files` says what lies beside it."""
    first, *rest = reading(report)
    several = report.comparison is not None
    sections = [
        Section("What came out", [Note(first), *map(Text, rest), *results.blocks(report), Note(caution(report))]),
        *([Section("Which differences are more than chance", results.tests(report, "tests.csv"))] if several else []),
        Section("Who gains" if several else "Who is served", results.gains(report)),
        *(
            [Section("Novelty against accuracy", novelty.blocks(_dials(report)))]
            if all(_dials(report).values())
            else []
        ),
        Section("Can the scores be believed?", belief.blocks(report)),
        Section("How they were trained" if several else "How it was trained", training.blocks(report)),
        Section("Lists side by side" if several else "Lists", _lists(report)),
        Section("How it was made", [Text(f"{_MADE} {files}"), Code(command)]),
    ]
    return Page(_title(report), _lede(report), sections, _key_figures(report))


def _dials(report: Report) -> novelty.Dials:
    return {name: found.dial for name, found in report.measured.items()}


def _title(report: Report) -> str:
    runs = report.runs
    return f"{quantity(len(runs), 'run')} side by side" if len(runs) > 1 else f"{runs[0].name}: what the run gave"


def _lede(report: Report) -> str:
    about, nouns = report.runs[0].about, {"interactions": "event", "users": "user", "items": "item"}
    counts = ", ".join(quantity(about["log"][name], noun) for name, noun in nouns.items())
    told = [f"{run.name} ({run.settings['estimator.name']}, {run.settings['model.name']})" for run in report.runs]
    return f"{', '.join(told)}. Learnt from {counts}; judged by {about['split'].partition(';')[0]}."


def _key_figures(report: Report) -> list[KeyFigure]:
    found = [results.row_of(report, place, "full", "NDCG@10") for place in range(len(report.runs))]
    best = sorted(zip(report.names, found, strict=True), key=lambda pair: -pair[1]["mean"])[:_KEYS]
    told = [KeyFigure(f"{row['mean']:.3f}", f"{name}: NDCG@10 among all items") for name, row in best]
    same = ", the same for all runs" if len(report.runs) > 1 else ""
    return [*told, KeyFigure(f"{found[0]['n']:,}", f"users in the test{same}")]


def _lists(report: Report) -> list[Block]:
    told = _EXAMPLES.format(places=_PLACES if len(report.runs) > 1 else "")
    return [Text(told), *(_side_by_side(report, example) for example in report.examples)]


def _side_by_side(report: Report, example: Example) -> Lists:
    titles = report.titles
    earlier = f"{example.earlier:,} earlier, then " if example.earlier else ""
    history = "; ".join(titles[item] for item in example.history) or "nothing"
    places = ", ".join(f"{name} {rank:,}" for name, rank in zip(report.names, example.ranks, strict=True))
    return Lists(
        f"User {example.user}: {example.why}",
        f"History, newest last: {earlier}{history}. Taken next: {titles[example.target]}; its place among all items: "
        f"{places}.{_BARRED if example.barred else ''}",
        [
            Ranked(name, [_entry(report, example, place, item) for item in example.lists[place]])
            for place, name in enumerate(report.names)
        ],
    )


def _entry(report: Report, example: Example, place: int, item: int) -> Entry:
    others = [
        f"{name} {found.index(item) + 1}"
        for other, (name, found) in enumerate(zip(report.names, example.lists, strict=True))
        if other != place and item in found
    ]
    also = f"; also {', '.join(others)}" if others else ""
    mark = "taken next" if item == example.target else ""
    return Entry(report.titles[item], f"taken {quantity(int(report.count_V[item]), 'time')}{also}", mark)
