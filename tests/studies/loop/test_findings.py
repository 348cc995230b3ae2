"""Words are chosen by the figures: made-up figures, and what must be said of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.run_folders import small_log
from unveil.data.filters import LogSource
from unveil.studies.engine import Answer, Report
from unveil.studies.loop import LoopData, LoopStudy

#: By replicate and round.
Loops = Sequence[Sequence[Mapping[str, float | None]]]


def report(loops: Mapping[str, Loops], data: str = "", **fields: Any) -> Report:
    (first, *_) = loops.values()
    lengths: dict[str, Any] = {"rounds": len(first[0]) - 1, "replicates": len(first)}
    study = LoopStudy(log=LogSource("log.csv"), estimators=tuple(loops), **lengths, **fields)
    cells = list(study.cells())
    made = {cell.key: {"records": loops[cell.at["estimator"]][cell.at["replicate"]], "seconds": 0.0} for cell in cells}
    return Report(Answer(study, LoopData(data, "", "", small_log()), cells, made))


def findings(*args: Any, **fields: Any) -> str:
    return " ".join(report(*args, **fields).prose.paragraphs("findings"))


def caution(loops: Mapping[str, Loops]) -> str:
    return report(loops).prose.line("caution")


def outcome(*loops: tuple[str, list[float], float], replicates: int = 1, spread: float = 0.0) -> dict[str, Loops]:
    """A model's EFD by round, and how far the same by the first log moves."""
    rest = {"arp": 1.0, "gini": 0.5, "coverage": 0.2, "overlap": 0.3, "log_gini": 0.4, "individual": 0.9}
    return {
        model: [
            [
                {**rest, "efd": value + spread * r, "efd_first": value + first * t, "overlap": 0.3 + 0.1 * t}
                for t, value in enumerate(values)
            ]
            for r in range(replicates)
        ]
        for model, values, first in loops
    }


def test_who_is_more_novel_and_that_one_replicate_proves_nothing() -> None:
    said = findings(outcome(("naive", [9.0, 8.0], 0.0), ("itps", [8.5, 8.4], 0.0)))
    assert "most novel first, is naive 9.000, ITPS 8.500; after 1 round of feedback it is ITPS 8.400, naive 8.0" in said
    assert "One replicate" in said
    assert "novelty falls for every model: naive −1.000 bits (−1.000), ITPS −0.100 bits" in said
    assert "themselves move that way" in said
    assert "of two users rises for every model" in said
    assert "True relevance" not in said
    assert "no intervals" in caution(outcome(("naive", [9.0, 8.0], 0.0)))


def test_a_yardstick_that_moves_is_told() -> None:
    said = findings(outcome(("naive", [9.0, 8.0], 2.0), ("itps", [8.5, 8.6], 0.0)))
    assert "rises for some models and falls for others" in said
    assert "part of the change is in the measure" in said


def test_differences_are_tested_over_replicates() -> None:
    made = outcome(("naive", [9.0, 8.0], 0.0), ("itps", [8.5, 9.4], 0.0), replicates=3, spread=0.01)
    assert "ITPS is more novel than naive (+1.400 bits, p < 0.001)" in findings(made)
    assert "3 replicates" in caution(made)
    lower = outcome(("naive", [9.0, 9.0], 0.0), ("itps", [8.5, 8.4], 0.0), replicates=3, spread=0.01)
    assert "ITPS is less novel than naive" in findings(lower)


def test_one_model_alone() -> None:
    made = outcome(("naive", [9.0, 8.0], 0.0))
    said = findings(made)
    assert said.startswith("Before any feedback EFD@10 is 9.000; after 1 round of feedback it is 8.000.")
    assert "20.0% of the items are recommended to someone" in said
    assert "in place of exposure" not in caution(made)


def test_the_papers_claim_is_set_beside_its_settings_only() -> None:
    made = outcome(("naive", [9.0, 8.0], 0.0), ("ips", [9.1, 7.0], 0.0), ("itps", [9.5, 9.0], 0.0))
    tuned = {"preset": "paper", "tuned_for": "ml-1m"}
    said = findings(made, "ml-1m", **tuned)
    assert "On ml-1m the paper says: IPS and ITPS are about equally novel" in said
    assert "Here IPS is above naive in 1, ITPS is above naive in 2, ITPS is above IPS in 2 of 2 rounds" in said
    other = findings(made, **tuned)
    assert "the paper says" not in other
    assert "The paper has no loop on a log of this size" in other
    assert "the paper says" not in findings(made)


def test_a_model_whose_users_took_nothing_has_no_figure_and_spoils_none() -> None:
    def loop(relevance: float | None) -> list[dict[str, float | None]]:
        rest: dict[str, float | None] = dict.fromkeys(("efd", "efd_first", "coverage", "overlap", "log_gini"), 0.5)
        return [{**rest, "relevance": 0.5, "taken_relevance": relevance if r else None} for r in range(3)]

    said = findings({"naive": [loop(0.25)], "itps": [loop(None)]})
    assert "highest last value first: naive 0.250 → 0.250. Of the" in said
    assert "nan" not in said
