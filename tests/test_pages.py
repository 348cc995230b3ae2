"""The judge of pages is judged: a sound page has no faults, and each fault is seen."""

import pytest

from tests.pages import faults

SVG = '<svg xmlns="http://www.w3.org/2000/svg"><path data-point=""><title>1</title></path></svg>'
SOUND = f"""<!DOCTYPE html>
<html lang="en"><head><meta name="viewport" content="width=device-width">
<title>Page</title>
<style>:root {{ color-scheme: light dark; }} @media (prefers-color-scheme: dark) {{}} @media print {{}}</style></head>
<body><a href="#main">Skip</a><main id="main"><h1>A</h1><h2 id="b">B</h2><h3>C</h3><h2>D</h2>
<div class="scroll" tabindex="0" aria-label="T" aria-labelledby="b"><table><caption>T</caption>
<tr><th scope="col">x</th></tr></table></div><div role="img" aria-label="Falls">{SVG}</div></main></body></html>"""

BROKEN = {
    "a tag that is not closed": ("</table>", ""),
    "no language": (' lang="en"', ""),
    "no title": ("<title>Page</title>", "<title></title>"),
    "not fit for a phone": ('name="viewport"', 'name="other"'),
    "no dark scheme": ("prefers-color-scheme: dark", "min-width: 1px"),
    "no style for paper": ("@media print", "@media screen"),
    "something from outside": ("<h3>C</h3>", '<h3>C</h3><img src="https://example.org/a.png">'),
    "an id that is there twice": ("<h3>", '<h3 id="b">'),
    "a reference to nothing": ('aria-labelledby="b"', 'aria-labelledby="c"'),
    "headings that leave out a level": ("<h3>C</h3>", "<h4>C</h4>"),
    "no main part, or no way to skip to it": ('href="#main"', 'href="#b"'),
    "a table without a caption": ("<caption>T</caption>", ""),
    "a heading of a table without a scope": (' scope="col"', ""),
    "a part that scrolls and cannot be reached or has no name": (' tabindex="0"', ""),
    "a drawing without a description": (' role="img"', ""),
    "a drawing without values": (' data-point=""', ""),
}


def test_a_sound_page_has_no_faults() -> None:
    assert faults(SOUND) == []


@pytest.mark.parametrize("fault", BROKEN)
def test_every_fault_is_seen(fault: str) -> None:
    assert fault in faults(SOUND.replace(*BROKEN[fault]))
