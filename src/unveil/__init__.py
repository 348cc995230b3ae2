"""unveil: debiased sequential recommendation.

A log in; a recommender that learns what users would like had they seen everything; and the evidence for it.
Names are imported when they are first used, so that `import unveil` stays quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unveil.data.describe import describe as describe
    from unveil.data.filters import Filters as Filters
    from unveil.data.indexing import Vocabulary as Vocabulary
    from unveil.data.interactions import Interactions as Interactions
    from unveil.data.interactions import Sequences as Sequences
    from unveil.data.splits import leave_one_out as leave_one_out
    from unveil.data.splits import temporal_split as temporal_split
    from unveil.errors import UnveilError as UnveilError
    from unveil.errors import UnveilWarning as UnveilWarning
    from unveil.runs.labelled import evaluate_labelled as evaluate_labelled
    from unveil.serving.recommender import Recommender as Recommender
    from unveil.simulation.world import World as World

__version__ = "0.1.0"

_HOME = {
    "Filters": "unveil.data.filters",
    "Interactions": "unveil.data.interactions",
    "Recommender": "unveil.serving.recommender",
    "Sequences": "unveil.data.interactions",
    "UnveilError": "unveil.errors",
    "UnveilWarning": "unveil.errors",
    "Vocabulary": "unveil.data.indexing",
    "World": "unveil.simulation.world",
    "describe": "unveil.data.describe",
    "evaluate_labelled": "unveil.runs.labelled",
    "leave_one_out": "unveil.data.splits",
    "temporal_split": "unveil.data.splits",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'unveil' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*_HOME, "__version__"])
