import json
from dataclasses import replace

import pytest

from tests.run_folders import Finished
from unveil.audit.advice import audit
from unveil.audit.exposure import costs
from unveil.runs.run_folder import audited


def card(finished: Finished, **about: object) -> str:
    run = finished.run
    told = json.loads((finished.folder / "about.json").read_text()) | about
    return replace(run, about=told).card()


def test_the_card_of_a_run(finished: Finished) -> None:
    text = (finished.folder / "README.md").read_text()
    assert text == card(finished)
    best = finished.run.fitted.best
    assert best is not None
    assert text.startswith("# itps on log.csv\n")
    assert str(finished.log.parent) not in text
    assert "40 users, 30 items" in text
    assert f"3 epochs, best at {best.epoch} (validation NDCG@10 {best.value:.4f})" in text
    assert "Weighted by `popularity-temporal`:" in text
    assert "Popularity stands in for exposure" in text


def test_every_figure_is_on_the_card_with_its_interval(finished: Finished) -> None:
    lines = card(finished).splitlines()
    for row in finished.run.evaluation.summary.iter_rows(named=True):
        interval = "–" if row["low"] is None else f"{row['low']:.4f} to {row['high']:.4f}"
        figure = f"| {row['protocol']} | {row['metric']}@{row['k']} | {row['mean']:.4f} | {interval} | {row['n']} |"
        assert figure in lines


def test_a_naive_run_has_no_weights_and_a_true_propensity_no_proxy(finished: Finished) -> None:
    text = card(finished, weights=None, by_proxy=False)
    assert "Weighted by" not in text
    assert "No propensity weights" in text
    assert "proxy" not in text


def test_the_figures_of_the_audit_are_those_of_the_audit(finished: Finished) -> None:
    log = finished.run.experiment.data.load()
    found = audit(log)
    text, told = card(finished), json.loads((finished.folder / "about.json").read_text())["audit"]
    head, test = found.concentration.head, found.cold.splits["leave-one-out"]
    assert f"{head['1%']:.1%} of the interactions" in text
    assert f"Gini coefficient {found.concentration.gini:.3f}" in text
    assert f"{test.items:.1%} of the test cases" in text
    assert f"{test.rare:.1%} one that occurs" in text
    assert found.leakage is not None
    assert f"On average {found.leakage.later:.1%} of the training interactions are later" in text
    length = finished.run.experiment.model.length
    train = finished.run.experiment.data.parts(log).train
    assert told["ess_share"]["itps"] == costs(train, length).of("itps").ess_share
    assert f"{told['ess_share']['ips']:.1%} of the training interactions with IPS" in text


def test_a_large_log_is_only_counted(finished: Finished, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unveil.runs.run_folder.MOST", 10)
    split = finished.run.experiment.data.parts(finished.run.experiment.data.load())
    found = audited(split, 8)
    assert found["leakage"] is None
    assert found["ess_share"] is None
    told = card(finished, audit=found)
    assert "later than the test case" not in told
    assert "Gini coefficient" in told


def test_what_it_is_for_and_what_it_is_not_for(finished: Finished) -> None:
    text = card(finished)
    assert text.count("\n## ") == 6
    cases = json.loads((finished.folder / "about.json").read_text())["cases"]
    assert f"{cases['train']} training interactions, 40 validation cases\nand 40 test cases." in text


def test_a_password_is_not_on_the_card(finished: Finished) -> None:
    run = finished.run
    secret = replace(run.experiment, data=replace(run.experiment.data, log="mysql://me:hunter2@host/db"))
    about = json.loads((finished.folder / "about.json").read_text())
    assert "hunter2" not in replace(run, experiment=secret, about=about).card()
