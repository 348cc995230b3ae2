"""Does order matter, and can an evaluation be trusted: shuffles, ties, repeats, leakage, cold cases, baselines."""

from unveil.audit.advice.base import share
from unveil.audit.baselines import BASELINES, Score
from unveil.audit.figures import LEAVE_ONE_OUT, TEMPORAL
from unveil.audit.order import Against, Order
from unveil.audit.run import Audit
from unveil.experiment.audit.words import BASELINE, NO_ORDER, SHUFFLES, TRUST
from unveil.report.charts import Dot, intervals
from unveil.report.page import Block, Cell, Column, Figure, Figures, Note, Table, Text, count, number, percent

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


def blocks(found: Audit) -> list[Block]:
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
