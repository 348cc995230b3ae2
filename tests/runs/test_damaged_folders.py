"""A bit that flips in any file of a finished run: the file is named, or the results are the same to the bit."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.run_folders import Finished
from unveil.errors import UnveilError
from unveil.evaluation.result import CASES, METRICS, Evaluation
from unveil.runs import run_folder
from unveil.runs.train import evaluate

FILES = (
    *("manifest.json", "model.safetensors", "items.parquet", "users.parquet", "histories.safetensors"),
    *("exposure.safetensors", "cases.safetensors", "negatives.safetensors", METRICS, CASES),
)


@pytest.fixture
def folder(finished: Finished, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished.run.folder, tmp_path / "run"))


def flip(path: Path, rng: np.random.Generator) -> None:
    content = bytearray(path.read_bytes())
    content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_gives_the_same_results_or_names_the_file(name: str, folder: Path) -> None:
    rng, path = np.random.default_rng(len(name)), folder / name
    whole, known = path.read_bytes(), evaluate(folder).frame
    written, named = path.read_bytes(), 0
    assert whole == written
    for _ in range(8):
        flip(path, rng)
        try:
            found = evaluate(folder).frame if name not in (METRICS, CASES) else Evaluation.read(folder).frame
            assert found.equals(known)
        except UnveilError as error:
            assert name in str(error)  # noqa: PT017
            named += 1
        path.write_bytes(written)
    assert named >= 6  # a space in a header says nothing


@pytest.mark.parametrize("name", ["cases.safetensors", "negatives.safetensors"])
def test_other_cases_are_never_written_over_the_old_results(name: str, folder: Path) -> None:
    before = (folder / METRICS).read_bytes()
    content = bytearray((folder / name).read_bytes())
    content[-3] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(UnveilError, match=rf"{name}: not as it was written: changed or damaged"):
        evaluate(folder)
    assert (folder / METRICS).read_bytes() == before


def test_what_the_run_says_about_itself(folder: Path) -> None:
    about = folder / run_folder.ABOUT
    about.write_text(about.read_text().replace('"interactions": ', '"interactions": 1'))
    with pytest.raises(UnveilError, match=r"about\.json: not as it was written"):
        run_folder.read_run(folder)
