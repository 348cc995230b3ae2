"""Small multiples: what is inside, what lies outside, and what is not there."""

from xml.etree import ElementTree

from unveil.report.charts import shares_figure
from unveil.studies.results import Estimate


def estimate(mean: float, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate(mean, low, high, 2)


def test_every_share_has_a_mark_and_what_is_not_there_has_none() -> None:
    gaps: dict[tuple[str, str], dict[str, Estimate | None]] = {
        ("itps", "severity p"): {"1": estimate(0.5, 0.4, 0.6), "2": estimate(-9.0)},
        ("itps", "choice"): {"by chance": None, "the best": estimate(2.0, 1.5, 2.5)},
        ("corrected", "severity p"): {"1": estimate(0.0, -0.1, 0.1), "2": estimate(1.0, 0.9, 1.1)},
    }
    figure = shares_figure(gaps, "shares", {"severity p": True, "choice": False}, {"itps": 0.6})
    found = ElementTree.fromstring(figure.drawing.svg).iter("{http://www.w3.org/2000/svg}title")
    assert [each.text for each in found] == [
        "ITPS, severity p, 1: 50% [40%, 60%]",
        "ITPS, severity p, 2: −900%",
        "ITPS, choice, the best: 200% [150%, 250%]",
        "corrected, severity p, 1: 0% [−10%, 10%]",
        "corrected, severity p, 2: 100% [90%, 110%]",
    ]
    for word in ("ITPS", "corrected", "severity p", "by chance", "50%"):
        assert word in figure.drawing.svg
    assert figure.drawing.svg.startswith('<svg class="wide" ')
    assert figure.drawing.name == "shares"


def test_a_share_outside_is_drawn_at_the_edge() -> None:
    inside, outside = (
        shares_figure({("itps", "p"): {"1": estimate(mean), "2": estimate(0.5)}}, "s").drawing.svg
        for mean in (-9.0, -99.0)
    )
    assert inside.replace("−900%", "") == outside.replace("−9900%", ""), "how far outside does not matter"
