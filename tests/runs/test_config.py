import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unveil.errors import UnveilError
from unveil.runs.config import EvaluationConfig, Experiment, as_toml
from unveil.settings import built, plain
from unveil.training.recipe import Recipe


def toml(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_preset_is_a_name_and_a_config_is_a_path(tmp_path: Path) -> None:
    assert Experiment.of("paper").model.head == "untied"
    config = toml(tmp_path / "run.toml", "[model]\nwidth = 12\n[data]\nmin_item = 5\n")
    experiment = Experiment.of(config)
    assert (experiment.model.width, experiment.data.min_item) == (12, 5)
    assert experiment.training == Experiment().training


def test_a_config_extends_a_preset_or_another_file_and_the_last_to_speak_decides(tmp_path: Path) -> None:
    toml(tmp_path / "ground" / "base.toml", 'extends = "paper"\n[model]\nwidth = 24\nblocks = 3\n')
    top = toml(tmp_path / "top.toml", 'extends = "ground/base.toml"\n[model]\nblocks = 4\n')
    model = Experiment.of(top, {"model.dropout": 0.5}).model
    assert (model.width, model.blocks, model.dropout, model.head) == (24, 4, 0.5, "untied")


def test_a_preset_is_that_of_the_network_that_is_named_last(tmp_path: Path) -> None:
    config = toml(tmp_path / "run.toml", 'extends = "converged"\n[model]\nname = "sasrec"\nwidth = 32\n')
    assert Experiment.of(config).recipe == Recipe.preset("converged", "sasrec").changed({"model.width": 32})
    assert Experiment.of("converged", {"model.name": "gru4rec"}).recipe == Recipe.preset("converged", "gru4rec")


def test_the_command_line_wins_over_the_config(tmp_path: Path) -> None:
    config = toml(
        tmp_path / "run.toml", '[data]\nmin_item = 5\nrepeats = "last"\n[data.columns]\nuser = "a"\nitem = "b"\n'
    )
    data = Experiment.of(config, {"data.min_item": 0, "data.columns": {"user": "c"}}).data
    assert (data.min_item, data.repeats, data.columns) == (0, "last", {"user": "c", "item": "b"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[model]\nwidht = 3", r"run\.toml: unknown setting: found 'model\.widht'.* Did you mean 'model\.width'\?"),
        ("[modle]\nwidth = 3", r"run\.toml: unknown setting: found 'modle\.width', expected one of model, task"),
        ("[model]\nwidth = 'wide'", r"run\.toml, model\.width: not a valid value: found 'wide'"),
        ("[model\nwidth = 3", r"run\.toml: not TOML: .*line 1"),
        (
            "extends = 'qiuck'",
            r"unknown preset: found 'qiuck', expected one of auto, quick, paper, converged\. Did you mean",
        ),
        ("extends = 3", r"run\.toml, extends: not a name: found 3, expected a TOML file or a preset"),
        ('extends = "a\\u0000.toml"', r"run\.toml, extends: not a name"),
        (f"epochs = {'[' * 5_000}", r"run\.toml: not TOML: maximum recursion depth"),
        ("extends = 'gone.toml'", r"gone\.toml: no such config"),
        ("extends = 'run.toml'", r"run\.toml: configs extend each other in a circle"),
        ("extends = './here/../run.toml'", r"run\.toml: configs extend each other in a circle"),
        ("[estimator]\nname = 'itsp'", r"unknown estimator: found 'itsp'.* Did you mean 'itps'\?"),
        ("[propensity]\nname = 'popularity'", r"unknown propensity: found 'popularity'.* Did you mean 'popularity-"),
        ("[evaluation]\nuniform = -1", r"evaluation\.uniform: out of range: found -1, expected 0 or more"),
        ("[evaluation]\nvalidation = 'uniform'", r"evaluation\.validation: no such ranking: found 'uniform'"),
    ],
)
def test_what_is_wrong_in_a_config_is_named(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    with pytest.raises(UnveilError, match=message):
        Experiment.of(toml(tmp_path / "run.toml", text))


def test_a_circle_of_three_is_seen(tmp_path: Path) -> None:
    for name, next_ in (("a", "b"), ("b", "c"), ("c", "a")):
        toml(tmp_path / f"{name}.toml", f'extends = "{next_}.toml"')
    with pytest.raises(UnveilError, match="in a circle"):
        Experiment.of(tmp_path / "a.toml")


def test_what_is_no_config_file(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="cannot be read: Is a directory"):
        Experiment.of(tmp_path)
    (tmp_path / "latin.toml").write_bytes('[data]\nlog = "é"'.encode("latin-1"))
    with pytest.raises(UnveilError, match="not TOML"):
        Experiment.of(tmp_path / "latin.toml")
    with pytest.raises(UnveilError, match="unknown preset"):
        Experiment.of("run.toml")


def test_the_recipe_is_what_decides_what_is_learnt() -> None:
    recipe = Experiment.of("paper").recipe
    assert type(recipe) is Recipe
    assert recipe == Recipe.preset("paper")


def test_the_number_of_negatives_may_be_left_open() -> None:
    assert EvaluationConfig().uniform is None
    assert EvaluationConfig(uniform=0).uniform == 0


changes = st.fixed_dictionaries(
    {},
    optional={
        "model.width": st.integers(1, 64).map(lambda n: 2 * n),
        "model.attention_dropout": st.none() | st.floats(0, 0.9),
        "training.lr": st.floats(1e-6, 1),
        "training.patience": st.none() | st.integers(1, 50),
        "training.betas": st.tuples(st.floats(0, 0.99), st.floats(0, 0.99)),
        "estimator.name": st.sampled_from(["naive", "ips", "itps", "ideal"]),
        "data.log": st.text(),
        "data.columns": st.dictionaries(st.sampled_from(["user", "item"]), st.text(min_size=1), min_size=1),
        "evaluation.uniform": st.none() | st.integers(0, 500),
    },
)


@given(changes)
def test_written_as_json_and_read_back_it_is_the_same(settings: dict[str, Any]) -> None:
    experiment = Experiment.of("quick", settings)
    assert built(Experiment, json.loads(json.dumps(plain(experiment)))) == experiment


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
def test_what_is_written_as_toml_is_read_back(preset: str, changes: dict[str, object], tmp_path: Path) -> None:
    experiment = Experiment.of(preset, changes)
    path = tmp_path / "best.toml"
    path.write_text(as_toml(experiment, "The best.\n\nOf all."), encoding="utf-8")
    assert Experiment.of(path) == experiment
    assert path.read_text().startswith("# The best.\n#\n# Of all.\n")


def test_passwords_are_left_out() -> None:
    experiment = Experiment.of("quick", {"data.log": "postgresql://me:secret@host/logs"})
    assert "secret" not in as_toml(experiment, "")
