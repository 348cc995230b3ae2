"""Every error message, read from the source: by folder, each with what to do."""

import ast
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

_HEAD = """# Every message

All error messages, by the folder of the package that raises them. `…` stands for what differs from case to case. A
message starts with the place and ends with what to do; [Troubleshooting](troubleshooting.md) has common ones by task.

"""

_FOLDERS = {
    "data": "Reading logs",
    "propensity": "Propensities",
    "estimators": "Estimators",
    "models": "Networks",
    "training": "Training",
    "evaluation": "Evaluation",
    "simulation": "Worlds and loops",
    "audit": "Audit",
    "runs": "Settings, runs and tuning",
    "studies": "Studies",
    "report": "Reports",
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
    found = by_folder(source)
    parts = [f"## {title}\n\n{_table(found[folder])}" for folder, title in _FOLDERS.items() if found[folder]]
    return _HEAD + "\n\n".join([*parts, f"## Everywhere\n\n{_table(found['unveil'])}"]) + "\n"


def by_folder(source: Path) -> dict[str, set[Message]]:
    """All messages, by folder of the package; `unveil` for modules at the top level."""
    found: dict[str, set[Message]] = defaultdict(set)
    for path in sorted((source / "unveil").rglob("*.py")):
        inside = path.relative_to(source / "unveil").parts
        found[inside[0] if len(inside) > 1 else "unveil"] |= in_text(path.read_text(encoding="utf-8"))
    return found


def in_text(source: str) -> set[Message]:
    """The messages of one module."""
    nodes = list(ast.walk(ast.parse(source)))
    said = _Said([node for node in nodes if isinstance(node, ast.Assign)])
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    return {message for call in calls if (message := _message(call, said)) is not None}


def _message(call: ast.Call, said: "_Said") -> Message | None:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if name == "check_range":
        return Message("out of range", said.by(call.args[-1]))
    if name not in ("UnveilError", "TemporaryError", "unknown") or not call.args:
        return None
    problem = said.by(call.args[0])
    if name == "unknown":
        return Message(f"unknown {problem}", "one of those it lists", "Take the name it suggests.")
    named = {word.arg: said.by(word.value) for word in call.keywords}
    return Message(problem, named.get("expected", ""), named.get("hint", "")) if problem else None


class _Said:
    """Texts as far as the source says them; what is filled in later is `…`, and nothing but that is no text."""

    def __init__(self, assignments: list[ast.Assign]) -> None:
        self._assignments = sorted(assignments, key=lambda each: each.lineno)

    def by(self, node: ast.expr) -> str:
        text = self._text(node)
        return text if any(letter.isalpha() for letter in text) else ""

    def _text(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else ""
        if isinstance(node, ast.JoinedStr):
            return "".join(self._text(part) if isinstance(part, ast.Constant) else "…" for part in node.values)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._text(node.left) + self._text(node.right)
        return self._assigned(node) if isinstance(node, ast.Name) else "…"

    def _assigned(self, name: ast.Name) -> str:
        """What a name was last given, in the lines above."""
        above = [pair for each in self._assignments if each.lineno < name.lineno for pair in _pairs(each)]
        given = [value for target, value in above if ast.unparse(target) == name.id]
        return self._text(given[-1]) if given and not isinstance(given[-1], ast.Name) else "…"


def _pairs(assignment: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    """Targets and values; `a, b = "x", "y"` gives two."""
    (target,), value = assignment.targets[:1], assignment.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=False))
    return [(target, value)]


def _table(found: set[Message]) -> str:
    rows = [f"| {_cell(m.problem)} | {_cell(m.expected)} | {_cell(m.hint)} |" for m in sorted(found)]
    return "\n".join(["| message | expected | what to do |", "|---|---|---|", *rows])


def _cell(text: str) -> str:
    for special in ("\\", "|", "*", "<", "["):
        text = text.replace(special, f"\\{special}")
    return text.replace("\n", " ").replace("--", "&#45;&#45;")
