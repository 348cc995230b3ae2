import json
from dataclasses import replace

from tests.runs import Finished
from unveil.experiment.card import model_card


def card(finished: Finished, **about: object) -> str:
    run = finished.run
    told = json.loads((finished.folder / "about.json").read_text()) | about
    return model_card(run.experiment, told, run.evaluation, run.fitted)


def test_the_card_of_a_run(finished: Finished) -> None:
    text = (finished.folder / "README.md").read_text()
    assert text == card(finished)
    best = finished.run.fitted.best
    assert best is not None
    assert text.startswith(f"# itps on {finished.log}\n")
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
    assert "Weighted" not in text
    assert "proxy" not in text


def test_a_password_is_not_on_the_card(finished: Finished) -> None:
    run = finished.run
    secret = replace(run.experiment, data=replace(run.experiment.data, log="mysql://me:hunter2@host/db"))
    about = json.loads((finished.folder / "about.json").read_text())
    assert "hunter2" not in model_card(secret, about, run.evaluation, run.fitted)
