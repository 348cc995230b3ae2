"""Every message that a user's mistake can bring, read off the source: by room, each with what it tells to do."""

import ast
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

_HEAD = """# Every message

What the program says when it refuses something, by the room of the package that says it. `…` stands for what differs
from case to case. A message names the place first and ends with what to do; [Trouble](troubleshooting.md) groups them
by what you were doing.

"""

_ROOMS = {
    "data": "Reading logs",
    "propensity": "Propensities",
    "estimators": "Estimators",
    "models": "Networks",
    "training": "Training",
    "evaluation": "Judging",
    "simulation": "Worlds and loops",
    "audit": "Audit",
    "experiment": "Settings, runs, reports and questions",
    "serving": "Recommending, exporting, serving",
    "cli": "The command line",
}


@dataclass(frozen=True, order=True)
class Message:
    """What was wrong, what was expected, what to do."""

    problem: str
    expected: str = ""
    hint: str = ""


def messages(source: Path) -> str:
    """The page."""
    found = by_room(source)
    parts = [f"## {title}\n\n{_table(found[room])}" for room, title in _ROOMS.items() if found[room]]
    return _HEAD + "\n\n".join([*parts, f"## Everywhere\n\n{_table(found['unveil'])}"]) + "\n"


def by_room(source: Path) -> dict[str, set[Message]]:
    """All messages, by the folder of the package that holds them; `unveil` for those that stand above all rooms."""
    found: dict[str, set[Message]] = defaultdict(set)
    for path in sorted((source / "unveil").rglob("*.py")):
        inside = path.relative_to(source / "unveil").parts
        found[inside[0] if len(inside) > 1 else "unveil"] |= in_text(path.read_text(encoding="utf-8"))
    return found


def in_text(source: str) -> set[Message]:
    """The messages of one module."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return {message for call in calls if (message := _message(call)) is not None}


def _message(call: ast.Call) -> Message | None:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if name not in ("UnveilError", "unknown") or not call.args:
        return None
    problem = _text(call.args[0])
    named = {word.arg: _text(word.value) for word in call.keywords}
    if problem.strip("… ") == "":
        return None
    if name == "unknown":
        return Message(f"unknown {problem}", "one of those it lists", "Take the name it suggests.")
    return Message(problem, named.get("expected", "").strip("…"), named.get("hint", "").strip("…"))


def _text(node: ast.expr) -> str:
    """A text as far as the source says it; what is filled in later is `…`."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else "…" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    return "…"


def _table(found: set[Message]) -> str:
    rows = [f"| {_cell(m.problem)} | {_cell(m.expected)} | {_cell(m.hint)} |" for m in sorted(found)]
    return "\n".join(["| message | expected | what to do |", "|---|---|---|", *rows])


def _cell(text: str) -> str:
    for special in ("\\", "|", "*", "<", "["):
        text = text.replace(special, f"\\{special}")
    return text.replace("\n", " ").replace("--", "&#45;&#45;")
