"""Which conclusions hold under every ranking, and which flip between them: paired tests of all pairs of arms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from unveil.evaluation.statistics import Paired, holm
from unveil.experiment.outcome import BASE, STANDARD
from unveil.experiment.reproduce.ranking import ALPHA
from unveil.experiment.reproduce.results import Figure
from unveil.experiment.reproduce.words import against_base
from unveil.experiment.rq4.results import AS_IT_IS, RealResults
from unveil.report.names import against, named, signed

Verdict = Literal["above", "below", "level"]
_SURE: tuple[Verdict, ...] = ("above", "below")
#: Few replicates make few tests sure: that is no agreement between rankings.
TURNED = "The sign turns in the means, more than the tests are sure of"
#: A reader who finds a pair called different in one place and not in another should find out why.
DOUBTED = "Sure where only each arm is held against naive, and no longer where all pairs and rankings are corrected for"


@dataclass(frozen=True)
class Pair:
    """One arm against another under every ranking; p-values are corrected."""

    one: str
    other: str
    tests: Mapping[str, Paired]

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """What a paired test allows to say under each ranking."""
        return {protocol: _verdict(test) for protocol, test in self.tests.items()}

    @property
    def steady(self) -> bool:
        """The same under all rankings."""
        return len(set(self.verdicts.values())) == 1

    @property
    def reverses(self) -> bool:
        """Surely better under one ranking, surely worse under another."""
        return {"above", "below"} <= set(self.verdicts.values())

    @property
    def turns(self) -> bool:
        """Above under one ranking and below under another by the means, whether or not a test is sure of both."""
        means = [test.difference for test in self.tests.values()]
        return min(means) < 0 < max(means)

    @property
    def means(self) -> str:
        """ITPS less naive +0.0120 against 100 popular items, −0.0030 against all items."""
        told = [f"{signed(test.difference, 4)} against {against(name)}" for name, test in self.tests.items()]
        return f"{named(self.one)} less {named(self.other)} {', '.join(told)}"

    def __str__(self) -> str:
        """ITPS scores above naive against 100 popular items, below it against all items."""
        one, other = named(self.one), named(self.other)
        if self.steady:
            return _said(one, other, next(iter(self.verdicts.values())))
        first, *rest = (verdict for verdict in _SURE if verdict in self.verdicts.values())
        told = [f"{_said(one, other, first)} against {_listed(self._under(first))}"]
        told += [f"{verdict} it against {_listed(self._under(verdict))}" for verdict in rest]
        told += [f"cannot be told from it against {_listed(level)}"] if (level := self._under("level")) else []
        return ", ".join(told)

    def _under(self, verdict: Verdict) -> list[str]:
        return [against(protocol) for protocol, each in self.verdicts.items() if each == verdict]


def pairs(results: RealResults, metric: str = "NDCG", k: int = 10) -> list[Pair]:
    """All pairs of trained arms, the naive one and the control always second; Holm's correction over all tests."""
    arms = sorted(results.trained, key=lambda arm: {BASE: 2, "control": 1}.get(arm, 0))
    figures = [Figure(STANDARD, protocol, metric, k) for protocol in results.protocols]
    raw = [
        Pair(one, other, {each.protocol: results.against(AS_IT_IS, one, other, each) for each in figures})
        for one, other in combinations(arms, 2)
    ]
    corrected = iter(holm(np.array([test.p for pair in raw for test in pair.tests.values()])).tolist())
    return [
        replace(pair, tests={name: replace(test, p=next(corrected)) for name, test in pair.tests.items()})
        for pair in raw
    ]


def box(results: RealResults) -> list[str]:
    """Sentences: what reverses, what holds under some rankings only, what holds under all; what turns in the means.

    And what the milder correction of fewer tests calls sure.
    """
    every = pairs(results)
    reversed_, partly = [p for p in every if p.reverses], [p for p in every if not (p.steady or p.reverses)]
    steady, turned = [pair for pair in every if pair.steady], [p for p in every if p.turns and not p.reverses]
    return [
        *(f"Reversed: {pair}." for pair in reversed_),
        *(f"Under some rankings only: {pair}." for pair in partly),
        *([f"The same under all rankings: {'; '.join(map(str, steady))}."] if steady else []),
        *([f"{TURNED}: {'; '.join(pair.means for pair in turned)}."] if turned else []),
        *([f"{DOUBTED}: {'; '.join(doubted)}."] if (doubted := _doubted(results, every)) else []),
    ]


def _doubted(results: RealResults, every: Sequence[Pair]) -> list[str]:
    """ITPS over naive against all items: what a page says of the arms by themselves, and its box does not."""
    return [
        f"{named(pair.one)} over {named(BASE)} against {against(protocol)}"
        for protocol in results.protocols
        for pair in every
        if pair.other == BASE
        and pair.verdicts[protocol] == "level"
        and _verdict(_alone(results, protocol)[pair.one]) != "level"
    ]


def _alone(results: RealResults, protocol: str) -> dict[str, Paired]:
    return against_base(results, AS_IT_IS, Figure(STANDARD, protocol, "NDCG", 10))


def told(results: RealResults) -> list[dict[str, Any]]:
    """The same for programs."""
    return [
        {
            "pair": [pair.one, pair.other],
            "verdicts": pair.verdicts,
            "steady": pair.steady,
            "reverses": pair.reverses,
            "turns_in_the_means": pair.turns,
            "tests": {name: _finite(test) for name, test in pair.tests.items()},
        }
        for pair in pairs(results)
    ]


def _finite(test: Paired) -> dict[str, float | None]:
    """As JSON can hold it: an effect without bounds (all differences equal) is none."""
    return {name: value if np.isfinite(value) else None for name, value in vars(test).items()}


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names)


def _verdict(test: Paired) -> Verdict:
    if not test.p < ALPHA:
        return "level"
    return "above" if test.difference > 0 else "below"


def _said(one: str, other: str, verdict: Verdict) -> str:
    return f"{one} cannot be told from {other}" if verdict == "level" else f"{one} scores {verdict} {other}"
