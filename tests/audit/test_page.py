"""The page and the JSON of an audit."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.audit.logs import generated
from tests.pages import faults
from unveil.audit.advice import Audit, _movers, audit, beside, check_output, write
from unveil.audit.motion import Mover
from unveil.data.interactions import Interactions
from unveil.errors import UnveilError


@pytest.fixture(scope="module")
def log() -> Interactions:
    return generated(impressions=True)


@pytest.fixture(scope="module")
def found(log: Interactions) -> Audit:
    return audit(log)


@pytest.fixture(scope="module")
def folder(log: Interactions, found: Audit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audit")
    titles = [f"<title & {n}>" for n in range(len(log.items))]
    command = ["unveil", "audit", "postgresql://me:hush@host/db", "-o", "audit.html"]
    write(found, log, titles, "postgresql://me:hush@host/db", folder / "audit.html", command)
    return folder


def test_the_page_is_one_file_that_says_everything(folder: Path, found: Audit) -> None:
    html = (folder / "audit.html").read_text()
    assert faults(html) == []
    assert found.verdict in html.replace("&#39;", "'")
    for each in found.advice:
        assert each.title in html.replace("&#39;", "'")
    assert html.count("<section") == 10
    assert html.index("Do next: ") < html.index("<svg")
    assert html.count("<table") > 8
    assert found.order is not None
    for figure in (f"{found.order.recurring:,}", f"{found.concentration.gini:.3f}", f"{found.log.lengths.longest:,}"):
        assert f">{figure}</td>" in html
    assert html.count("<title>") > 100  # hover values
    assert "hush" not in html
    assert "<title & 1>" not in html  # titles are escaped
    assert "<code>unveil propensity fit</code>" in html


def test_every_plot_has_a_name_and_a_description(folder: Path) -> None:
    html = (folder / "audit.html").read_text()
    plots = re.findall(r'role="img" aria-label="([^"]*)"', html)
    assert len(plots) == html.count("<svg")
    assert all(len(alt) > 20 for alt in plots)


def test_every_plot_is_a_file_too(folder: Path) -> None:
    drawn = {path.name for path in (folder / "audit-figures").iterdir()}
    assert {"lorenz.svg", "lorenz.png", "heads.svg", "ess0.png"} <= drawn
    assert len(drawn) == 2 * (folder / "audit.html").read_text().count("<svg")


def test_the_json_has_the_documented_fields(folder: Path, log: Interactions, found: Audit) -> None:
    told = json.loads((folder / "audit.json").read_text())
    documented = (Path(__file__).parents[2] / "docs" / "audit.md").read_text().partition("## audit.json")[2]
    assert all(f"`{name}`" in documented for name in told)
    assert told["concentration"]["gini"] == found.concentration.gini
    assert told["histories"]["movers"] == [] or told["histories"]["movers"][0]["item"] in log.items.ids
    assert told["fingerprint"] == log.fingerprint()
    assert len(told["advice"]) == len(found.advice)
    assert "hush" not in json.dumps(told)


def test_five_figures_whatever_the_log_has(found: Audit) -> None:
    assert len(found.prose().key_figures("keys")) == 5
    assert len(audit(generated(clock=False, users=60)).prose().key_figures("keys")) == 5


def test_shares_of_items_say_of_which_items(found: Audit) -> None:
    """Those that were tested: of a long tail most are not."""
    motion = found.histories
    assert motion is not None
    assert 0 < motion.rejecting.items < found.log.items
    labels = [figure.label for figure in found.prose().key_figures("keys") if "popularity along" in figure.label]
    assert len(labels) == 2
    assert all("items with ten interactions or more" in label for label in labels)
    if motion.rejecting.holm:
        assert f"of {motion.rejecting.items} tested items" in found.verdict


def test_movers_of_one_title_are_all_drawn(found: Audit) -> None:
    assert found.histories is not None
    shares = tuple(n / 55 for n in range(1, 11))
    movers = tuple(Mover(item, 10, 1.0, shares) for item in range(4))
    figure = _movers(replace(found.histories, movers=movers), "histories", ["Emma", "Emma", "Emma", "Othello"])
    assert figure.data is not None
    assert [column.title for column in figure.data.columns[1:]] == ["Emma", "Emma #2", "Emma #3", "Othello"]


def test_the_same_log_gives_the_same_bytes(folder: Path, log: Interactions, found: Audit, tmp_path: Path) -> None:
    titles = [f"<title & {n}>" for n in range(len(log.items))]
    command = ["unveil", "audit", "postgresql://me:hush@host/db", "-o", "audit.html"]
    write(found, log, titles, "postgresql://me:hush@host/db", tmp_path / "audit.html", command)
    assert (tmp_path / "audit.html").read_bytes() == (folder / "audit.html").read_bytes()


def test_what_is_there_is_not_buried(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="there already"):
        check_output(folder / "audit.html", overwrite=False)
    check_output(folder / "audit.html", overwrite=True)
    (tmp_path / "new.json").write_text("mine")
    with pytest.raises(UnveilError, match=r"new\.json: the output is there already"):
        check_output(tmp_path / "new.html", overwrite=False)
    with pytest.raises(UnveilError, match="HTML page"):
        check_output(tmp_path / "audit.pdf", overwrite=False)
    (tmp_path / "drawn-figures").mkdir()
    check_output(tmp_path / "drawn.html", overwrite=False)
    (tmp_path / "drawn-figures" / "mine.svg").write_text("")
    with pytest.raises(UnveilError, match="drawn-figures: the output folder is not empty"):
        check_output(tmp_path / "drawn.html", overwrite=False)
    assert beside(Path("a/b.html")) == Path("a/b.json")
