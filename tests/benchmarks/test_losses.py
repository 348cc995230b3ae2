"""The benchmark of the losses, at a size that takes seconds."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_estimator_is_measured_against_naive() -> None:
    small = ["--items=60", "--slots=40", "--turns=1", "--estimators=corrected,wmf-distilled-rated,naive-sampled"]
    command = [sys.executable, "-m", "benchmarks.losses", *small]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:-1]] == ["naive", "corrected", "wmf-distilled-rated", "naive-sampled"]
    figures = dict(figure.split("=") for figure in lines[-1].split())
    assert list(figures) == ["corrected_vs_naive", "wmf-distilled-rated_vs_naive", "naive-sampled_vs_naive", "peak_mib"]
    assert all(float(value) >= 0 for value in figures.values())
