"""The advice in words, chosen by the figures."""

from unveil.experiment.advise.basis import basis
from unveil.experiment.advise.gains import Gain
from unveil.experiment.advise.judged import BESIDE, HEADLINE, Advice
from unveil.experiment.advise.scenarios import Scenario
from unveil.experiment.outcome import BASE, BOUND
from unveil.report.names import named, share, signed
from unveil.simulation.choice import told
from unveil.wording import quantity

TITLE = "Which estimator for this log?"


def reading(advice: Advice) -> list[str]:
    """The advice, what else could be chosen, what is not known, and what knowing it would give."""
    said = (_advice, _both, _instead, _cases, _followed, _ceiling, _alike)
    return [*filter(None, (each(advice) for each in said)), *_refused(advice)]


def caution(advice: Advice) -> str:
    """What the figures are over, and what they rest on."""
    plan = advice.tried.plan
    draws = quantity(plan.replicates, "draw")
    if plan.worlds > 1:
        over = f"{plan.worlds} worlds, {draws} of each in each scenario; the units are the worlds"
    else:
        over = f"one world, {draws} in each scenario; another world fitted to the log might say otherwise (--worlds)"
    return (
        f"Judged by {HEADLINE.name} of the true favourite among all items. Over {over}. Intervals are 95%, of the mean "
        f"over the scenarios that were tried, each counting alike; p-values are corrected (Holm) over the candidates. "
        f"{basis(advice)} The networks are those of the preset {plan.study.preset}, and the epoch that is kept "
        f"is chosen by what was taken, as the estimator explains it and as on the real log."
    )


def plus(gain: Gain) -> str:
    """+0.012 [+0.003, +0.021]."""
    mean = gain.mean
    if not mean.low > float("-inf"):
        return signed(mean.difference)
    return f"{signed(mean.difference)} [{signed(mean.low)}, {signed(mean.high)}]"


def _advice(advice: Advice) -> str:
    decision, scenarios = advice.decision, quantity(len(advice.scenarios), "scenario")
    if decision.chosen != BASE:
        closed = advice.share(decision.chosen)
        gap = "" if closed is None else f", {share(closed)} of what a loss that knows the truth would gain"
        return (
            f"Use {named(decision.chosen)}. Over {scenarios} it gains {plus(decision.gain)} in {HEADLINE.name} over "
            f"the naive loss{gap}."
        )
    if advice.tried.plan.worlds * advice.tried.plan.replicates == 1:
        return (
            f"No advice yet: with one world and one draw in each scenario nothing can be told from chance. Ask for "
            f"--replicates 3 or more; nothing is trained twice. Over {scenarios} the highest mean is "
            f"{_highest(advice)}; until that is tested, use the naive loss."
        )
    if decision.why == "naive is safer":
        return f"Use the naive loss. {_safer(advice, scenarios)}"
    return (
        f"Use the naive loss: over {scenarios} no estimator that this log allows is surely above it. The highest mean "
        f"is {_highest(advice)}."
    )


def _highest(advice: Advice) -> str:
    best = advice.decision.gains[advice.decision.best]
    return "its own" if best.arm == BASE else f"that of {named(best.arm)}, {plus(best)} in {HEADLINE.name}"


def _safer(advice: Advice, scenarios: str) -> str:
    """Why something that gains on average is not advised: it loses somewhere, and what loses least is not sure."""
    decision = advice.decision
    sure = [gain for arm, gain in decision.gains.items() if decision.sure(arm)]
    best = max(sure, key=lambda each: each.mean.difference)
    low = best.of_scenario[best.worst]
    robust = "is its own" if decision.robust == BASE else f"is that of {named(decision.robust)}, which is not sure"
    return (
        f"Over {scenarios} {named(best.arm)} gains {plus(best)} in {HEADLINE.name} on average, but {signed(low)} where "
        f"users {_do(advice.scenarios[best.worst])}; the best worst case {robust}."
    )


def _do(scenario: Scenario) -> str:
    """As it reads after "where users"."""
    declared = "" if scenario.liked is None else f" and {scenario.liked:.0%} of popularity is liking"
    return f"{told(scenario.choice)}, with p = {scenario.severity:g}{declared}"


def _both(advice: Advice) -> str:
    """The two ways to choose, and whether they agree."""
    decision = advice.decision
    robust, best = decision.gains[decision.robust], decision.gains[decision.best]
    if robust.arm == best.arm:
        return (
            f"The highest mean and the best worst case are the same arm’s, {named(best.arm)}: against having known the "
            f"scenario it loses at most {best.largest_regret:.3f}."
        )
    return (
        f"The best worst case and the highest mean are not the same arm’s. {named(robust.arm)} loses at most "
        f"{robust.largest_regret:.3f} against having known the scenario and gains {plus(robust)} on average; "
        f"{named(best.arm)} gains {plus(best)} on average and may lose {best.largest_regret:.3f}."
    )


def _instead(advice: Advice) -> str:
    """Why the best worst case was not followed, where something else is advised."""
    decision = advice.decision
    if decision.chosen in (BASE, decision.robust):
        return ""
    unsure = "" if decision.robust == BASE else f"{named(decision.robust)} is not surely above the naive loss. "
    return (
        f"{unsure}Of what is surely above the naive loss, and on average below it in no scenario, "
        f"{named(decision.chosen)} has the highest mean: it is advised."
    )


def _cases(advice: Advice) -> str:
    """Where the chosen arm gains least."""
    gain = advice.decision.gain
    if gain.arm == BASE:
        return ""
    low = gain.of_scenario[gain.worst]
    where = _do(advice.scenarios[gain.worst])
    end = ": below the naive loss there" if low < 0 else ""
    return f"It gains least where users {where}: {signed(low)}{end}."


def _followed(advice: Advice) -> str:
    found = advice.decision.followed
    if found is None:
        return "With one draw of each scenario nothing can be said of draws that were not seen: more --replicates."
    return (
        f"The best of {len(advice.tried.candidates.usable)} candidates looks better than it is on the draws it was "
        f"chosen by. Chosen by its worst case on the other draws and judged on those left out, the choice gains "
        f"{signed(found)}."
    )


def _ceiling(advice: Advice) -> str:
    arm, gain = advice.ceiling()
    naive, ideal = advice.mean(BASE), advice.mean(BOUND)
    recall = advice.mean(advice.decision.chosen, BESIDE) - advice.mean(BASE, BESIDE)
    chosen = "" if advice.decision.chosen == BASE else f" In {BESIDE.name} the choice gains {signed(recall)}."
    known = "" if arm == BOUND else f"What knowing exposure would give: {named(arm)} gains {signed(gain)}. "
    return f"{known}The naive loss has {naive:.3f} and a loss that knows the truth {ideal:.3f}.{chosen}"


def _alike(advice: Advice) -> str:
    near, real = advice.alike, advice.tried.looks
    gain = advice.decision.gain.of_scenario[advice.scenarios.index(near)]
    here = "" if advice.decision.chosen == BASE else f"; there the choice gains {signed(gain)}"
    return (
        f"Which scenario is yours is not known. By the concentration of items (Gini {real.gini:.2f} in your log) the "
        f"drawn logs of “{near}” ({advice.looks(near).gini:.2f}) are most like it{here}."
    )


def _refused(advice: Advice) -> list[str]:
    refused = advice.tried.refused
    if not refused:
        return []
    told = "; ".join(f"{name} ({why.rstrip('.')})" for name, why in refused.items())
    return [f"What could not be tried: {told}."]
