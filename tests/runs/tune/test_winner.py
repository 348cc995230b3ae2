from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unveil.runs.config import Experiment, as_toml

CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "model.width": st.sampled_from([8, 64]),
        "model.name": st.sampled_from(["bert4rec", "sasrec", "gru4rec"]),
        "training.lr": st.floats(1e-7, 1.0),
        "training.patience": st.none() | st.integers(1, 9),
        "training.clip": st.none() | st.floats(0.1, 9.0),
        "evaluation.uniform": st.none() | st.integers(0, 9),
        "estimator.name": st.sampled_from(["naive", "itps"]),
        "data.columns": st.sampled_from([{}, {"user": 'the "user"', "item": "ärtikel\n"}]),
        "data.log": st.sampled_from(["log.csv", "C:\\logs\\log.csv"]),
    },
)


@pytest.mark.parametrize("preset", ["quick", "paper", "converged"])
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=CHANGES)
def test_what_is_written_is_read_back(preset: str, changes: dict[str, object], tmp_path: Path) -> None:
    experiment = Experiment.of(preset, changes)
    path = tmp_path / "best.toml"
    path.write_text(as_toml(experiment, "The best.\n\nOf all."), encoding="utf-8")
    assert Experiment.of(path) == experiment
    assert path.read_text().startswith("# The best.\n#\n# Of all.\n")


def test_passwords_are_left_out() -> None:
    experiment = Experiment.of("quick", {"data.log": "postgresql://me:secret@host/logs"})
    assert "secret" not in as_toml(experiment, "")
