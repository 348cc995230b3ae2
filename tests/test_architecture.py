"""The arrows of the house: which room may import which, and what may not be loaded before it is needed."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "unveil"

GROUND = {"checksums", "errors", "files", "processes", "registry", "settings", "wording", "__init__"}
DATA = GROUND | {"data"}
PROPENSITY = DATA | {"propensity"}
ESTIMATORS = PROPENSITY | {"estimators"}
MODELS = PROPENSITY | {"models"}
MIDDLE = ESTIMATORS | MODELS
TRUTH = MODELS | {"simulation"}
USE = MIDDLE | TRUTH | {"training", "evaluation"}
RUNS = USE | {"simulation.feedback", "simulation.theory", "serving", "audit", "report", "runs"}

#: What trains or evaluates losses in worlds: a floor above the rest of its room.
UPSTAIRS = ("simulation.feedback", "simulation.theory")

#: room → the rooms it may import.
ARROWS = {
    "errors": set(),
    "wording": set(),
    "processes": set(),
    "checksums": {"errors"},
    "files": {"errors", "__init__"},
    "registry": {"errors"},
    "settings": {"errors"},
    "__main__": {"cli"},
    "__init__": MIDDLE | {"simulation", "training", "evaluation", "serving", "runs"},  # the front door
    "data": DATA,
    "propensity": PROPENSITY,
    "estimators": ESTIMATORS,
    "models": MODELS,
    "simulation": TRUTH,
    "training": MIDDLE | {"training", "evaluation"},
    "evaluation": MIDDLE | {"evaluation"},
    **dict.fromkeys(UPSTAIRS, USE),
    "serving": USE | {"serving"},
    "audit": USE | {"audit", "report"},
    "report": GROUND | {"report"},
    "runs": RUNS,
    "studies": RUNS | {"studies"},
    "cli": RUNS | {"studies", "cli"},
}


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield ".".join(path.relative_to(SOURCE).with_suffix("").parts), path


def imports(path: Path) -> Iterator[str]:
    """Every module of the package that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute here"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room(module: str) -> str:
    parts = module.split(".")
    return upper if (upper := ".".join(parts[:2])) in UPSTAIRS else parts[0]


def test_imports_point_downward() -> None:
    rooms = {entry.name.removesuffix(".py") for entry in SOURCE.iterdir()}
    for module, path in modules():
        for imported in imports(path):
            inside = imported.removeprefix("unveil.")
            if imported.startswith("unveil.") and inside.split(".")[0] in rooms:
                assert room(inside) in ARROWS[room(module)] | {room(module)}, f"{module} may not import {imported}"


def test_tensors_enter_data_with_the_batches() -> None:
    users = {module for module, path in modules() if room(module) == "data" and "torch" in set(imports(path))}
    assert users <= {"data.batches", "data.slots"}


@pytest.mark.parametrize("command", ["import unveil", "import unveil.cli.main"])
def test_nothing_heavy_is_loaded_before_it_is_needed(command: str) -> None:
    heavy = "{'torch', 'polars', 'scipy', 'matplotlib', 'sqlalchemy', 'numpy', 'pydantic'}"
    check = f"{command}; import sys; loaded = {heavy} & set(sys.modules); assert not loaded, loaded"
    subprocess.run([sys.executable, "-c", check], check=True)


def test_the_test_of_the_arrows_can_fail() -> None:
    assert "models" not in ARROWS["estimators"]
    assert "estimators" not in ARROWS["models"]
    assert "studies" not in ARROWS["data"]


def test_the_front_door_leads_where_it_says() -> None:
    import unveil

    typed = {name.rsplit(".", 1)[1] for name in imports(SOURCE / "__init__.py") if name.count(".") > 2}
    typed |= {"UnveilError", "UnveilWarning"}
    assert typed == set(dir(unveil)) - {"__version__"}
    for name in dir(unveil):
        assert getattr(unveil, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = unveil.nothing
