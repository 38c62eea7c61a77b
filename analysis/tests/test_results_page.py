# SPDX-License-Identifier: MIT
"""The page of a results directory: a line for each run and sweep, escaped, filtered, and whole on every screen."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser

import pytest

from analysis.results.summary import summarize
from analysis.tests import sweeps
from analysis.tests.test_page import LEAST_TEXT, OUT_OF_REACH
from bufferscope.__main__ import main
from runs.results import running

SHOWN = "return [...document.querySelectorAll('#runs tbody tr')].filter(row => !row.hidden)"
MARK = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def results(tmp_path_factory, drawn, known_runs):
    """A run with a note and two repetitions, a run of Cubic and BBR, a run that was aborted, a sweep, a directory that
    is neither, and a run elsewhere that a link leads to.
    """
    top = tmp_path_factory.mktemp("somewhere") / "results"
    summary = summarize(known_runs("virtual").analysis)
    shutil.copytree(drawn[0].parent, top / "20260101T000000Z-noted")
    shutil.copytree(drawn[0], top / "20260101T000000Z-noted" / "rep-2")
    (top / "20260101T000000Z-noted" / "NOTE").write_text(f"with {MARK}\nnew PIE\x1b\n")
    sweeps.put(top / "20260102T000000Z-mix" / "rep-1", sweeps.changed(summary, {"cc": "bbr", "flows": 3}, 1))
    aborted = top / "20260103T000000Z-aborted" / "rep-1"
    aborted.mkdir(parents=True)
    (aborted / "ABORTED").write_text(f"failed\nthe receiver {MARK} did not come up\n")
    places = sweeps.write(top / "grid", summary, {"cc": ["reno", "cubic"], "buf": [10, 80]})
    (top / "grid" / "NOTE").write_text("a quiet machine\n")
    shutil.rmtree(places["creno-b10-r1"])
    (top / "figures" / "paper").mkdir(parents=True)
    (top / "figures" / "paper" / "big").write_bytes(bytes(1 << 20))
    sweeps.put(top.parent / "away" / "rep-1", sweeps.changed(summary, {"cc": "reno"}, 1))
    (top / "linked").symlink_to("../away")
    assert main(["results", str(top)]) == 0
    return top


class Lines(HTMLParser):
    """The text of each cell of each line, and the addresses of links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")
        if tag == "a":
            self.links.append(dict(attributes)["href"])

    def handle_data(self, data):
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def test_results__have_a_line_for_each_run_and_sweep(results):
    page = Lines((results / "index.html").read_text())
    title, *rows = [[cell.strip() for cell in row] for row in page.rows]
    said = {row[0]: dict(zip(title, row, strict=True)) for row in rows}
    (noted,) = [row for name, row in said.items() if "noted" in name]
    assert "with <script>alert(1)</script> new PIE?" in noted["run or sweep"]
    assert (noted["kind"], noted["verdict"]) == ("run", "2 of 2 valid")
    assert "queue depth that packets found" in noted["picture"]
    (grid,) = [row for name, row in said.items() if name.startswith("grid")]
    assert "a quiet machine" in grid["run or sweep"]
    assert (grid["kind"], grid["verdict"], grid["algorithm"]) == ("sweep", "3 of 4 valid", "cubic, reno")
    assert "against B/BDP" in grid["picture"]
    (aborted,) = [row for name, row in said.items() if "aborted" in name]
    assert "did not come up" in aborted["run or sweep"]
    assert aborted["verdict"] == "no result"
    (linked,) = [row for name, row in said.items() if name.startswith("linked")]
    assert linked["disk"] == "elsewhere"
    assert len(rows) == 5
    assert page.tags.count("script") == 3  # of the page itself
    assert len(page.links) == 4
    assert all((results / link).is_file() for link in page.links)
    assert "fetch(" not in (results / "index.html").read_text()


def test_results__say_which_run_is_running(results):
    with running(results / "20260103T000000Z-aborted"):
        assert main(["results", str(results)]) == 0
        assert "is running" in (results / "index.html").read_text()
    main(["results", str(results)])


@pytest.mark.parametrize(("width", "dark"), [(360, False), (390, True), (1280, False)])
def test_results__are_whole_and_readable_on_every_screen(browser, results, width, dark):
    assert browser.whole(results / "index.html", width, dark) == 0
    assert browser.run(LEAST_TEXT)[0] >= 11
    assert browser.run(OUT_OF_REACH) == []
    wider = "const part = document.querySelector('.scrolls'); return part.scrollWidth - part.clientWidth"
    assert browser.run(wider) == 0


def test_filters__leave_the_lines_that_fit(browser, results):
    browser.open(results / "index.html", 390)
    change = """
    const [selector, value] = arguments, part = document.querySelector(selector);
    part.value = value; part.dispatchEvent(new Event("change", { bubbles: true }));
    """
    for selector, value, left in (
        ("[data-filter='0']", "cubic", 1), ("[data-filter='0']", "bbr", 1), ("[data-filter='0']", "", 5),
        ("[data-filter='1']", "sweep", 1), ("[data-filter='1']", "", 5), ("[data-filter='2']", "no result", 2),
        ("[data-filter='2']", "", 5), ("input", "new pie", 1),
    ):  # fmt: skip
        browser.run(change, selector, value)
        browser.driver.execute_async_script("setTimeout(arguments[0], 150)")
        assert len(browser.run(SHOWN)) == left, (selector, value)


def test_results__of_a_run_or_of_nothing_is_refused(results, tmp_path, capsys):
    for place, why in ((results / "grid", "is a run or a sweep itself"), (tmp_path / "none", "No such file")):
        assert main(["results", str(place)]) == 1
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert why in err


def test_note__is_on_the_page_of_a_run_and_in_the_run_table(drawn, tmp_path, capsys, blank):
    run = tmp_path / "20260101T000000Z-noted"
    shutil.copytree(drawn[0].parent, run)
    (run / "NOTE").write_text("with <b>new</b> PIE\n")
    assert main(["replay", str(run)]) == 0
    assert "Note: with &lt;b&gt;new&lt;/b&gt; PIE" in (run / "rep-1/report.html").read_text()
    assert json.loads((run / "rep-1/summary.json").read_text())
    capsys.readouterr()
    assert main(["runs", f"results={tmp_path}", "note=with <b>new</b> PIE"]) == 0
    assert re.search(r"with <b>new</b> PIE +valid", capsys.readouterr().out)
