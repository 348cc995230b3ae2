"""How a study was made, in sentences."""

from unveil.experiment.tune.study import Study
from unveil.experiment.tune.words import value_text
from unveil.wording import quantity

_SEARCH = {
    "random": (
        "Settings were drawn at random, no combination twice; for a seed, trial i has the same settings whoever works "
        "on it. Combinations that no model can have were left out."
    ),
    "grid": "Every combination that a model can have was tried.",
    "tpe": (
        "Settings were guessed by TPE from the trials that were over when each began, so the study depends on how many "
        "worked on it and how fast. Combinations that no model can have were guessed anew."
    ),
}


def made(study: Study) -> list[str]:
    """The space, the search, the replicates and what went wrong."""
    plan = study.plan
    tried = ", ".join(f"{name} in {_tried(values)}" for name, values in plan.space.plain().items())
    return [
        f"Space {plan.space.name}: {tried}.",
        f"{_SEARCH[plan.sampler]} {_pruning(study)}",
        f"{_seeds(study)} {study.subject.words.judging}",
        _mishaps(study),
    ]


def _pruning(study: Study) -> str:
    if not study.plan.prune:
        return "No trial was stopped early."
    return f"Trials whose first replicate fell behind the median were stopped: {study.count('pruned')} of them."


def _seeds(study: Study) -> str:
    return f"Replicate r has the same seed in every trial (from {study.subject.seed} on): they are compared in pairs."


def _mishaps(study: Study) -> str:
    again = sum(each.attempts > 1 for each in study.records)
    start = "last replicate that was done" if study.subject.epochs is None else "last checkpoint"
    return (
        f"{quantity(study.count('failed'), 'trial')} failed. {quantity(again, 'trial')} had to be begun anew because a "
        f"worker died or was stopped: with the same settings, from the {start} where it could be reached."
    )


def _tried(values: object) -> str:
    if isinstance(values, list):
        return "{" + ", ".join(map(value_text, values)) + "}"
    assert isinstance(values, dict)
    return f"[{values['low']:g}, {values['high']:g}]" + (" by ratio" if values["log"] else "")
