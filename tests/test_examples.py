import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("script", [each for each in EXAMPLES if each.stem != "tour"], ids=lambda script: script.stem)
def test_every_example_runs(script: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_there_are_examples() -> None:
    assert EXAMPLES


def test_the_tour_leaves_a_page_with_its_plots(tmp_path: Path) -> None:
    tour = next(script for script in EXAMPLES if script.stem == "tour")
    command = [sys.executable, str(tour), "--users", "60", "--epochs", "1"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, timeout=900)
    page = (tmp_path / "tour" / "index.html").read_text(encoding="utf-8")
    plots = re.findall(r'src="([^"]+)"', page)
    assert len(plots) == 4
    assert all((tmp_path / "tour" / plot).stat().st_size > 1000 for plot in plots)
    assert (tmp_path / "tour" / "export" / "model.onnx").exists()
