"""Small multiples: what is inside, what lies outside, and what is not there."""

from xml.etree import ElementTree

from unveil.report.charts import Along, Spot, panels

COLUMNS = [Along("severity p", ["1", "2"], joined=True), Along("choice", ["by chance", "the best"], joined=False)]


def titles(svg: str) -> list[str]:
    found = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}title")
    return [each.text or "" for each in found]


def test_every_share_has_a_mark_and_what_is_not_there_has_none() -> None:
    spots = {
        (0, 0): [Spot(0.5, 0.4, 0.6, "half"), Spot(-9.0, None, None, "far below")],
        (0, 1): [Spot(None, None, None, "none"), Spot(2.0, 1.5, 2.5, "far above")],
        (1, 0): [Spot(0.0, -0.1, 0.1, "naive"), Spot(1.0, 0.9, 1.1, "ideal")],
    }
    drawing = panels(["one", "other"], COLUMNS, spots, "shares", aims={0: 0.6})
    assert titles(drawing.svg) == ["half", "far below", "far above", "naive", "ideal"]
    for word in ("one", "other", "severity p", "by chance", "50%"):
        assert word in drawing.svg
    assert drawing.svg.startswith('<svg class="wide" ')
    assert drawing.name == "shares"


def test_a_share_outside_is_drawn_at_the_edge() -> None:
    inside, outside = (
        panels(
            ["one"], COLUMNS[:1], {(0, 0): [Spot(mean, None, None, "share"), Spot(0.5, None, None, "half")]}, "s"
        ).svg
        for mean in (-9.0, -99.0)
    )
    assert inside == outside, "how far outside does not matter"
