"""The propositions on tiny worlds of several seeds and severities: what holds and what does not."""

from typing import Any

import numpy as np
import pytest

from unveil.simulation.choice import CHOICES
from unveil.simulation.theory.claims import P1, P2, P3, TOLERANCE, choosers, enumerated, with_verdict
from unveil.simulation.theory.claims import findings as checked
from unveil.simulation.theory.enumeration import DenseWorld, tiny_worlds

WORLDS = [(1.0, 0), (3.0, 2)]


@pytest.fixture(scope="module", params=WORLDS, ids=str)
def findings(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    return list(map(with_verdict, checked(enumerated(*request.param))))


def test_what_holds_and_what_does_not(findings: list[dict[str, Any]]) -> None:
    assert [finding["holds"] for finding in findings if finding["topic"] == P1] == [True, True]
    assert [finding["holds"] for finding in findings if finding["topic"] == P2] == [True, True, False]
    assert [finding["holds"] for finding in findings if finding["topic"] == P3] == [True, True, False, False, True]
    assert all(finding["holds"] for finding in findings if finding["topic"] not in (P1, P2, P3))


def test_no_formula_is_off(findings: list[dict[str, Any]]) -> None:
    assert all(finding["verdict"] != "formula off" for finding in findings)
    assert sum(finding["formula"] is not None for finding in findings) >= 14


def test_the_worlds_are_what_they_are_said_to_be() -> None:
    tiny = tiny_worlds(2.0, 1)
    still, moving = DenseWorld(tiny["still"]).theta_SV, DenseWorld(tiny["moving"]).theta_SV
    assert still[::2] == pytest.approx(still[1::2], rel=1e-6)
    assert abs(moving[::2] - moving[1::2]).min() > 0.001
    unchosen = DenseWorld(tiny["moving_unchosen"])
    moves_V = np.abs(unchosen.theta_SV[::2] - unchosen.theta_SV[1::2]).max(0) > 1e-4
    assert moves_V.any()
    assert not moves_V[unchosen.favourite_S].any()
    assert (DenseWorld(tiny["all_shown"]).theta_SV == 1).all()
    related = DenseWorld(tiny["related"])
    follows, apart = (
        np.corrcoef(dense.theta_SV.ravel(), dense.gamma_SV.ravel())[0, 1]
        for dense in (related, DenseWorld(tiny["moving"]))
    )
    assert follows > max(0.5, apart)


def test_itps_is_unbiased_for_exactly_those_whose_choice_ignores_exposure() -> None:
    found = list(choosers(enumerated(1.0, 3)["moving"]))
    assert {row["choice"] for row in found} == set(CHOICES)
    assert {row["relevance"] for row in found} == {"drawn", "certain"}
    for row in found:
        assert (abs(row["bias"]["ITPS"]) > TOLERANCE) == row["depends_on_exposure"]
        assert abs(row["bias"]["naive"]) > TOLERANCE
        assert row["formula_error"] is None or row["formula_error"] < 1e-8
