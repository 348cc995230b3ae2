"""What measured slopes say of a log and a catalogue that nobody has measured, every step of the arithmetic shown.

    python -m benchmarks.estimate slopes.json [--users 1e8] [--items 1e7] [--events 20] [--write docs/scale.md]

`slopes.json` is what `python -m benchmarks.slopes` wrote. Straight lines are drawn far beyond what was measured: the
result is an order of magnitude, and says what has to change, not what will be. `--write` puts the table of slopes and
the estimate into a page, between the lines `<!-- slopes -->` and `<!-- /slopes -->`, `<!-- estimate -->` likewise.
"""

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.jobs import HIDDEN, ROWS
from benchmarks.slopes import Growth, table
from unveil.data.packed.log import RANGE

#: Told in the page on scale: of a packed log on disk, and of training on it, in bytes.
ON_DISK, A_USER = 28, 150
#: Rows of a batch on many machines.
MANY_ROWS = 8192


@dataclass(frozen=True)
class Figures:
    """Straight lines through measured figures."""

    growths: Sequence[Growth]
    middle: dict[str, dict[str, int]]

    @classmethod
    def read(cls, path: Path) -> "Figures":
        kept = json.loads(path.read_text())
        names = ("job", "dimension", "sizes", "seconds", "mib")
        growths = [Growth(**{name: growth[name] for name in names}) for growth in kept["growths"]]
        return cls(growths, kept["middle"])

    def seconds(self, job: str, dimension: str) -> tuple[float, float]:
        """Without any, and for each."""
        return self._growth(job, dimension).line("seconds")

    def bytes(self, job: str, dimension: str) -> float:
        """For each."""
        return self._growth(job, dimension).line("mib")[1] * 2**20

    def _growth(self, job: str, dimension: str) -> Growth:
        return next(growth for growth in self.growths if (growth.job, growth.dimension) == (job, dimension))


@dataclass(frozen=True)
class Asked:
    """The sizes that the estimate is for."""

    users: float
    items: float
    each: float  # events of a user

    @property
    def events(self) -> float:
        return self.users * self.each


Line = tuple[str, str, str]


def estimate(figures: Figures, asked: Asked) -> list[Line]:
    """What, by which arithmetic, and how much."""
    return [*_packing(figures, asked), *_training(figures, asked), *_using(figures, asked)]


def _packing(figures: Figures, asked: Asked) -> list[Line]:
    length = figures.middle["pack"]["length"]
    event, again = (figures.seconds(job, "users")[1] / length for job in ("pack", "pass"))
    passes, name = asked.events / RANGE, figures.bytes("ids", "users")
    ids = name * (asked.users + asked.items)
    return [
        ("events", f"{_n(asked.users)} users × {asked.each:g} events", _n(asked.events)),
        ("packed log on disk", f"{_n(asked.events)} × {ON_DISK} bytes", _bytes(asked.events * ON_DISK)),
        ("pack: one pass", f"{_n(asked.events)} × {_s(event)}", _s(asked.events * event)),
        (
            "pack: histories, 4 M events per pass",
            f"{_n(asked.events)} / {_n(RANGE)} = {passes:,.0f} passes × {_n(asked.events)} × {_s(again)}",
            _s(passes * asked.events * again),
        ),
        ("pack: ids as text, in memory", f"({_n(asked.users)} + {_n(asked.items)}) × {name:,.0f} bytes", _bytes(ids)),
    ]


def _training(figures: Figures, asked: Asked) -> list[Line]:
    middle = figures.middle["step"]
    slots, events = ROWS * middle["length"] * HIDDEN, ROWS * middle["length"]
    rest, all_items = figures.seconds("step", "items")
    _, update = figures.seconds("sampled", "items")
    softmax, body = max(all_items - update, 0.0) / slots, max(rest, 0.0) / events
    hidden, steps = asked.events * HIDDEN, asked.users / MANY_ROWS
    item, width = figures.bytes("step", "items"), middle["width"]
    gradient = 4 * asked.items * width
    return [
        (
            "train: embeddings, gradient, both moments",
            f"{_n(asked.items)} × {item:,.0f} bytes",
            _bytes(asked.items * item),
        ),
        (
            "train: row offsets and masks",
            f"{_n(asked.users)} × {A_USER} bytes + {_n(asked.events)} bits",
            _bytes(asked.users * A_USER + asked.events / 8),
        ),
        ("epoch: network without the softmax", f"{_n(asked.events)} events × {_s(body)}", _s(asked.events * body)),
        (
            "epoch: softmax over all items",
            f"{_n(asked.events)} × {HIDDEN:g} = {_n(hidden)} slots × {_n(asked.items)} × {_s(softmax)}",
            _s(hidden * asked.items * softmax),
        ),
        (
            f"epoch: update of all embeddings, batches of {ROWS}",
            f"{_n(asked.users)} / {ROWS} steps × {_n(asked.items)} × {_s(update)}",
            _s(asked.users / ROWS * asked.items * update),
        ),
        (
            f"epoch: the same, batches of {MANY_ROWS:,}",
            f"{_n(asked.users)} / {MANY_ROWS:,} = {steps:,.0f} steps × {_n(asked.items)} × {_s(update)}",
            _s(steps * asked.items * update),
        ),
        ("workers: gradient sent per step", f"4 bytes × {_n(asked.items)} × width {width}", _bytes(gradient)),
        (
            f"workers: communication per epoch at 10 Gbit/s, batches of {MANY_ROWS:,}",
            f"{steps:,.0f} steps × 2 × {_bytes(gradient)} / 1.25 GB/s",
            _s(steps * 2 * gradient / 1.25e9),
        ),
    ]


def _using(figures: Figures, asked: Asked) -> list[Line]:
    cases = figures.middle["rank"]["users"]
    pair, case = figures.seconds("rank", "items")[1] / cases, figures.bytes("cases", "users")
    request, item, user = (
        figures.seconds("serve", "items")[1],
        figures.bytes("serve", "items"),
        figures.bytes("serve", "users"),
    )
    events = figures.middle["serve"]["length"] + 2
    return [
        (
            "rank all items for all users",
            f"{_n(asked.users)} × {_n(asked.items)} × {_s(pair)}",
            _s(asked.users * asked.items * pair),
        ),
        ("rank: results in memory", f"{_n(asked.users)} cases × {case:,.0f} bytes", _bytes(asked.users * case)),
        ("serve: one request", f"{_n(asked.items)} × {_s(request)}", _s(asked.items * request)),
        ("serve: items in memory", f"{_n(asked.items)} × {item:,.0f} bytes", _bytes(asked.items * item)),
        (
            "serve: users and their histories in memory",
            f"{_n(asked.users)} × {user:,.0f} bytes of {events} events each × {asked.each:g} / {events}",
            _bytes(asked.users * user * asked.each / events),
        ),
    ]


def shown(lines: Sequence[Line]) -> list[str]:
    """As a table."""
    rows = [f"| {what} | {arithmetic} | {result} |" for what, arithmetic, result in lines]
    return ["| what | arithmetic | result |", "|---|---|---|", *rows]


def _n(count: float) -> str:
    """A count in few letters."""
    for size, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g} {name}"
    return f"{count:.3g}"


def _bytes(count: float) -> str:
    for size, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(count) >= size:
            return f"{count / size:.3g} {name}"
    return f"{count:.3g} bytes"


def _s(seconds: float) -> str:
    """A time in the unit that suits it."""
    units = ((31_557_600.0, "years"), (86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "s"))
    for size, name in (*units, (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")):
        if abs(seconds) >= size:
            return f"{seconds / size:.3g} {name}"
    return f"{seconds * 1e12:.3g} ps"


def replaced(page: str, name: str, lines: Sequence[str]) -> str:
    """The page with other lines between the two marks of that name."""
    between = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
    if not between.search(page):
        raise SystemExit(f"the page has no place for {name}: <!-- {name} --> … <!-- /{name} -->")
    return between.sub(lambda marks: marks[1] + "\n".join(lines) + marks[2], page)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("slopes", type=Path)
    parser.add_argument("--users", type=float, default=1e8)
    parser.add_argument("--items", type=float, default=1e7)
    parser.add_argument("--events", type=float, default=20)
    parser.add_argument("--write", type=Path, metavar="PAGE")
    options = parser.parse_args()
    figures = Figures.read(options.slopes)
    parts: dict[str, Any] = {
        "slopes": table(figures.growths),
        "estimate": shown(estimate(figures, Asked(options.users, options.items, options.events))),
    }
    if options.write:
        page = options.write.read_text()
        for name, lines in parts.items():
            page = replaced(page, name, lines)
        options.write.write_text(page)
    for lines in parts.values():
        print(*lines, "", sep="\n")


if __name__ == "__main__":
    main()
