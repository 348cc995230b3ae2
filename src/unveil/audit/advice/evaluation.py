"""Advice on how to judge models on this log."""

from collections.abc import Iterator

from unveil.audit.advice.base import Advice, metric, share
from unveil.audit.baselines import BASELINES
from unveil.audit.figures import LEAVE_ONE_OUT, TEMPORAL, Figures
from unveil.audit.leakage import Leakage
from unveil.audit.repeats import Repeats
from unveil.data.describe import TIE_RULE

#: Shares above which ties, repeats and later training events are worth a word.
_TIED, _TIED_LAST, _REPEATED, _LATER = 0.05, 0.01, 0.01, 0.01


def evaluation_advice(found: Figures) -> Iterator[Advice]:
    """Leakage, ties, repeats, protocols."""
    yield from _leakage(found)
    yield from _ties(found)
    yield from _repeats(found.repeats)
    yield from _to_beat(found)
    yield from _protocols(found)


def _leakage(found: Figures) -> Iterator[Advice]:
    if found.log.start is None:
        yield Advice(
            "leakage",
            "Without times nobody can tell whether training looks into the future",
            "none",
            "of the events have a time",
            "Leave-one-out is all that can be done with this file, and whether it leaks cannot be seen. Get the log "
            "with its times if you can.",
        )
    elif found.leakage is not None and found.leakage.later > _LATER:
        yield _leaks(found.leakage)


def _leaks(leak: Leakage) -> Advice:
    unborn = f" {share(leak.unborn)} ask for an item before anybody had taken it in training." if leak.unborn else ""
    return Advice(
        "leakage",
        "Leave-one-out learns from the future: judge by a split in time as well",
        share(leak.later),
        "of the training events are later than the case they are used for, on average",
        f"Of {leak.cases:,} test cases {share(leak.leaking)} have later events in their training set.{unborn} "
        "`--set data.split=temporal` trains on what came before a date and tests on what came after; expect lower "
        "figures, and perhaps another winner.",
        warning=leak.later > 10 * _LATER,
    )


def _ties(found: Figures) -> Iterator[Advice]:
    ties = found.log.ties
    if ties is not None and (ties.share > _TIED or ties.last_share > _TIED_LAST):
        yield Advice(
            "ties",
            "Say how ties are broken: they choose the test items",
            share(ties.last_share),
            "of the users have several events at their last moment, so their test item hangs on the rule",
            f"{share(ties.share)} of all events share their time with another of the same user. Here {TIE_RULE}; "
            "another tool may do otherwise and get another test set from the same file.",
            warning=ties.last_share > 10 * _TIED_LAST,
        )


def _repeats(found: Repeats) -> Iterator[Advice]:
    if found.share <= _REPEATED:
        return
    doubled = found.same_moment or 0
    if doubled > found.events / 2:
        yield Advice(
            "repeats",
            "Drop the rows that are there twice",
            f"{doubled:,}",
            "rows repeat user, item and time of another",
            "They are copies, not events: a model is trained and tested on its own answers. `--repeats first` keeps "
            "one of each.",
            warning=True,
        )
        return
    yield Advice(
        "repeats",
        "Users come back to items: decide whether that is what you want to predict",
        share(found.share),
        "of the events are with an item the user had before",
        f"{share(found.targets or 0.0)} of the test items of leave-one-out are such. If repeats count, let seen items "
        "compete (`--set evaluation.exclude_seen=false`) and beat “the same again” first; if not, `--repeats first`.",
    )


def _to_beat(found: Figures) -> Iterator[Advice]:
    split = TEMPORAL if found.score(TEMPORAL, BASELINES[0], "full") else LEAVE_ONE_OUT
    scores = [score for name in BASELINES if (score := found.score(split, name, "full")) is not None]
    if scores:
        best = max(scores, key=lambda score: score.mean)
        others = ", ".join(f"{score.baseline} {metric(score.mean)}" for score in scores)
        how = "a split in time" if split == TEMPORAL else "leave-one-out"
        yield Advice(
            "baselines",
            f"First beat {best.baseline}",
            metric(best.mean),
            f"NDCG@10 of {best.baseline} in full ranking, {how}",
            f"It needs no training ({others}; 95% interval of the better {metric(best.low)} to {metric(best.high)}, "
            f"over {best.cases:,} cases). A model that does not pass it has learnt nothing about users.",
        )


def _protocols(found: Figures) -> Iterator[Advice]:
    names = [("full", "full ranking"), ("uniform", "uniform negatives"), ("popular", "popular negatives")]
    scores = {told: found.score(LEAVE_ONE_OUT, BASELINES[0], name, "Recall@10") for name, told in names}
    there = {told: score for told, score in scores.items() if score is not None}
    if len(there) > 1 and "full ranking" in there:
        rest = [told for told in there if told != "full ranking"]
        told = ", ".join(f"{metric(score.mean)} ({name})" for name, score in there.items())
        yield Advice(
            "baselines",
            "Judge by full ranking: drawn negatives measure something else",
            f"{metric(there['full ranking'].mean)} → {metric(there[rest[0]].mean)}",
            f"Recall@10 of popularity, leave-one-out: full ranking → {rest[0]}",
            f"The same scorer on the same cases scores {told}. Uniform negatives flatter whatever knows what is "
            "popular, popular negatives punish it. Use drawn negatives only to set figures beside published "
            "ones.",
        )
