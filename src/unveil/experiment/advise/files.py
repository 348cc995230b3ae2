"""The advice as files: a config to train with, a page, a reading, and every figure."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

from unveil.data.sequences import Sequences
from unveil.data.splits import leave_one_out
from unveil.evaluation.statistics import Paired
from unveil.experiment.advise.gains import mean_over_strata
from unveil.experiment.advise.judged import BESIDE, HEADLINE, Advice
from unveil.experiment.advise.page import page, sheets
from unveil.experiment.advise.words import TITLE, caution, reading
from unveil.experiment.outcome import BASE
from unveil.experiment.reproduce.files import as_csv
from unveil.experiment.reproduce.reading import markdown
from unveil.files import versions, write_json, write_whole
from unveil.report.page import write_page
from unveil.runs.config import Experiment, as_toml
from unveil.runs.progress import spell
from unveil.settings import plain
from unveil.studies.trial import resolved

CONFIG = "advice.toml"


def write(advice: Advice, folder: Path, command: Sequence[str]) -> None:
    """Every file. The same cells give the same bytes, but for about.json and the time in README.md."""
    typed, step = shlex.join(command), next_step(advice, folder)
    told = results(advice, typed)
    write_whole(folder / CONFIG, as_toml(experiment(advice), _head(advice, typed)))
    write_whole(folder / "results.csv", as_csv(told["rows"]))
    write_page(page(advice, typed, step), folder / "index.html")
    paragraphs = [*reading(advice), caution(advice), f"Next: `{step}`"]
    write_whole(folder / "README.md", markdown(TITLE, paragraphs, sheets(advice), typed, _made(advice)))
    write_json(folder / "about.json", _about(advice, typed))
    write_json(folder / "results.json", told)


def next_step(advice: Advice, folder: Path) -> str:
    """The command that trains as advised."""
    return shlex.join(["unveil", "train", advice.tried.plan.source.log, "--config", str(folder / CONFIG), "-o", "run"])


def experiment(advice: Advice) -> Experiment:
    """The run that is advised: the log as it was read, the preset, the chosen arm. A clip is a number of this log's."""
    plan = advice.tried.plan
    recipe = plan.study.recipe(advice.decision.chosen, plan.study.seed)
    data = {f"data.{name}": value for name, value in vars(plan.source).items()}
    parts = {name: plain(recipe)[name] for name in ("model", "task", "training")}
    found = Experiment.of(plan.study.preset, parts | data).changed(
        {"training.device": "auto", "training.threads": None}
    )
    own = resolved_on_the_log(advice)
    changes = {f"estimator.{name}": value for name, value in own["estimator"].items()}
    changes |= {f"propensity.{name}": value for name, value in own["propensity"].items()}
    return found.changed(changes)


def resolved_on_the_log(advice: Advice) -> dict[str, dict[str, Any]]:
    """Estimator and propensity of the chosen arm, with a clip that is a share of the events made a number."""
    plan = advice.tried.plan
    recipe = plan.study.recipe(advice.decision.chosen, plan.study.seed)
    log = plan.source.load()
    recipe = resolved(recipe, leave_one_out(Sequences.of(log)).train, log)
    return {"estimator": recipe.estimator, "propensity": recipe.propensity}


def _head(advice: Advice, command: str) -> str:
    return "\n".join([reading(advice)[0], "", f"Written by: {command}", "Given to: unveil train LOG --config"])


def results(advice: Advice, command: str) -> dict[str, Any]:
    """All that was found. Nothing in it depends on the clock."""
    tried, decision = advice.tried, advice.decision
    arm, gain = advice.ceiling()
    return {
        "question": "advise",
        "title": TITLE,
        "command": command,
        "preset": tried.plan.study.preset,
        "replicates": tried.plan.replicates,
        "worlds": tried.plan.worlds,
        "data": {"name": tried.plan.source.log, "fingerprint": tried.fingerprint, "about": tried.log},
        "study": plain(tried.plan.study),
        "scenarios": [asdict(scenario) for scenario in advice.scenarios],
        "headline": HEADLINE._asdict(),
        "advice": {
            "chosen": decision.chosen,
            "why": decision.why,
            "robust": decision.robust,
            "highest_mean": decision.best,
            "gain": _paired(decision.gain.mean),
            "gain_on_draws_left_out": decision.followed,
            "share_of_the_gap": advice.share(decision.chosen),
        },
        "ceiling": {"estimator": arm, "gain": gain},
        "refused": dict(tried.refused),
        "looks": {"log": asdict(tried.looks)} | {each.key: asdict(advice.looks(each)) for each in advice.scenarios},
        "rows": [_row(advice, each) for each in tried.candidates.arms],
    }


def _row(advice: Advice, arm: str) -> dict[str, Any]:
    """One row for each arm; gains in each scenario by its key."""
    gain = advice.decision.gains.get(arm)
    mean = gain.mean if gain is not None else mean_over_strata(advice.value[arm] - advice.value[BASE])
    of_scenario = (advice.value[arm] - advice.value[BASE]).mean(axis=(1, 2)).tolist()
    told = _paired(mean)
    return {
        "estimator": arm,
        "usable": gain is not None,
        "mean": advice.mean(arm),
        "recall": advice.mean(arm, BESIDE),
        "gain": told["difference"],
        "gain_low": told["low"],
        "gain_high": told["high"],
        "p": told["p"] if gain is not None else None,
        "largest_regret": None if gain is None else gain.largest_regret,
        "share_of_the_gap": advice.share(arm),
        **{f"gain:{scenario.key}": each for scenario, each in zip(advice.scenarios, of_scenario, strict=True)},
    }


def _paired(found: Paired) -> dict[str, float | None]:
    return {name: value if isfinite(value) else None for name, value in vars(found).items()}


def _about(advice: Advice, command: str) -> dict[str, Any]:
    tried = advice.tried
    return {
        "command": command,
        "versions": versions(),
        "seconds": round(tried.seconds, 1),
        "cells_made": tried.made,
        "cells": len(tried.cells),
        "worker_seconds": round(tried.worker_seconds, 1),
        "worlds": [world["origin"] for world in tried.worlds],
    }


def _made(advice: Advice) -> str:
    tried = advice.tried
    last = f"; the last run took {spell(tried.seconds)} and made {tried.made} of them" if tried.made else ""
    return (
        f"{len(tried.cells)} trainings, {spell(tried.worker_seconds)} of one core in all{last}. `{CONFIG}` is the "
        f"config, `results.json` and `results.csv` hold every figure, `index.html` shows them, `about.json` names the "
        f"versions."
    )
