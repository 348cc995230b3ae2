"""What the paper says of its feedback loop (RQ5, a plot without numbers), beside what came out here."""

from unveil.experiment.loop.figures import HEADLINE
from unveil.experiment.loop.outcome import LoopOutcome
from unveil.experiment.loop.plan import LoopPlan
from unveil.report.names import named

#: What the text says of the plot for each data set: about the models, and about the rounds.
_CLAIMS = {
    "ml-1m": "IPS and ITPS are about equally novel in EFD@10, and both more so than BERT4Rec (naive)",
    "ml-20m": "ITPS is the most novel in EFD@10 in all rounds, and novelty falls along the rounds for all models",
    "beauty": "ITPS is the most novel in EFD@10 in all rounds, BERT4Rec (naive) is above IPS, and novelty falls along "
    "the rounds for all models",
}


def paper_says(plan: LoopPlan, outcome: LoopOutcome) -> str:
    """The claim, and in how many rounds each pair of models is in that order here; nothing where it does not apply."""
    if plan.tuned_for is None or not {"naive", "ips", "itps"} <= set(outcome.models):
        return ""
    if plan.data is None:
        return "The paper has no loop on a log of this size: nothing of it is set beside these figures."
    pairs = [("ips", "naive"), ("itps", "naive"), ("itps", "ips")]
    told = ", ".join(f"{named(one)} is above {named(other)} in {above(outcome, one, other)}" for one, other in pairs)
    rounds = f"{outcome.rounds + 1} rounds, round 0 included"
    return f"On {plan.data} the paper says: {_CLAIMS[plan.data]}. Here {told} of {rounds}."


def above(outcome: LoopOutcome, one: str, other: str) -> int:
    """In how many rounds one model's mean is higher than another's."""
    every = range(outcome.rounds + 1)
    means = [[outcome.estimate(model, HEADLINE, round).mean for model in (one, other)] for round in every]
    return sum(mine > theirs for mine, theirs in means)
