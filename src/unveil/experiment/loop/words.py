"""What the figures of a loop say, in words that are chosen by the figures. Nothing here is true beforehand."""

from collections.abc import Sequence

from unveil.experiment.loop.figures import FIGURES, HEADLINE
from unveil.experiment.loop.outcome import LoopOutcome
from unveil.experiment.loop.paper import paper_says
from unveil.experiment.loop.plan import LoopPlan
from unveil.report.names import listed, named, signed
from unveil.wording import quantity

_ALPHA = 0.05
_RESPONSE = {
    "uniform": "Users take any item of their list at random, as in the paper: what they take says nothing of what they "
    "like, so the loop shows what the models do to themselves and not whom they please.",
    "position": "Users look from the top of the list and take the earlier items more often, whatever they are.",
    "geometric": "Users look from the top of the list and take the earlier items more often, whatever they are.",
    "popular": "Users go with the crowd: of their list they rather take what many took before.",
    "logit": "Users agree with whichever model serves them: the higher its score, the likelier they take an item.",
    "logit-relevance": "Users take an item the likelier, the higher its true relevance, and nothing where nothing "
    "pleases.",
    "relevant": "Users choose from their list by true relevance and take the item only where it pleases.",
}


def reading(plan: LoopPlan, outcome: LoopOutcome) -> list[str]:
    """The conclusions, each a paragraph."""
    paragraphs = [
        _novelty(plan, outcome),
        paper_says(plan, outcome),
        _moved(plan, outcome),
        _diversity(plan, outcome),
        _truth(plan, outcome),
    ]
    return [paragraph for paragraph in paragraphs if paragraph]


def response_in_words(plan: LoopPlan) -> str:
    """How users respond."""
    name = str(plan.loop.response["name"])
    return _RESPONSE.get(name, f"Users respond by {name!r}.")


def figure(plan: LoopPlan, key: str) -> str:
    """The name of a figure, for a sentence."""
    return FIGURES[key].named(plan.loop.k)


def _novelty(plan: LoopPlan, outcome: LoopOutcome) -> str:
    """Who recommends the most novel items, before and after, and whether that is more than chance."""
    efd, last = figure(plan, HEADLINE), outcome.rounds
    first = _ordered(outcome, HEADLINE, 0)
    if len(outcome.models) == 1:
        after = f"after {quantity(last, 'round')} of feedback it is {_ordered(outcome, HEADLINE, last)}"
        return f"Before any feedback {efd} is {first}; {after}."
    said = f"Before any feedback the order of {efd}, most novel first, is {first}; after {quantity(last, 'round')} of "
    return f"{said}feedback it is {_ordered(outcome, HEADLINE, last)}. {_tested(plan, outcome)}"


def _tested(plan: LoopPlan, outcome: LoopOutcome) -> str:
    if outcome.replicates < 2:
        return "One replicate: how much of a difference is chance cannot be told."
    base = outcome.models[0]
    found = outcome.differences(HEADLINE, base)
    told = [
        f"{named(model)} {_verdict(each.difference, each.p)} {named(base)} ({signed(each.difference)} bits, "
        f"p {'below 0.001' if each.p < 0.001 else f'= {each.p:.3f}'})"
        for model, each in found.items()
    ]
    return f"In the last round {'; '.join(told)}: paired t-tests over {outcome.replicates} replicates, Holm-corrected."


def _verdict(difference: float, p: float) -> str:
    if p >= _ALPHA:
        return "cannot be told from"
    return "is more novel than" if difference > 0 else "is less novel than"


def _moved(plan: LoopPlan, outcome: LoopOutcome) -> str:
    """Whether the loop narrows, and how much of it is the yardstick moving."""
    changes = {model: outcome.change(model, HEADLINE) for model in outcome.models}
    by_first = {model: outcome.change(model, "efd_first") for model in outcome.models}
    told = ", ".join(f"{named(m)} {signed(c)} bits ({signed(by_first[m])})" for m, c in changes.items())
    return (
        f"Along the rounds novelty {_direction(list(changes.values()), 'rises', 'falls')}: {told}. In brackets by the "
        f"popularity of the first log: {_yardstick(changes, by_first)}"
    )


def _yardstick(changes: dict[str, float], by_first: dict[str, float]) -> str:
    same = all((changes[model] < 0) == (by_first[model] < 0) for model in changes)
    if same:
        return "the lists themselves move that way, not only the popularity they are measured by."
    return (
        "there the direction differs, so some of the change is the yardstick's: what is recommended becomes popular by "
        "being recommended."
    )


def _direction(changes: Sequence[float], up: str, down: str) -> str:
    if all(change > 0 for change in changes):
        return f"{up} for every model" if len(changes) > 1 else up
    if all(change < 0 for change in changes):
        return f"{down} for every model" if len(changes) > 1 else down
    return f"{up} for some models and {down} for others"


def _diversity(plan: LoopPlan, outcome: LoopOutcome) -> str:
    """Whether users come to be shown the same, and who is widest in the last round."""
    overlap, gini = (
        _direction([outcome.change(model, key) for model in outcome.models], "rises", "falls")
        for key in ("overlap", "log_gini")
    )
    order = outcome.order("coverage")
    said = f"The overlap between the lists of two users {overlap}; the inequality of the log {gini}. In the last round"
    told = [f"{outcome.estimate(model, 'coverage').mean:.1%}" for model in (order[0], order[-1])]
    if len(order) == 1:
        return f"{said} {told[0]} of the items are recommended to anybody."
    return f"{said} {named(order[0])} recommends {told[0]} of the items to anybody, {named(order[-1])} {told[1]}."


def _truth(plan: LoopPlan, outcome: LoopOutcome) -> str:
    if "taken_relevance" not in outcome.figures:
        return ""
    rounds = outcome.rounds_of("taken_relevance")
    if len(rounds) < 2:
        return ""
    told = ", ".join(
        f"{named(model)} {outcome.estimate(model, 'taken_relevance', rounds[0]).mean:.3f} → "
        f"{outcome.estimate(model, 'taken_relevance', rounds[-1]).mean:.3f}"
        for model in outcome.order("taken_relevance", rounds[-1])
    )
    shown = outcome.order("relevance")
    return (
        f"True relevance γ of what users took, from the first round of feedback to the last, highest last value first: "
        f"{told}. Of what is recommended in the last round the order is {_ordered(outcome, 'relevance', None)}"
        f"{'' if len(shown) == 1 else ', highest first'}.{_standing(outcome)} Nothing is shown twice, so what pleases "
        f"most runs out: compare the models, not the rounds."
    )


def _standing(outcome: LoopOutcome) -> str:
    """Relevance may be near 1 all over a world; where an item stands among the unmet ones is then what tells."""
    if "taken_standing" not in outcome.figures:
        return ""
    return (
        f" What was taken in the last round is truly better than this share of all that the user had not met: "
        f"{_ordered(outcome, 'taken_standing', None)}; by chance it would be 0.5."
    )


def _ordered(outcome: LoopOutcome, key: str, round: int | None) -> str:
    digits = FIGURES[key].digits
    means = {model: outcome.estimate(model, key, round).mean for model in outcome.order(key, round)}
    if len(means) == 1:
        return f"{next(iter(means.values())):.{digits}f}"
    return ", ".join(f"{named(model)} {mean:.{digits}f}" for model, mean in means.items())


def caution(plan: LoopPlan, outcome: LoopOutcome) -> str:
    """What the figures leave out."""
    weighted = [model for model in plan.networks if model not in ("naive", "ideal")]
    proxy = f" Popularity stands in for exposure in {listed(weighted)}." if weighted else ""
    units = (
        "One replicate: no intervals, and no tests."
        if outcome.replicates == 1
        else f"Means over {outcome.replicates} replicates; bands are 95% intervals by Student's t. In a replicate all "
        f"models share the luck of the users, and models of equal settings initial weights, batches and masks."
    )
    return f"{units}{proxy} {response_in_words(plan)}"
