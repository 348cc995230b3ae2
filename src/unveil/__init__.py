"""unveil: debiased sequential recommendation.

A log in; a recommender that learns what users would like had they seen everything; and the evidence for it.
Names are imported when they are first used, so that `import unveil` stays quick.
"""

from importlib import import_module

__version__ = "0.1.0"

_HOME = {
    "Filters": "unveil.data.filters",
    "Interactions": "unveil.data.interactions",
    "Sequences": "unveil.data.sequences",
    "UnveilError": "unveil.errors",
    "Vocabulary": "unveil.data.vocabulary",
    "World": "unveil.simulation.world",
    "describe": "unveil.data.describe",
    "leave_one_out": "unveil.data.splits",
    "temporal_split": "unveil.data.splits",
}

__all__ = ["Filters", "Interactions", "Sequences", "UnveilError", "Vocabulary", "World", "__version__", "describe"]
__all__ += ["leave_one_out", "temporal_split"]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'unveil' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
