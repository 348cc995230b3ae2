"""What the page says whatever the figures are."""

import shlex
from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unveil.audit.advice import Audit, share, times
from unveil.audit.baselines import BASELINES, Score
from unveil.audit.costs import CLIPPED, EXPONENTS, Cost
from unveil.audit.figures import LEAVE_ONE_OUT, TEMPORAL
from unveil.audit.motion import Motion, Tested
from unveil.audit.order import Against, Order
from unveil.data.interactions import Interactions
from unveil.data.readers.database import shown
from unveil.files import versions, write_json
from unveil.report.charts import Dot, intervals
from unveil.report.page import (
    Block,
    Cell,
    Code,
    Column,
    Figure,
    Figures,
    KeyFigure,
    Note,
    Page,
    Point,
    Section,
    Table,
    Text,
    count,
    number,
    percent,
    write_page,
)
from unveil.report.plots import Line, Scale, lines
from unveil.report.svg import refuse_unfit_page
from unveil.wording import quantity

WHAT = (
    "Nothing was trained. Everything is counted or tested on the log itself; what is drawn at random has a fixed seed, "
    "so the same log gives the same page. Of large logs a random part is looked at, and its size told: whole histories "
    "for tests and shuffles, test cases for the baselines. The figures are in the JSON file beside this page."
)
_FIRST_TAKES = (
    "Tests look at first takes only: a user's first event with each item. Items with fewer than ten events are not "
    "tested. Holm's correction keeps the chance of even one false claim among all items below 5%; the false discovery "
    "rate keeps false claims below one in twenty of those made."
)
_NULLS = (
    "Along histories each event has a place between 0 and 1; events of one moment share the mean of their places. "
    "Random order gives mean and variance of an item's places exactly. The static propensity is a race: items reach "
    "users at rates that never change and are the same for all, likely ones come first, nothing is taken twice; who "
    "likes an item most may take it early for that reason alone. Along the calendar all events of all users are one "
    "history."
)
_RANKED = (
    "The baselines rank by training counts (last period: the last tenth of the training events by time; without a "
    "clock the last tenth of each history). Ties go against the target. Seen items do not compete."
)
HOW = (_FIRST_TAKES, _NULLS, _RANKED)
TESTS = (
    "A static propensity gives each item one number for all times. If that were so, when an item is taken would be "
    "chance, apart from popular items being met first. Every item is put to the test, along users' histories (the "
    "steps that ITPS weighs by) and along the calendar."
)
NO_CLOCK = "The log has an order and no times: nothing can be said about the calendar."
TOO_FEW = "No item has the ten events that a test needs."
NO_ORDER = "No history has two events: there is no order to look at."
SHUFFLES = (
    "If the order of events meant nothing, shuffled histories would look like the real ones. Counted are recurring "
    "transitions: how often two users go from one item to the same next item. Each history is shuffled {shuffles} "
    "times; then only runs of ten neighbours are, which leaves slow drifts as they are. Events of one moment have no "
    "order and are put in random order in the log as well. The smallest p that {shuffles} shuffles can show is 0.01."
)
TRUST = (
    "A test set is no better than the rule that made it. Leave-one-out holds out each user's last two events, whenever "
    "they were; a split in time trains on the first 80% of the log and tests on the last 10%."
)
BASELINE = (
    "What ranking by popularity alone would score: a model must beat it to have learnt anything about users. The same "
    "scorer gets very different figures from different protocols, and figures of different protocols must never be "
    "compared."
)
COST = (
    "Inverse propensity weights make rare events speak for many. How many equally weighted events the log is then "
    "worth is the effective sample size, (Σ w)² / Σ w², here as a share of {events} training events (the last {window} "
    "of each history). Popularity of the training part stands in for exposure, over all steps (IPS) or at the event's "
    "own step (ITPS). {alone} of the events are alone with their item at their step: there popularity by step is one "
    "count, so that high shares for ITPS may only mean that it corrects little."
)
POPULARITY = (
    "Only popularity is to be had as the propensity here. Popularity is exposure × relevance: dividing it out removes "
    "relevance too. What IPS and ITPS gain on this log by a metric that rewards unpopular items proves nothing; what "
    "they gain in accuracy may be real or may be luck with the proxy."
)
SOURCES = {
    "clicked": "what was shown and left: learn exposure, by propensity.name=recorded-temporal or propensity fit",
    "propensity": "how likely it was to be shown: use it, propensity.name=logged",
    "randomised": "rows of a random policy: the only unbiased test set there is",
    "position": "where it was shown: how much is the place on the page, with what was left; propensity.name=position",
    "exposed": "whether the system showed it, or the user went looking",
    "rating": "how much it was liked: relevance apart from taking",
}


_EVERY = 5  # points of the curve between two marks


def concentration_blocks(found: Audit) -> list[Block]:
    """Curve and table."""
    shape = found.concentration
    return [
        Text(
            f"Half of all events fall on {shape.half:,} of {found.log.items:,} items ({share(shape.half_share)}). "
            "Unequal popularity is no fault as such: items differ in how much they are liked. But what is popular is "
            "shown more, and what is shown more becomes popular, and this curve cannot tell the two apart."
        ),
        Figures([_lorenz(found), _tail(found)]),
        _table(found),
    ]


def _lorenz(found: Audit) -> Figure:
    y = found.concentration.lorenz[::_EVERY]
    x = [place / (len(y) - 1) for place in range(len(y))]
    told = [f"the least popular {a:.0%} of the items hold {share(b)} of the events" for a, b in zip(x, y, strict=True)]
    curve = {"": Line(x, y, told)}
    axes = ("share of the items, least popular first", "share of the events")
    return Figure(
        f"Lorenz curve: Gini {found.concentration.gini:.2f}",
        lines(curve, axes, "lorenz", Scale((True, True), top=1.0, diagonal=True)),
        f"Lorenz curve of popularity. The least popular half of the items holds {share(found.concentration.lorenz[50])}"
        f" of the events; the Gini coefficient is {found.concentration.gini:.2f}.",
        "On the dashed line all items would be alike. The Gini coefficient is twice the area between the two.",
    )


def _tail(found: Audit) -> Figure:
    y = [1 - value for value in found.concentration.lorenz[::-1]][:21]
    x = [place / 100 for place in range(len(y))]
    told = [f"the most popular {a:.0%} of the items hold {share(b)} of the events" for a, b in zip(x, y, strict=True)]
    axes = ("share of the items, most popular first", "share of the events")
    return Figure(
        "The head: the most popular fifth",
        lines({"": Line(x, y, told, 1)}, axes, "head", Scale((True, True), top=1.0)),
        f"Share of the events on the most popular items: {', '.join(told[1::5])}.",
        "The same curve from its other end.",
    )


def _table(found: Audit) -> Table:
    shape, log = found.concentration, found.log
    head: list[list[Cell | str]] = [
        [f"events on the most popular {part} of the items", percent(held)] for part, held in shape.head.items()
    ]
    rows: list[list[Cell | str]] = [
        ["Gini coefficient", number(shape.gini, 3)],
        *head,
        ["items that hold half of the events", count(shape.half)],
        ["items with a single event", count(log.skew.once)],
        ["items with fewer than five events", percent(found.cold.rare_items)],
        ["events in a history, median", number(log.lengths.median, 0)],
        ["events in the longest history", count(log.lengths.longest)],
    ]
    return Table("Popularity and lengths in figures", [Column("figure"), Column("value", True)], rows, sortable=False)


def blocks(found: Audit, titles: Sequence[str]) -> list[Block]:
    """Along histories and along the calendar, where the log allows them."""
    clocks = {"histories": found.histories, "the calendar": found.calendar}
    there = {name: motion for name, motion in clocks.items() if motion is not None}
    if not there:
        return [Note(TOO_FEW)]
    told: list[Block] = [Text(TESTS), _tests(there)]
    if found.log.start is None:
        told.append(Note(NO_CLOCK))
    told.append(Figures([_heads(there)]))
    told += [Figures([_movers(motion, name, titles)]) for name, motion in there.items() if motion.movers]
    return _side_by_side(told)


def _side_by_side(told: list[Block]) -> list[Block]:
    """All plots in one row of the page, after the rest."""
    plots = [figure for block in told if isinstance(block, Figures) for figure in block.figures]
    return [*(block for block in told if not isinstance(block, Figures)), Figures(plots)]


def _tests(there: dict[str, Motion]) -> Table:
    rows: list[list[Cell | str]] = []
    for name, motion in there.items():
        shift = number(motion.typical_shift, 3)
        rows.append([f"{name}: random order", *_counts(motion.random_order), number(motion.dispersion, 1), shift])
        if motion.static is not None:
            rows.append([f"{name}: static propensity, nothing taken twice", *_counts(motion.static), "", ""])
    columns = [
        Column("along … against …"),
        Column("items tested", True, "ten events or more"),
        Column("reject", True, "Holm, 5%"),
        Column("share", True, "of the tested"),
        Column("reject", True, "false discovery rate, 5%"),
        Column("dispersion", True, "mean z²; 1 by chance"),
        Column("typical shift", True, "of the whole span"),
    ]
    events = next(iter(there.values())).events
    caption = f"How many items reject a popularity that stands still, {events:,} first takes"
    return Table(caption, columns, rows, sortable=False)


def _counts(tested: Tested) -> list[Cell]:
    return [count(tested.items), count(tested.holm), percent(tested.share), count(tested.fdr)]


def _heads(there: dict[str, Motion]) -> Figure:
    drawn: dict[str, Line] = {}
    for place, (name, motion) in enumerate(there.items()):
        drawn[f"along {name}"] = _lags(motion.heads.shared, "", place)
        chance = motion.heads.chance
    size = next(iter(there.values())).heads.size
    drawn["dealt at random"] = _lags(chance, "dealt at random: ", None)
    return Figure(
        f"Are the {size} most taken items still the same?",
        lines(drawn, ("tenths apart", "of the head in common"), "heads", Scale((False, True), top=1.0)),
        "; ".join(f"{name}: {', '.join(f'{value:.0%}' for value in line.y)}" for name, line in drawn.items()),
        f"Histories, and the log, cut into tenths: how many of the {size} most taken items of one tenth are among "
        "those of another, by how many tenths lie between. The dashed line is what small counts alone would do.",
    )


def _lags(shared: Sequence[float], before: str, colour: int | None) -> Line:
    lags = range(1, len(shared) + 1)
    told = [f"{before}{lag} apart: {value:.0%} in common" for lag, value in zip(lags, shared, strict=True)]
    return Line(list(lags), shared, told, colour)


def _movers(motion: Motion, name: str, titles: Sequence[str]) -> Figure:
    drawn: dict[str, Line] = {}
    for place, mover in enumerate(motion.movers):
        title = _apart(titles[mover.item], drawn)
        tenths = range(1, motion.periods + 1)
        told = [f"{title}, tenth {n}: {value:.2%} of the events" for n, value in zip(tenths, mover.shares, strict=True)]
        drawn[title] = Line(list(tenths), mover.shares, told, place)
    axes = (f"tenth of {'a history' if name == 'histories' else 'the log'}", "share of the events")
    slug = "movers-" + name.split()[-1]
    table = Table(
        f"Shares of the events along {name}",
        [Column("tenth", True), *(Column(title, True) for title in drawn)],
        [[count(n + 1), *(percent(line.y[n], 2) for line in drawn.values())] for n in range(motion.periods)],
        sortable=False,
    )
    return Figure(
        f"Along {name}: the items that move most",
        lines(drawn, axes, slug, Scale((False, True))),
        "; ".join(f"{title}: {', '.join(f'{value:.2%}' for value in line.y)}" for title, line in drawn.items()),
        "Of the items that reject standing still, the two furthest to the early side and the two to the late side.",
        table,
    )


def _apart(title: str, others: Collection[str]) -> str:
    """The title, with a number behind it where another item has the same."""
    same = sum(other == title or other.startswith(f"{title} #") for other in others)
    return f"{title} #{same + 1}" if same else title


#: Splits as people call them.
NAMES = {LEAVE_ONE_OUT: "leave-one-out", TEMPORAL: "split in time"}


def order_blocks(found: Audit) -> list[Block]:
    """The shuffle tests."""
    if found.order is None:
        return [Note(NO_ORDER)]
    return [Text(SHUFFLES.format(shuffles=found.order.shuffles)), _shuffles(found.order), _guess(found.order)]


def _shuffles(order: Order) -> Table:
    rows: list[list[Cell | str]] = [
        ["whole histories", *_against(order.recurring, order.whole)],
        ["runs of ten neighbours", *_against(order.recurring, order.near)],
    ]
    columns = [
        Column("what is shuffled"),
        Column("in the log", True, "pairs of equal transitions"),
        Column("in shuffles", True, "mean"),
        Column("z", True),
        Column("p", True),
    ]
    part = f"{order.events:,} events of {order.users:,} users"
    return Table(f"Recurring transitions, {part}", columns, rows, sortable=False)


def _against(recurring: int, null: Against) -> list[Cell]:
    return [count(recurring), count(null.expected), number(null.z, 1), number(null.p, 2)]


def _guess(order: Order) -> Table:
    rows: list[list[Cell | str]] = [
        ["in the log", percent(order.guessed, 2)],
        ["in shuffled histories", percent(order.guessed_shuffled, 2)],
    ]
    caption = "How often the commonest successor among other users is right"
    return Table(caption, [Column("histories"), Column("right", True, "of the events")], rows, sortable=False)


def evaluation_blocks(found: Audit) -> list[Block]:
    """What hangs on ties, repeats and time, and what popularity alone would score."""
    told: list[Block] = [Text(TRUST), _snags(found)]
    if found.baselines:
        told += [Text(BASELINE), Figures(_dots(found)), _scores(found)]
    return told


def _snags(found: Audit) -> Table:
    log, leak, again, cold = found.log, found.leakage, found.repeats, found.cold
    rows: list[list[Cell | str]] = []
    if log.ties is not None:
        rows += [
            ["events that share their time with another of the same user", _share(log.ties.share)],
            ["users whose test item hangs on the rule for ties", _share(log.ties.last_share)],
        ]
    rows.append(["events with an item the user had before", _share(again.share)])
    if again.same_moment is not None:
        rows.append(["  of these, at the very same moment", count(again.same_moment)])
    if again.targets is not None:
        rows.append(["test items of leave-one-out that the user had before", _share(again.targets)])
    if leak is not None:
        rows += [
            ["leave-one-out: cases with later events in training", _share(leak.leaking)],
            ["  training events later than the case, on average", _share(leak.later)],
            ["  cases whose item is in training only later", _share(leak.unborn)],
            ["split in time: the same three, by design", _share(0.0)],
        ]
    for split, cases in cold.splits.items():
        name = NAMES[split]
        rows += [
            [f"{name}: test items never seen in training", _share(cases.items)],
            [f"{name}: test items seen fewer than five times", _share(cases.rare)],
            [f"{name}: test users without training events", _share(cases.users)],
        ]
    rows.append(["users with fewer than three events: nothing to hold out", _share(cold.unusable_users)])
    return Table("Snags", [Column("what"), Column("how much", True)], rows, sortable=False)


def _share(value: float) -> Cell:
    """A share that is never rounded to all or nothing."""
    return Cell(share(value), value)


def _dots(found: Audit) -> list[Figure]:
    return [
        _split_dots(found, name) for name in (LEAVE_ONE_OUT, TEMPORAL) if name in {s.split for s in found.baselines}
    ]


def _split_dots(found: Audit, split: str) -> Figure:
    scores = [each for each in found.baselines if each.split == split and each.metric == "NDCG@10"]
    dots = [
        Dot(
            f"{each.protocol}, {'all time' if each.baseline == BASELINES[0] else 'last period'}",
            each.mean,
            each.low,
            each.high,
            BASELINES.index(each.baseline),
            f"{each.baseline}, {each.protocol}: NDCG@10 {each.mean:.3f}, {each.low:.3f} to {each.high:.3f}",
        )
        for each in sorted(scores, key=lambda each: (each.protocol, each.baseline != BASELINES[0]))
    ]
    highest = max(each.high for each in found.baselines if each.metric == "NDCG@10")
    return Figure(
        f"{NAMES[split].capitalize()}: popularity's NDCG@10",
        intervals(dots, "NDCG@10", max(highest, 1e-3), f"baselines-{split}"),
        "; ".join(dot.title for dot in dots),
        f"Means over {scores[0].cases:,} cases with 95% intervals; the same cases in every row.",
    )


def _scores(found: Audit) -> Table:
    columns = [
        Column("split"),
        Column("baseline"),
        Column("protocol"),
        Column("Recall@10", True),
        Column("NDCG@10", True),
        Column("95% interval", True, "of NDCG@10"),
        Column("cases", True),
    ]
    recall = {(s.split, s.baseline, s.protocol): s for s in found.baselines if s.metric == "Recall@10"}
    rows = [
        _row(each, recall[each.split, each.baseline, each.protocol])
        for each in found.baselines
        if each.metric == "NDCG@10"
    ]
    return Table("What popularity alone would score", columns, rows)


def _row(ndcg: Score, recall: Score) -> list[Cell | str]:
    span = Cell(f"{ndcg.low:.3f} – {ndcg.high:.3f}", ndcg.low)
    return [
        NAMES[ndcg.split],
        ndcg.baseline,
        ndcg.protocol,
        number(recall.mean, 3),
        number(ndcg.mean, 3),
        span,
        count(ndcg.cases),
    ]


_NAMES = {"ips": "IPS", "itps": "ITPS", "itps-smoothed": "ITPS, smoothed"}
_AXES = ("exponent of the weights", "effective share of the events")


def weights_blocks(found: Audit) -> list[Block]:
    """Effective sample size by exponent and clip."""
    costs = found.costs
    drawn = [_curves(found, nth) for nth in (0, 1)]
    return [
        Text(COST.format(events=f"{costs.events:,}", window=costs.window, alone=f"{costs.alone:.0%}")),
        Figures(drawn),
        _weights_table(found),
    ]


def _curves(found: Audit, nth_clip: int) -> Figure:
    drawn = {}
    for place, (estimator, name) in enumerate(_NAMES.items(), 1):
        settings = [found.costs.of(estimator, exponent, nth_clip) for exponent in reversed(EXPONENTS)]
        told = ["exponent 0: all events alike, 100%", *(_told(name, each) for each in settings)]
        left = [1.0, *(each.ess_share for each in settings)]
        drawn[name] = Line([0.0, *(each.exponent for each in settings)], left, told, place)
    how = "Without clipping" if nth_clip == 0 else f"The lowest {CLIPPED[nth_clip]:.0%} of the propensities clipped"
    return Figure(
        f"{how}: what is left of the log",
        lines(
            drawn,
            ("exponent of the weights", "effective share of the events"),
            f"ess{nth_clip}",
            Scale((False, True), top=1.05),
        ),
        "; ".join(f"{name}: {', '.join(line.told)}" for name, line in drawn.items()),
        "w = max(θ̂, clip)^−exponent. Exponent 0 is the naive loss, 1 the full correction.",
    )


def _told(name: str, cost: Cost) -> str:
    return f"{name}, exponent {cost.exponent:g}: {cost.ess_share:.1%} left, largest weight {cost.largest_share:.2g}"


def _weights_table(found: Audit) -> Table:
    columns = [Column("estimator"), Column("exponent", True)]
    columns += [Column(f"{part:.0%} clipped" if part else "no clip", True) for part in CLIPPED]
    rows: list[list[Cell | str]] = [
        [name, number(exponent, 2), *(_left(found.costs.of(each, exponent, nth)) for nth in range(len(CLIPPED)))]
        for each, name in _NAMES.items()
        for exponent in EXPONENTS
    ]
    return Table("Effective share of the events, and the clip of θ̂ that leaves it", columns, rows)


def _left(cost: Cost) -> Cell:
    clip = f" at {cost.clip:.1e}" if cost.clip else ""
    return Cell(f"{cost.ess_share:.1%}{clip}", cost.ess_share)


def exposure_blocks(found: Audit) -> list[Block]:
    """The columns that tell of exposure, and what they say; the warning where there are none."""
    known = found.exposure
    told: list[Block] = [Note(POPULARITY, warning=True)] if known.only_popularity else []
    told.append(_columns(found))
    if known.impressions is not None:
        told.append(_impressions(found))
        if known.impressions.by_position is not None:
            told.append(_positions(known.impressions.by_position))
    return told


def _columns(found: Audit) -> Table:
    there = found.exposure.columns
    rows: list[list[Cell | str]] = [[name, "yes" if name in there else "no", use] for name, use in SOURCES.items()]
    return Table("What tells of exposure", [Column("column"), Column("here"), Column("what it gives")], rows)


def _impressions(found: Audit) -> Table:
    seen = found.exposure.impressions
    assert seen is not None
    rows: list[list[Cell | str]] = [
        ["rows shown", count(seen.rows)],
        ["  of them taken", percent(seen.taken)],
        ["items shown", count(seen.items)],
        ["  of them never taken", percent(seen.never_taken)],
        ["rank correlation of times shown and times taken", number(seen.correlation, 2)],
        ["variance of log popularity explained by log exposure", percent(seen.explained)],
    ]
    return Table("What was shown", [Column("figure"), Column("value", True)], rows, sortable=False)


def _positions(rate: tuple[float, ...]) -> Table:
    rows: list[list[Cell | str]] = [[str(place), percent(value, 2)] for place, value in enumerate(rate, 1)]
    return Table("Taken by position", [Column("position"), Column("taken", True, "of what was shown")], rows)


_FIVE = 5


def audit_page(found: Audit, titles: Sequence[str], name: str, command: str) -> Page:
    """The whole page; `titles` has one for each item, `name` is what the log is called."""
    return Page(
        title="What this log says about its own exposure",
        lede=f"{name}: {size(found)} {found.verdict}",
        key_figures=key_figures(found),
        sections=[
            Section("What to do", [Point(a.title, a.figure, a.of, a.reason, a.warning) for a in found.advice]),
            Section("Who gets the events", concentration_blocks(found)),
            Section("Does popularity stand still?", blocks(found, titles)),
            Section("Does order matter?", order_blocks(found)),
            Section("Can an evaluation be trusted?", evaluation_blocks(found)),
            Section("What weighting would cost", weights_blocks(found)),
            Section("What the log knows of exposure", exposure_blocks(found)),
            Section("How it was made", [Text(WHAT), *(Text(each) for each in HOW), Code(command)]),
        ],
    )


def size(found: Audit) -> str:
    """How large the log is, and of when."""
    log = found.log
    when = "" if log.start is None or log.end is None else f", {log.start[:10]} to {log.end[:10]}"
    counts = (quantity(log.interactions, "event"), quantity(log.users, "user"), quantity(log.items, "item"))
    return f"{counts[0]} of {counts[1]} with {counts[2]}{when}."


def key_figures(found: Audit) -> list[KeyFigure]:
    """The five that matter most, of those that the log can give."""
    told = [KeyFigure(share(found.concentration.head["10%"]), "of the events on the most popular tenth of the items")]
    for motion, clock in ((found.histories, "step"), (found.calendar, "calendar")):
        if motion is not None:
            label = f"of the items with ten events or more have a popularity that moves with the {clock}"
            told.append(KeyFigure(share(motion.rejecting.share), label))
    if found.order is not None:
        told.append(KeyFigure(times(found.order.ratio), "as many recurring transitions as in shuffled histories"))
    if found.leakage is not None:
        told.append(KeyFigure(share(found.leakage.later), "of leave-one-out's training events are later than the case"))
    if len(told) < _FIVE:
        told.append(KeyFigure(share(found.costs.of("ips").ess_share), "of the events left, in effect, by IPS weights"))
    if len(told) < _FIVE:
        label = "of the events left, in effect, by ITPS weights"
        told.append(KeyFigure(share(found.costs.of("itps").ess_share), label))
    return told


def refuse_unfit(page: Path, *, overwrite: bool) -> None:
    """Before any work is done: an HTML file is to be written, and nothing is to be buried."""
    refuse_unfit_page(page, [beside(page)], what="the audit", overwrite=overwrite)


def beside(page: Path) -> Path:
    """audit.json beside audit.html."""
    return page.with_suffix(".json")


def write(
    found: Audit, log: Interactions, titles: Sequence[str], source: str, page: Path, command: Sequence[str]
) -> None:
    """Both files and the plots, each whole or not at all; the page last. Passwords of database URLs are left out."""
    told = shlex.join(map(shown, command))
    write_json(beside(page), results(found, log, told))
    write_page(audit_page(found, titles, Path(shown(source)).name, told), page)


def results(found: Audit, log: Interactions, command: str) -> dict[str, Any]:
    """Every figure under the names of `Audit`, movers by their own ids, and what it was made with."""
    figures = asdict(found)
    for name in ("histories", "calendar"):
        for mover in (figures[name] or {}).get("movers", ()):
            mover["item"] = log.items[mover["item"]]
    return {"audit": 1, "command": command, "versions": versions(), "fingerprint": log.fingerprint(), **figures}
