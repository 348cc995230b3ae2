"""The reference: the names that are meant for others, with their signatures and docstrings."""

import inspect
import re
from importlib import import_module
from typing import Any

_HEAD = """# Reference

The public API. `Interactions`, `Filters`, `Sequences`, `Vocabulary`, `World`, `Recommender`,
`describe`, `evaluate_labelled`, `leave_one_out`, `temporal_split` and the errors can be imported from `unveil` itself;
all others from their modules. Arrays name their shapes: B batch, L length, D width, M slots, V items, U users, T steps,
K list length, C cases, N events.

"""

#: A signature longer than this takes a line for each parameter.
_WIDE = 90

_PARTS: dict[str, tuple[str, ...]] = {
    "Logs": (
        "unveil.data.interactions.Interactions",
        "unveil.data.indexing.Vocabulary",
        "unveil.data.filters.Filters",
        "unveil.data.describe.describe",
        "unveil.data.interactions.Sequences",
        "unveil.data.splits.leave_one_out",
        "unveil.data.splits.temporal_split",
        "unveil.data.packed.pack",
        "unveil.data.writers.write",
    ),
    "Audit": ("unveil.audit.advice.audit", "unveil.audit.advice.Audit"),
    "Recommending": ("unveil.serving.recommender.Recommender", "unveil.serving.recommender.Selection"),
    "Worlds": ("unveil.simulation.world.World", "unveil.simulation.builtin.WorldSpec"),
    "Runs": (
        "unveil.runs.config.Experiment",
        "unveil.runs.train.run",
        "unveil.runs.train.evaluate",
        "unveil.runs.train.run_rank",
        "unveil.runs.train.export_weights",
    ),
    "What can be extended": (
        "unveil.data.slots.Slots",
        "unveil.estimators.base.Signal",
        "unveil.estimators.losses.ByRows",
        "unveil.estimators.base.Estimator",
        "unveil.estimators.base.cloze_risk",
        "unveil.propensity.base.PropensityModel",
        "unveil.models.base.Backbone",
        "unveil.evaluation.metrics.RankMetric",
        "unveil.evaluation.metrics.ListMetric",
        "unveil.evaluation.metrics.CatalogueMetric",
        "unveil.evaluation.metrics.TruthMetric",
        "unveil.data.readers.base.Format",
        "unveil.simulation.choice.ChoiceModel",
    ),
    "Judging": (
        "unveil.evaluation.ranking.Scorer",
        "unveil.evaluation.evaluator.Evaluator",
        "unveil.runs.labelled.evaluate_labelled",
        "unveil.evaluation.result.Evaluation",
        "unveil.evaluation.result.compare",
    ),
    "What goes wrong": ("unveil.errors.UnveilError", "unveil.errors.UnveilWarning"),
}


def reference() -> str:
    """The page."""
    return _HEAD + "\n\n".join(f"## {title}\n\n" + "\n\n".join(map(_entry, names)) for title, names in _PARTS.items())


def named(path: str) -> Any:
    """What a dotted path names."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def _entry(path: str) -> str:
    thing = named(path)
    name = path.rpartition(".")[2]
    parts = [f"### {name}", f"```python\n{_signature(name, thing)}\n```", _written(inspect.getdoc(thing) or "")]
    if inspect.isclass(thing):
        parts.append(_methods(thing))
    return "\n\n".join([*filter(None, parts), f"`{path}`"])


def _methods(thing: type) -> str:
    """One line for each public member that the class itself defines and explains."""
    rows = []
    for name, member in vars(thing).items():
        inner = getattr(member, "__func__", getattr(member, "fget", member))
        told = inspect.getdoc(inner) if inspect.isroutine(inner) else None
        if not name.startswith("_") and told:
            shown = name if isinstance(member, property) else _signature(name, inner, shorten=True)
            rows.append(f"- `{shown}`: {_written(told.split(chr(10) * 2)[0])}")
    return "\n".join(rows)


def _signature(name: str, thing: Any, *, shorten: bool = False) -> str:
    """How it is called; without types where it is to be short, else a line for each parameter if there are many."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    own = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
    if shorten:
        own = [each.replace(annotation=inspect.Parameter.empty) for each in own]
        return _plain(f"{name}{inspect.Signature(own)}")
    whole = _plain(f"{name}{signature.replace(parameters=own)}")
    lines = "".join(f"    {_plain(str(each))},\n" for each in own)
    return whole if len(whole) <= _WIDE else f"{name}(\n{lines})"


def _plain(signature: str) -> str:
    """Names without their modules, and arrays by what they hold."""
    short = re.sub(r"(?:[a-z_]\w*\.)+(?=[A-Za-z_])|<factory>", "", signature)
    return re.sub(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[(\w+)\]\]", r"NDArray[\1]", short)


def _written(docstring: str) -> str:
    """A docstring as Markdown: stars and brackets of equations stay what they are, and examples keep their prompt."""
    text = re.sub(r"^(>>> .+(?:\n(?!\n).+)*)", r"```pycon\n\1\n```", docstring, flags=re.MULTILINE)
    return re.sub(r"(```.*?```|`[^`]+`)|([*<\[])", lambda found: found[1] or f"\\{found[2]}", text, flags=re.DOTALL)
