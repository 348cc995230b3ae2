"""What people call the arms of an experiment and its rankings, and the colour each arm has in every plot."""

import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files

_NAMES = {"ips": "IPS", "itps": "ITPS", "control": "naive − λ log popularity"}
#: A place among the page's colours, from 0, for each loss; what learns next to nothing is muted.
COLOURS: Mapping[str, int] = tomllib.loads(files("unveil.report").joinpath("theme.toml").read_text("utf-8"))["arms"]


def named(arm: str) -> str:
    """An arm as people write it; a variant with what is its own: ITPS · popularity · clip 5% · self-normalised."""
    whole, *options = arm.split("+")
    name, *propensity = whole.split("@")
    own = [_NAMES.get(each, each.replace(":", " ")) for each in propensity]
    for key, _, value in (option.partition("=") for option in options):  # one that is true by its name alone
        own.append(key.replace("_", "-") if value == "true" else f"{key} {value}")
    return " · ".join([_NAMES.get(name, name), *own])


def listed(arms: Iterable[str]) -> str:
    """Arms one after another."""
    return ", ".join(named(arm) for arm in arms)


#: The order in which metrics are read; others follow as they come.
_FIRST = ["NDCG@10", "Recall@10", "MRR@10", "NDCG@5", "Recall@5", "MRR@5"]


def in_order(metrics: Iterable[str]) -> list[str]:
    """Each metric once, the usual ones first."""
    return sorted(dict.fromkeys(metrics), key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))


def against(protocol: str) -> str:
    """What targets are ranked against: all items, 100 uniform items, 100 popular items."""
    kind, _, count = protocol.partition("-")
    return "all items" if kind == "full" else f"{count} {kind} items"
