# SPDX-License-Identifier: MIT
"""A run's report in a real browser: on screens of all sizes, in dark mode, on paper, without scripts; and the files
that embedding a figure accepts and refuses.
"""

from __future__ import annotations

import re
import struct

import pytest

from analysis.figures import names
from analysis.report.page.figure import MAX_BYTES, embed
from analysis.tests import simulate
from lib.errors import InputError
from model.experiment import Experiment

NAMES = names(Experiment.model_validate(simulate.spec(simulate.Scenario())))  # of a run with long flows
# The figures that this screen shows. A figure may have one version for phones and one for larger screens.
SHOWN = "[...document.querySelectorAll('.picture svg')].filter(svg => svg.getClientRects().length)"
VIEW_BOX = f"return {SHOWN}[0].getAttribute('viewBox').split(' ').map(Number)"


@pytest.fixture
def page(browser, drawn):
    """The browser with a repetition's page as a desktop shows it."""
    browser.open(drawn[0] / "report.html")
    return browser


def view_box(browser):
    """The view box of the first figure, after the page has drawn its last change."""
    browser.driver.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))"
    )
    return browser.run(VIEW_BOX)


LEAST_TEXT = (
    f"""
const shown = {SHOWN};"""
    + """
// Height in px of the smallest text: of the page, and of each figure as its image draws it.
const sizes = [];
for (const at of document.querySelectorAll("body *")) {
  const text = [...at.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
  if (text && at.getClientRects().length && !at.closest("svg, script, style"))
    sizes.push([parseFloat(getComputedStyle(at).fontSize), at.tagName]);
}
for (const svg of shown) {
  const href = svg.querySelector("image").href.baseVal;
  const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  if (!href.startsWith("data:image/svg")) continue;
  const source = atob(href.split(",")[1]);
  const name = svg.getAttribute("aria-label");
  for (const [, size] of source.matchAll(/font-size: ([0-9.]+)px/g)) sizes.push([scale * size, name]);
}
return [...sizes.sort((a, b) => a[0] - b[0])[0], sizes.filter(size => size[1].includes(" ")).length];
"""
)
OUT_OF_REACH = """
const scrolls = part => ["auto", "scroll"].includes(getComputedStyle(part).overflowX);
return [...document.querySelectorAll("body *")].filter(
  part => scrolls(part) && part.scrollWidth > part.clientWidth && part.tabIndex < 0
).map(part => part.outerHTML.slice(0, 80));
"""


@pytest.mark.parametrize(("width", "dark"), [(360, False), (390, True), (1280, False)])
def test_report__is_whole_and_readable_on_every_screen(browser, drawn, width, dark):
    assert browser.whole(drawn[0] / "report.html", width, dark) == len(NAMES)
    size, where, of_figures = browser.run(LEAST_TEXT)
    assert size >= 9, where
    assert of_figures > 10 * len(NAMES)
    assert browser.run(OUT_OF_REACH) == []


def test_report__prints_whole_figures_and_no_buttons(page):
    whole = page.run(VIEW_BOX)
    page.run("document.querySelector('.tools button:nth-of-type(2)').click()")
    assert view_box(page)[2] < whole[2]
    paper = page.pdf()
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", paper)) <= 30
    assert view_box(page)[2] < whole[2]  # printing kept the zoom on the screen
    page.command("Emulation.setEmulatedMedia", media="print", features=[])
    assert page.run("return getComputedStyle(document.querySelector('.tools')).display") == "none"


# Embedding ------------------------------------------------------------------------------------------------------------


def drawing(directory, inside=""):
    """An SVG of 30 x 20 with `inside` in it."""
    path = directory / "a.svg"
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 30 20" version="1.1">{inside}</svg>')
    return path


def test_embed__of_too_large_an_svg_takes_the_png_beside_it(tmp_path):
    figure = embed(drawing(tmp_path))
    assert (figure.name, figure.width, figure.height) == ("a", 30, 20)
    big = drawing(tmp_path, " " * MAX_BYTES)
    assert embed(big).uri.startswith("data:image/svg+xml")  # there is no PNG
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 300, 200)
    big.with_suffix(".png").write_bytes(head)
    figure = embed(big)
    assert figure.uri.startswith("data:image/png")
    assert (figure.width, figure.height) == (300, 200)


def test_embed__refuses_files_that_are_no_figure(tmp_path):
    for text in ("", "<svg>", '<svg viewBox="0 0 0 4">', "<html>"):
        (tmp_path / "a.svg").write_text(text)
        with pytest.raises(InputError):
            embed(tmp_path / "a.svg")
