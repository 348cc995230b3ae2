"""The page of the advice: what to use, every candidate, every scenario, and what it rests on."""

from unveil.experiment.advise.gains import Gain
from unveil.experiment.advise.judged import HEADLINE, Advice
from unveil.experiment.advise.scenarios import Scenario
from unveil.experiment.advise.source import Looks
from unveil.experiment.advise.words import TITLE, caution, plus, reading
from unveil.experiment.outcome import BASE, BOUND
from unveil.experiment.reproduce.question import Sheet
from unveil.experiment.reproduce.words import gap_text
from unveil.report.charts import Along, Spot, panels
from unveil.report.names import named, share, signed
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
)

#: Candidates that are drawn; the table has all.
_MOST_DRAWN = 8


def page(advice: Advice, command: str, next_step: str) -> Page:
    """The whole page."""
    first, *rest = reading(advice)
    return Page(
        title=TITLE,
        lede=first,
        key_figures=_key_figures(advice),
        sections=[
            Section("What to do", [Code(next_step), *(Text(paragraph) for paragraph in rest), Note(caution(advice))]),
            Section("Every candidate", [_candidates(advice), _ceilings(advice)]),
            Section("Scenario by scenario", [figure(advice), _by_scenario(advice)]),
            Section("Drawn logs beside yours", _looks(advice)),
            Section("How it was made", _made(advice, command)),
        ],
    )


def _key_figures(advice: Advice) -> list[KeyFigure]:
    decision = advice.decision
    return [
        KeyFigure(named(decision.chosen), "to be used"),
        KeyFigure(signed(decision.gain.mean.difference), f"{HEADLINE.name} over the naive loss"),
        KeyFigure(f"{decision.gain.largest_regret:.3f}", "lost at most against having known the scenario"),
        KeyFigure(f"{len(advice.scenarios)}", "scenarios"),
    ]


def ordered(advice: Advice) -> list[Gain]:
    """The usable candidates, best mean first."""
    return sorted(advice.decision.gains.values(), key=lambda each: -each.mean.difference)


def _roles(advice: Advice, arm: str) -> str:
    """What a candidate is best at, and whether it was chosen."""
    decision = advice.decision
    roles = {"chosen": decision.chosen, "best worst case": decision.robust, "highest mean": decision.best}
    return ", ".join(role for role, name in roles.items() if name == arm)


def _candidates(advice: Advice) -> Table:
    columns = [
        Column("candidate"),
        Column("gain over naive", True, "mean over scenarios, 95% interval"),
        Column("p", True, "after Holm’s correction"),
        Column("lowest gain", True, "of a scenario"),
        Column("largest regret", True, "against the best of the scenario"),
        Column("of the gap to ideal", True),
        Column("best at"),
    ]
    return Table(
        f"Candidates that this log allows, by {HEADLINE.name}", columns, [_row(advice, g) for g in ordered(advice)]
    )


def _row(advice: Advice, gain: Gain) -> list[Cell | str]:
    low, closed, p = gain.of_scenario[gain.worst], advice.share(gain.arm), gain.mean.p
    naive = gain.arm == BASE
    return [
        named(gain.arm),
        "0" if naive else Cell(plus(gain), gain.mean.difference),
        "–" if naive else Cell("below 0.001" if p < 0.001 else f"{p:.3f}", p),
        "0" if naive else Cell(f"{signed(low)} ({advice.scenarios[gain.worst]})", low),
        number(gain.largest_regret, 3),
        "–" if closed is None else Cell(share(closed), closed),
        _roles(advice, gain.arm),
    ]


def _ceilings(advice: Advice) -> Table:
    rows: list[list[Cell | str]] = []
    for arm in sorted(advice.tried.candidates.ceilings, key=lambda each: -advice.mean(each)):
        gain, closed = advice.mean(arm) - advice.mean(BASE), advice.share(arm)
        rows.append([named(arm), Cell(signed(gain), gain), "–" if closed is None else Cell(share(closed), closed)])
    columns = [Column("not to be had"), Column("gain over naive", True), Column("of the gap to ideal", True)]
    return Table("What knowing the truth would give: no advice, a ceiling", columns, rows)


def drawn_arms(advice: Advice) -> list[str]:
    """The best candidates, and the best of the ceilings."""
    usable = [gain.arm for gain in ordered(advice) if gain.arm != BASE][:_MOST_DRAWN]
    best, _ = advice.ceiling()
    return [*usable, *([best] if best != BOUND else [])]


def figure(advice: Advice) -> Figure:
    """Candidates down, kinds of users across, severities along."""
    arms, over = drawn_arms(advice), advice.tried.at(advice.scenarios[0]).units
    known = "" if advice.ceiling()[0] == BOUND else " The last row has the true propensities, which nobody has."
    kinds = list(dict.fromkeys((each.choice, each.liked) for each in advice.scenarios))
    severities = sorted({each.severity for each in advice.scenarios})
    columns = [Along(_kind(*kind), [f"p = {p:g}" for p in severities], joined=True) for kind in kinds]
    spots = {
        (row, column): [_spot(advice, arm, Scenario(choice, p, liked)) for p in severities]
        for row, arm in enumerate(arms)
        for column, (choice, liked) in enumerate(kinds)
    }
    return Figure(
        "Share of the gap from naive to ideal that is closed, in each scenario",
        panels([named(arm).replace(" · ", "\n") for arm in arms], columns, spots, "scenarios"),
        f"A row for each of {', '.join(map(named, arms))}; a column for each kind of users. The table has the numbers.",
        f"0 is the naive loss, 100% one that knows the truth; bars are 95% intervals over {over}.{known}",
    )


def _kind(choice: str, liked: float | None) -> str:
    return choice.replace("_", ", ") + ("" if liked is None else f", {liked:.0%} liked")


def _spot(advice: Advice, arm: str, scenario: Scenario) -> Spot:
    found = advice.share_at(arm, scenario) if scenario in advice.scenarios else None
    if found is None:
        return Spot(None, None, None, "")
    return Spot(found.mean, found.low, found.high, f"{named(arm)}, {scenario}: {gap_text(found)}")


def _by_scenario(advice: Advice) -> Table:
    columns = [Column("candidate"), *(Column(str(scenario), True, "gain over naive") for scenario in advice.scenarios)]
    rows: list[list[Cell | str]] = [
        [named(gain.arm), *(Cell(signed(each), each) for each in gain.of_scenario)]
        for gain in ordered(advice)
        if gain.arm != BASE
    ]
    ends: list[list[Cell | str]] = [
        [f"{named(arm)}, {HEADLINE.name} itself", *(number(float(each.mean()), 3) for each in advice.value[arm])]
        for arm in (BASE, BOUND)
    ]
    return Table("Mean gain in each scenario, and the two ends of the gap", columns, [*rows, *ends])


def _looks(advice: Advice) -> list[Block]:
    rows: list[list[Cell | str]] = [["your log", *_look(advice.tried.looks)]]
    rows += [[str(scenario), *_look(advice.looks(scenario))] for scenario in advice.scenarios]
    columns = [
        Column("log"),
        Column("users", True),
        Column("items", True),
        Column("events", True),
        Column("events of a user", True),
        Column("Gini of items", True),
        Column("events of the top tenth", True),
    ]
    told = (
        "A drawn log is not a copy of yours: users of a world may take an item again, and a step without anything that "
        "is seen and liked leaves no event. What matters is that exposure is as unequal."
    )
    return [Text(told), Table("Means over draws", columns, rows, sortable=False)]


def _look(looks: Looks) -> list[Cell | str]:
    whole = [count(each) for each in (looks.users, looks.items, looks.events)]
    return [*whole, number(looks.length, 1), number(looks.gini, 2), percent(looks.head)]


def sheets(advice: Advice) -> list[Sheet]:
    """For the terminal and the README."""
    rows = [
        [
            named(gain.arm),
            "0" if gain.arm == BASE else plus(gain),
            "–" if gain.arm == BASE else f"{gain.mean.p:.3f}",
            signed(gain.of_scenario[gain.worst]),
            f"{gain.largest_regret:.3f}",
            _roles(advice, gain.arm),
        ]
        for gain in ordered(advice)
    ]
    foot = "gain: mean over scenarios, 95% interval · lowest: of a scenario · regret: against the best of a scenario"
    return [Sheet(f"Gain over naive in {HEADLINE.name}", ["", "gain", "p", "lowest", "regret", ""], rows, foot)]


def _made(advice: Advice, command: str) -> list[Block]:
    tried = advice.tried
    sampled = f"Worlds were fitted to {tried.log}, of at most {tried.plan.study.users:,} users drawn at random."
    return [
        Text(sampled if tried.plan.study.world is None else f"The log: {tried.log}."),
        _worlds(advice),
        Code(command),
        Text(f"Fingerprint of that part of the log: {tried.fingerprint[:16]}. Versions and times are in about.json."),
    ]


def _worlds(advice: Advice) -> Table:
    rows: list[list[Cell | str]] = []
    for place, world in enumerate(advice.tried.worlds):
        about = world["description"]
        rows.append(
            [
                f"{place}",
                *(count(about[name]) for name in ("users", "items", "steps", "favourites")),
                number(about["relevance"]["mean"], 3),
                number(about["exposure_gini"], 2),
            ]
        )
    titles = ("users", "items", "steps", "distinct favourites", "mean γ", "Gini of exposure")
    return Table("The worlds, before severity", [Column("world"), *(Column(t, True) for t in titles)], rows)
