from dataclasses import replace

import pytest

from tests.run_folders import Finished
from unveil.studies import paper, shipped
from unveil.studies.paper import published_line


@pytest.fixture
def known(finished: Finished, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the small log were the one that others have published figures of."""
    size = (40, 30, len(finished.run.recommender.sequences))
    monkeypatch.setattr(paper, "recognised", lambda *found: "ml-1m" if found == size else None)


def test_a_log_that_nobody_published_of_is_told_nothing(finished: Finished) -> None:
    assert published_line(finished.run) is None


@pytest.mark.usefixtures("known")
def test_others_figures_stand_beside_ones_own_with_source_and_protocol(finished: Finished) -> None:
    line = published_line(finished.run)
    assert line is not None
    recall, ndcg = (finished.run.evaluation.value("full", metric, 10) for metric in ("Recall", "NDCG"))
    assert line.startswith("published  sasrec on ml-1m, full ranking, leave-one-out, Recall@10 / NDCG@10: 0.3058 / ")
    assert "0.3058 / 0.1779 (RecTools, softmax loss)" in line
    assert "bert4rec" not in line
    assert line.endswith(f"this run, itps: {recall:.4f} / {ndcg:.4f}")
    assert len(line.splitlines()) == 1


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("change", ["temporal", "seen too"])
def test_another_protocol_is_not_held_beside_them(change: str, finished: Finished) -> None:
    made = finished.run.experiment
    other = (
        replace(made, data=replace(made.data, split="temporal"))
        if change == "temporal"
        else replace(made, evaluation=replace(made.evaluation, exclude_seen=False))
    )
    assert published_line(replace(finished.run, experiment=other)) is None


def test_every_data_set_with_figures_is_one_that_can_be_recognised() -> None:
    known = shipped("paper")
    assert {each["data"] for each in known["others"]} <= set(known["real"]["data"])
