"""Figure 1 as files: results.json and items.csv for programs, a page and a reading for people."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unveil.audit.timing import ALPHA, LEAST
from unveil.experiment.fig1.page import fig1_page, samples
from unveil.experiment.fig1.run import Fig1
from unveil.experiment.fig1.words import caution, reading
from unveil.files import write_json, write_whole
from unveil.report.page import write_page


def write(found: Fig1, folder: Path, command: Sequence[str]) -> None:
    """Every file. The same log gives the same bytes."""
    told = shlex.join(command)
    write_whole(folder / "items.csv", found.table().write_csv())
    write_page(fig1_page(found, told), folder / "index.html")
    paragraphs = (*reading(found), caution(found))
    write_whole(folder / "README.md", "\n\n".join(["# When items are taken", *paragraphs, f"```\n{told}\n```"]) + "\n")
    write_json(folder / "results.json", results(found, told))


def results(found: Fig1, command: str) -> dict[str, Any]:
    """All that was found."""
    families = {
        "random_order": found.order,
        "random_order_mean": found.mean,
        "ties_shared": found.shared,
        "static_propensity_mean": found.static,
    }
    return {
        "question": "fig1",
        "command": command,
        "data": {"fingerprint": found.log.fingerprint(), "events": len(found.sequences), "items": len(found.log.items)},
        "alpha": ALPHA,
        "least_events": LEAST,
        "tied": found.tied,
        "draws": found.draws,
        "tests": {name: None if family is None else family.plain() for name, family in families.items()},
        "dispersion": found.timing.dispersion,
        "typical_shift": found.timing.typical_shift,
        "popularity_correlation": found.by_popularity,
        "groups": [_group(found, n) for n in range(len(found.groups))],
        "pairs": [
            {**asdict(each), "first": _id(found, each.first), "second": _id(found, each.second)} for each in found.pairs
        ],
        "reading": reading(found),
    }


def _group(found: Fig1, n: int) -> dict[str, Any]:
    group = found.groups[n]
    places, shares = samples(found, group)
    return {
        "name": group.name,
        "items": [
            {
                "item_id": _id(found, item),
                "title": found.titles[item],
                "events": int(found.timing.count_V[item]),
                "steps": [place.first, place.median, place.third],
                "shares": [share.first, share.median, share.third],
                "mean_position": float(found.timing.mean_V[item]),
                "z": float(found.order.z_V[item]),
                "p_holm": float(found.order.holm_V[item]),
            }
            for item, place, share in zip(group.items, places, shares, strict=True)
        ],
    }


def _id(found: Fig1, item: int) -> str:
    return found.log.items[item]
