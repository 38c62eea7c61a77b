# SPDX-License-Identifier: MIT
"""A run's report in a real browser: on screens of all sizes, in dark mode, on paper, without scripts; and the files
that embedding a figure accepts and refuses.
"""

from __future__ import annotations

import re
import struct

import pytest

from analysis.figures import names
from analysis.replay.derive import derive
from analysis.report.page.figure import MAX_BYTES, embed
from analysis.tests import simulate
from lib.errors import InputError
from model.experiment import Experiment

NAMES = names(Experiment.model_validate(simulate.spec(simulate.Scenario())))  # of a run with long flows
# The figures that this screen shows. A figure may have one version for phones and one for larger screens.
SHOWN = "[...document.querySelectorAll('.picture svg')].filter(svg => svg.getClientRects().length)"
VIEW_BOX = f"return {SHOWN}[0].getAttribute('viewBox').split(' ').map(Number)"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The page of a repetition."""
    directory = tmp_path_factory.mktemp("page") / "rep-1"
    simulate.write_run(directory, simulate.Scenario())
    derive(directory)
    return directory / "report.html"


@pytest.fixture
def page(browser, report):
    """The browser with that page as a desktop shows it."""
    browser.errors()
    browser.open(report)
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
CUT_OFF = """
return [...document.querySelectorAll("table, .picture svg")].filter(part => {
  if (!part.getClientRects().length) return false;
  for (let at = part.parentElement; at; at = at.parentElement)
    if (["auto", "scroll"].includes(getComputedStyle(at).overflowX)) return false;
  return part.getBoundingClientRect().right > document.documentElement.clientWidth + 1;
}).map(part => part.outerHTML.slice(0, 80));
"""
OUT_OF_REACH = """
const scrolls = part => ["auto", "scroll"].includes(getComputedStyle(part).overflowX);
return [...document.querySelectorAll("body *")].filter(
  part => scrolls(part) && part.scrollWidth > part.clientWidth && part.tabIndex < 0
).map(part => part.outerHTML.slice(0, 80));
"""


@pytest.mark.parametrize(("width", "dark"), [(360, False), (390, True), (768, False), (1280, False), (1280, True)])
def test_report__is_whole_and_readable_on_every_screen(browser, report, width, dark):
    browser.errors()
    browser.open(report, width, dark)
    pictures = browser.pictures()
    assert len(pictures) == len(NAMES)
    assert all(picture["colours"] > 5 and picture["wide"] > 300 and picture["high"] > 80 for picture in pictures)
    assert browser.overflow() <= 0
    assert (browser.brightness() < 0.35) == dark
    size, where, of_figures = browser.run(LEAST_TEXT)
    assert size >= 9, where
    assert of_figures > 10 * len(NAMES)
    assert browser.run(CUT_OFF) == []
    assert browser.run(OUT_OF_REACH) == []
    assert browser.errors() == []


def test_report__shows_its_figures_without_scripts(browser, report):
    browser.open(report, script=False)
    # No script can inspect the page now, so the test judges a screenshot.
    assert len(browser.screenshot(whole=True)) > 100_000
    browser.command("Emulation.setScriptExecutionDisabled", value=False)
    assert browser.run("return document.querySelectorAll('.tools').length") == 0
    assert browser.run("return document.querySelector('.picture svg').getBoundingClientRect().width") > 300


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


def test_glossary__has_every_term_of_the_document_as_plain_text() -> None:
    from analysis.report.page import glossary

    found = dict(glossary.terms())
    assert len(found) == glossary.GLOSSARY.read_text().count("\n| **")
    assert found["virtual time"].endswith("no frame is late (virtual-time.md)")
    assert not any(mark in text for text in found.values() for mark in ("`", "**", "]("))
