"""The package on the page of extending, laid out as if it were installed, and every command of the page."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from tests.docs import DOCS, blocks

PAGE = (DOCS / "extending.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```\w+\n# (\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))

#: All commands of a file in one process.
DRIVER = """
from pathlib import Path
from unveil.cli.main import app
for line in Path("commands.txt").read_text().splitlines():
    app(line.split(chr(9)), standalone_mode=False)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, its entry points, and a log in its format."""
    folder = tmp_path_factory.mktemp("shop")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    project = tomllib.loads(FILES["pyproject.toml"])["project"]
    about = folder / f"{project['name']}-{project['version']}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = (f"[{group}]\n" + _assigned(points) for group, points in project["entry-points"].items())
    (about / "entry_points.txt").write_text("\n".join(groups))
    (folder / "visits.log").write_text("\n".join(_visits()) + "\n")
    return folder


def _assigned(points: dict[str, str]) -> str:
    return "".join(f"{name} = {place}\n" for name, place in points.items())


def _visits() -> list[str]:
    rng = np.random.default_rng(0)
    return [
        f"2024-05-{1 + place:02d}T12:{user:02d}:00Z visitor={user} sku=B{item:03d}"
        for user in range(40)
        for place, item in enumerate(rng.permutation(30)[: 4 + user % 8])
    ]


def test_the_page_has_a_file_of_every_kind() -> None:
    groups = tomllib.loads(FILES["pyproject.toml"])["project"]["entry-points"]
    assert set(groups) == {f"unveil.{kind}" for kind in ("estimators", "propensities", "metrics", "models", "formats")}
    places = {
        place.partition(":")[0].replace(".", "/") + ".py" for points in groups.values() for place in points.values()
    }
    assert places == set(FILES) - {"pyproject.toml"}


def test_a_new_estimator_has_twenty_lines() -> None:
    assert len([line for line in FILES["shop/gentle.py"].splitlines() if line.strip()]) <= 20


def test_every_command_of_the_page_works(installed: Path) -> None:
    (shell,) = (block.body for block in blocks(PAGE) if block.language == "sh")
    lines = [shlex.split(line)[1:] for line in shell.splitlines()]
    shorter = [[*words, "--set", "training.epochs=2"] if words[0] == "train" else words for words in lines]
    (installed / "commands.txt").write_text("\n".join("\t".join(words) for words in shorter))
    places = os.pathsep.join([str(installed), *sys.path])
    environment = {**os.environ, "PYTHONPATH": places, "COLUMNS": "120"}
    command = [sys.executable, "-c", DRIVER]
    done = subprocess.run(command, cwd=installed, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    assert "40" in done.stdout
    assert "ShopPrecision@10" in done.stdout
    for name, setting in (("gentle", "shop-gentle"), ("power", "shop-power-law"), ("pool", "shop-pool")):
        assert setting in (installed / "runs" / name / "config.json").read_text()
