# SPDX-License-Identifier: MIT
"""A run's report in a real browser: on screens of all sizes, in dark mode, on paper, without scripts; and the files
that embedding a figure accepts and refuses.
"""

from __future__ import annotations

import re
import struct

import pytest

from analysis.derive import derive
from analysis.figures import names
from analysis.page.figure import MAX_BYTES, embed
from analysis.tests import simulate
from lib.errors import InputError

NAMES = names({})  # of a run with long flows
# The figures that this screen shows. A figure may have one version for phones and one for larger screens.
SHOWN = "[...document.querySelectorAll('.picture svg')].filter(svg => svg.getClientRects().length)"
BOX = f"const box = {SHOWN}[0].getBoundingClientRect(); return [box.left, box.top, box.width, box.height]"
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


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 768, 1280])
def test_report__is_whole_on_every_screen(browser, report, width, dark):
    browser.errors()
    browser.open(report, width, dark)
    pictures = browser.pictures()
    assert len(pictures) == len(NAMES)
    assert all(picture["colours"] > 5 and picture["wide"] > 300 and picture["high"] > 80 for picture in pictures)
    assert browser.overflow() <= 0
    assert (browser.brightness() < 0.35) == dark
    assert browser.errors() == []


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


PARTLY = f"""
return {SHOWN}.map(svg => svg.parentElement).filter(part => part.scrollWidth > part.clientWidth).length
"""


@pytest.mark.parametrize("width", [360, 390, 1280])
def test_report__shows_whole_figures_without_scrolling(browser, report, width):
    browser.open(report, width)
    assert browser.run(PARTLY) == 0
    assert browser.run(f"return {SHOWN}.length") == len(NAMES)


WIDER = """
return [...document.querySelectorAll(".wide")].filter(part => part.scrollWidth > part.clientWidth).length
"""


EMPTY = """
return [...document.querySelectorAll(".blocks td:empty")].filter(cell => cell.getClientRects().length).length
"""


def test_report__shows_a_row_of_a_table_as_lines_on_a_phone(browser, report):
    browser.open(report, 390)
    assert browser.run(WIDER) == 0
    assert browser.run(EMPTY) == 0
    cell = "document.querySelector('.blocks td[data-title]')"
    assert browser.run(f"return getComputedStyle({cell}).display") == "flex"
    assert browser.run(f"return getComputedStyle({cell}, '::before').content") == '"buffer it asks for"'
    browser.open(report, 1280)
    assert browser.run(f"return getComputedStyle({cell}).display") == "table-cell"
    assert browser.run(WIDER) == 0
    assert browser.run(EMPTY) > 0  # the same cells keep their place in the table


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 390, 1280])
def test_report__has_no_text_too_small_and_no_part_out_of_reach(browser, report, width, dark):
    browser.errors()
    browser.open(report, width, dark)
    size, where, of_figures = browser.run(LEAST_TEXT)
    assert size >= 9, where
    assert of_figures > 10 * len(NAMES)
    assert browser.run(CUT_OFF) == []
    assert browser.run(OUT_OF_REACH) == []
    assert browser.errors() == []


def test_report__is_used_by_keyboard_alone(page):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    seen = set()
    page.run("document.body.focus()")
    for _ in range(80):
        ActionChains(page.driver).send_keys(Keys.TAB).perform()
        seen.add(page.run("const at = document.activeElement; return at.ariaLabel || at.tagName"))
    assert {"zoom in", "zoom out", "whole figure", "SUMMARY"} <= seen
    figures = page.run(f"return {SHOWN}.map(svg => svg.getAttribute('aria-label'))")
    assert set(figures) <= seen


def test_report__has_no_white_figure_in_the_dark(browser, report):
    browser.open(report, 1280, dark=True)
    browser.run("document.querySelector('.picture').scrollIntoView()")
    assert browser.brightness() < 0.35


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


def test_figure__zooms_by_button_and_back(page):
    whole = view_box(page)
    buttons = page.run("return [...document.querySelector('.tools').querySelectorAll('button')].map(b => b.ariaLabel)")
    assert buttons == ["zoom out", "zoom in", "whole figure"]
    page.run("document.querySelector('.tools button[aria-label=\"zoom in\"]').click()")
    x, y, width, height = view_box(page)
    assert (width, height) == pytest.approx((whole[2] / 1.5, whole[3] / 1.5))
    assert (x + width / 2, y + height / 2) == pytest.approx((whole[2] / 2, whole[3] / 2))
    assert page.run("return document.querySelector('.tools output').textContent") == "150 %"
    page.run("document.querySelector('.tools button[aria-label=\"whole figure\"]').click()")
    assert view_box(page) == whole


def test_figure__zooms_and_moves_by_keys(page):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    whole = view_box(page)
    page.run("document.querySelector('.picture svg').focus()")
    ActionChains(page.driver).send_keys("+", "+", Keys.ARROW_RIGHT, Keys.ARROW_DOWN).perform()
    x, y, width, height = view_box(page)
    assert width == pytest.approx(whole[2] / 2.25)
    assert (x, y) == pytest.approx(((whole[2] - width) / 2 + 0.1 * width, (whole[3] - height) / 2 + 0.1 * height))
    ActionChains(page.driver).send_keys("0").perform()
    assert view_box(page) == whole


def test_figure__zooms_where_the_wheel_points_once_it_has_the_focus(page):
    def wheel(delta):
        box = page.run(BOX)
        page.command("Input.dispatchMouseEvent", type="mouseWheel", x=box[0] + 2, y=box[1] + 2, deltaX=0, deltaY=delta)

    whole = view_box(page)
    page.run("document.querySelector('.picture svg').scrollIntoView({block: 'center'})")
    wheel(-100)
    assert view_box(page) == whole  # the page scrolls
    page.run("document.querySelector('.picture svg').scrollIntoView({block: 'center'})")
    page.run("document.querySelector('.picture svg').focus({preventScroll: true})")
    wheel(-100)
    x, y, width, _ = view_box(page)
    assert width < whole[2]
    assert (x, y) == pytest.approx((0, 0), abs=3)


def test_figure__is_dragged_and_never_out_of_sight(page):
    page.run("document.querySelector('.picture svg').scrollIntoView({block: 'center'})")
    page.run("const t = document.querySelector('.tools button[aria-label=\"zoom in\"]'); t.click(); t.click()")
    before = view_box(page)
    left, top, wide, high = page.run(BOX)

    def drag(dx, dy):
        x, y = left + wide / 2, top + high / 2
        for kind, at in (
            ("mousePressed", (x, y)),
            ("mouseMoved", (x + dx, y + dy)),
            ("mouseReleased", (x + dx, y + dy)),
        ):
            page.command(
                "Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="left", buttons=1, clickCount=1
            )

    drag(-0.1 * wide, 0)
    after = view_box(page)
    assert after[0] == pytest.approx(before[0] + 0.1 * before[2], rel=0.02)
    for _ in range(3):
        drag(0.45 * wide, 0.45 * high)
    assert view_box(page)[:2] == [0, 0]


def test_figure__is_pinched_on_a_phone(browser, report):
    browser.open(report, 360)
    browser.run(f"{SHOWN}[0].scrollIntoView({{block: 'center', inline: 'center'}})")
    whole = view_box(browser)
    left, top, wide, high = browser.run(BOX)

    def touch(kind, apart):
        points = [
            {"x": left + wide * (0.5 + side * apart), "y": top + high / 2, "id": i} for i, side in enumerate((-1, 1))
        ]
        browser.command("Input.dispatchTouchEvent", type=kind, touchPoints=[] if kind == "touchEnd" else points)

    touch("touchStart", 0.1)
    for apart in (0.12, 0.15, 0.18, 0.2):
        touch("touchMove", apart)
    touch("touchEnd", 0)
    x, _, width, _ = view_box(browser)
    assert width == pytest.approx(whole[2] / 2, rel=0.25)
    assert x + width / 2 == pytest.approx(whole[2] / 2, rel=0.1)


# Embedding ------------------------------------------------------------------------------------------------------------


def drawing(directory, inside=""):
    """An SVG of 30 x 20 with `inside` in it."""
    path = directory / "a.svg"
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 30 20" version="1.1">{inside}</svg>')
    return path


def test_embed__gives_image_and_size(tmp_path):
    figure = embed(drawing(tmp_path))
    assert (figure.name, figure.width, figure.height) == ("a", 30, 20)
    assert figure.uri.startswith("data:image/svg+xml;base64,")


def test_embed__of_too_large_an_svg_takes_the_png_beside_it(tmp_path):
    big = drawing(tmp_path, " " * MAX_BYTES)
    assert embed(big).uri.startswith("data:image/svg+xml")  # there is no PNG
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 300, 200)
    big.with_suffix(".png").write_bytes(head)
    figure = embed(big)
    assert figure.uri.startswith("data:image/png")
    assert (figure.width, figure.height) == (300, 200)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not an SVG"),
        ("<svg>", "is not an SVG"),
        ('<svg viewBox="0 0 0 4">', "is empty"),
        ("<html>", "is not an SVG"),
    ],
)
def test_embed__refuses_files_that_are_no_figure(tmp_path, text, said):
    (tmp_path / "a.svg").write_text(text)
    with pytest.raises(InputError, match=said):
        embed(tmp_path / "a.svg")


def test_glossary__has_every_term_of_the_document_as_plain_text() -> None:
    from analysis.page import glossary

    found = dict(glossary.terms())
    assert len(found) == glossary.GLOSSARY.read_text().count("\n| **")
    assert found["virtual time"].endswith("no frame is late (virtual-time.md)")
    assert not any(mark in text for text in found.values() for mark in ("`", "**", "]("))
