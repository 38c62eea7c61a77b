# SPDX-License-Identifier: MIT
"""The page of a sweep: its counts, lists and links, and its use in a real browser."""

from __future__ import annotations

import html
import json
import re
import shutil
from typing import Any

import polars as pl
import pytest

from analysis.arithmetic.statistics import mean_interval
from analysis.figures.sweep.common import layout
from analysis.report import sweep_report
from analysis.results.summary import summarize
from analysis.tests import sweeps
from bufferscope.__main__ import main
from runs import record, stored_sweep

GRID: dict[str, list[Any]] = {"cc": ["cubic", "reno"], "flows": [1, 4, 16], "buf": [10, 20, 80]}
SHOWN = "return [...document.querySelectorAll('#runs tbody tr')].filter(row => !row.hidden)"
LOST = "ledger: 3 postcards were lost; see logs/ and run again"
LATE = "fidelity: 1 % of frames left port 2 at least 700 us late; allowed are 500 us"


@pytest.fixture(scope="session")
def summary(known_runs):
    """The summary of a simulated run in virtual time."""
    return summarize(known_runs("virtual").analysis)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory, summary):
    """36 planned runs: one not valid for each of two reasons, one aborted, one never run, one retried."""
    directory = tmp_path_factory.mktemp("results") / "grid"
    places = sweeps.write(directory, summary, GRID, 2)
    rewrite(places["creno-f4-b20-r1"] / "rep-1", LOST)
    rewrite(places["ccubic-f16-b80-r2"] / "rep-1", LATE)
    shutil.rmtree(places["creno-f16-b10-r2"])
    aborted = places["creno-f1-b10-r1"] / "rep-1"
    shutil.rmtree(aborted)
    aborted.mkdir()
    (aborted / "ABORTED").write_text("the receiver <script>x</script> did not come up\n")
    earlier = places["creno-f1-b20-r1"] / "attempt-1"
    shutil.copytree(places["creno-f1-b20-r1"] / "rep-1", earlier)
    rewrite(earlier, LATE)
    sweep_report.write(directory)
    return directory


def rewrite(repetition, reason):
    """Makes a run not valid."""
    path = repetition / "summary.json"
    altered = json.loads(path.read_text()) | {"valid": False, "reasons": [reason]}
    altered["ledger"]["postcards_missing"] = 3 if reason is LOST else 0
    path.write_text(json.dumps(altered))


@pytest.fixture
def page(browser, sweep):
    """The browser, which shows the sweep's page at the width of a desktop."""
    browser.open(sweep / "report.html")
    return browser


def choose(browser, label, value):
    """Chooses `value` in a filter, as a person does, and waits for the table."""
    from selenium.webdriver.support.select import Select

    labels = "[...document.querySelectorAll('#filters label')]"
    select = browser.run(f"return {labels}.find(one => one.textContent.startsWith(arguments[0])).control", label)
    Select(select).select_by_visible_text(value)
    until(browser, f"return document.getElementById('shown').textContent.includes('{label} {value}')")


def until(browser, condition):
    """Waits for a delayed reaction of the page, up to 20 s, because the machine may be busy."""
    from selenium.webdriver.support.wait import WebDriverWait

    WebDriverWait(browser.driver, 20, 0.05).until(lambda _: browser.run(condition))


def column(browser, title):
    """The texts of a column in the rows that are shown, in their order."""
    head = "[...document.querySelectorAll('#runs thead th')].findIndex(head => head.textContent === arguments[0])"
    return browser.run(f"const at = {head}; {SHOWN}.map(row => row.cells[at].textContent);", title)


def test_page__counts_runs_links_reports_and_escapes_text_from_files(sweep):
    text = (sweep / "report.html").read_text()
    assert "<strong>32 of 36 runs are valid.</strong>" in text
    numbers = dict(re.findall(r"<dt>([a-z ]+)</dt><dd>([^<]*)</dd>", text))
    assert numbers == {"runs": "36", "valid": "32", "not valid": "2", "missing": "2", "retried": "1",
                       "kept of each run": "summary"}  # fmt: skip
    for said in (LOST, LATE, "has not been run", "did not come up"):
        assert f"<li>{said}</li>" in text or said in text
    assert "Earlier attempts of these runs failed" in text
    for said in ("c0ffee" + 34 * "0", "feed" + 60 * "0", "6.12.0-test", "base: rate", "50mbit"):
        assert said in text
    links = re.findall(r'<a href="([^"]*)">', text)
    assert len(links) == 34
    assert all((sweep / link).is_file() for link in links)
    for harm in ("<script>x", "<i>for</i>", "<b>processor"):
        assert harm not in text
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:|//|/)""", text)
    assert "default-src &#39;none&#39;" in text


@pytest.fixture
def blank(monkeypatch):
    """Pages without figures, which take most of the time."""
    monkeypatch.setattr(sweep_report, "draw", lambda sweep, directory: [])


def test_page__shows_a_run_with_a_damaged_summary_as_not_valid(tmp_path, summary, blank):
    places = sweeps.write(tmp_path / "small", summary, {"cc": ["reno"], "flows": [1, 2]})
    first, second = (place / "rep-1/summary.json" for place in places.values())
    first.write_text(first.read_text()[:300])
    page = sweep_report.write(tmp_path / "small").read_text()
    assert "<strong>1 of 2 runs is valid.</strong>" in page
    assert "summary.json cannot be read: " in page
    rows = stored_sweep.read(tmp_path / "small").rows  # the planned parameters stand for those that cannot be read
    assert [(row["flows"], row["clock"]) for row in rows] == [(1, "virtual"), (2, "virtual")]
    assert "has not been run" not in page
    altered = json.loads(second.read_text()) | {"drops": 10**30, "marks": float("inf"), "reasons": ["\ud800"]}
    second.write_text(json.dumps(altered))
    (tmp_path / "small/plan.json").unlink()
    places.popitem()[1].rename(tmp_path / "small/runs/100% #1?-r1")
    page = sweep_report.write(tmp_path / "small").read_text()
    assert "<strong>1 of 2 runs is valid.</strong>" in page
    assert '<a href="runs/100%25%20%231%3F-r1/rep-1/report.html">' in page


def test_page__is_whole_on_a_phone_and_without_scripts(browser, sweep):
    assert browser.whole(sweep / "report.html", 360, dark=True) == 4
    browser.run("document.querySelector('.tools button[aria-label=\"zoom in\"]').click()")
    until(browser, "return document.querySelector('.picture svg').viewBox.baseVal.x > 0")
    browser.open(sweep / "report.html", script=False)  # all rows and no dead filters
    browser.command("Emulation.setScriptExecutionDisabled", value=False)
    assert len(browser.run(SHOWN)) == 36
    assert browser.run("return document.getElementById('filters').offsetHeight") == 0
    assert browser.run("return document.querySelectorAll('#runs button, .tools').length") == 0


def test_page__filters_by_parameters_verdict_and_words(page):
    assert len(page.run(SHOWN)) == 36
    for label, value in (("algorithm", "reno"), ("flows", "16"), ("buffer", "10")):
        choose(page, label, value)
    assert column(page, "run") == ["valid", "missing"]
    assert page.run("return document.getElementById('shown').textContent") == (
        "2 of 36 runs: algorithm reno, flows 16, buffer 10"
    )
    page.run("document.querySelector('#filters button[type=reset]').click()")
    until(page, f"{SHOWN}.length === 36")
    choose(page, "verdict", "not valid")
    assert sorted(column(page, "why")) == sorted([LOST, LATE])
    page.run("document.querySelector('#filters button[type=reset]').click()")
    page.driver.find_element("css selector", "#filters input").send_keys("RENO lost")
    until(page, f"{SHOWN}.length === 1")
    assert column(page, "ledger") == ["3 missing"]


def test_page__sorts_by_any_column_and_back_and_prints_all(page):
    heads = "[...document.querySelectorAll('#runs thead th')].find(h => h.textContent === arguments[0])"
    orders = []
    for title in ("buffer", "buffer", "utilization", "utilization"):
        page.run(f"{heads}.querySelector('button').click()", title)
        orders.append(column(page, title))
    up, down = ([int(text) for text in order] for order in orders[:2])
    assert up == sorted(up) == down[::-1]
    assert page.run("return document.querySelectorAll('[aria-sort]').length") == 1
    assert all(order[-2:] == ["–", "–"] for order in orders[2:])  # missing values are last in both sort orders
    shares = [float(text.removesuffix(" %")) for text in orders[3][:-2]]
    assert shares == sorted(shares, reverse=True)
    page.command("Emulation.setEmulatedMedia", media="print", features=[])
    style = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
    assert page.run(style, "#filters", "display") == "none"
    assert page.run(style, "#runs thead button", "display") == "contents"  # otherwise only the first sheet has titles


def test_page__of_a_search_has_the_least_buffers_and_names_as_they_are(tmp_path, summary):
    name = "$\\frac{$"
    directory = tmp_path / name
    grid: dict[str, list[Any]] = {"cc": ["reno", name], "mode": ["ecn", "egress-ecn"], "buf": [10, 20, 40]}
    sweeps.write(directory, summary, grid, search={"criterion": "nonempty"})
    of_all = {"cc": "reno", "mode": "tail-drop", "rate_bps": 50_000_000, "rtt_ns": 10_000_000, "mtu_bytes": 1500,
              "bdp_packets": 40, "criterion": "nonempty", "least": 0.99, "width": 0.1, "runs": 4}  # fmt: skip
    rows = [
        {"point": "cc=reno flows=1", "flows": 1, "low_packets": 36, "high_packets": 40, "note": ""},
        {"point": "cc=reno flows=4", "flows": 4, "low_packets": None, "high_packets": 10, "note": "the least tried"},
        {"point": "cc=reno flows=8", "flows": 8, "low_packets": 80, "high_packets": None, "note": "not <finished>"},
    ]
    pl.DataFrame([of_all | row for row in rows]).write_parquet(directory / "least_buffer.parquet")
    text = sweep_report.write(directory).read_text()
    assert "The smallest buffer with nonempty at least 0.99" in text
    for packets, of_bdp in (("36 to 40", "0.9 to 1"), ("at most 10", "at most 0.25"), ("more than 80", "more than 2")):
        assert f'<td class="n">{packets}</td><td class="n">{of_bdp}</td>' in text
    assert "not &lt;finished&gt;" in text
    drawn = {path.stem: html.unescape(path.read_text()) for path in (directory / "figures").glob("*.svg")}
    assert "least_buffer" in drawn
    assert [stem for stem, drawing in drawn.items() if f">{name}: " not in drawing] == []
    assert f">{name}, egress-ecn<" in drawn["utilization"]


def test_means__have_the_intervals_of_the_valid_repetitions(tmp_path, summary, blank):
    directory = tmp_path / "grid"
    places = sweeps.write(directory, summary, GRID, 3)
    rewrite(places["creno-f4-b20-r3"] / "rep-1", LOST)
    text = sweep_report.write(directory).read_text()
    rows = [re.findall("<td[^>]*>(.*?)</td>", row) for row in re.findall("<tr><td>.*?</tr>", text)]
    by_point = {tuple(row[:3]): row[3:] for row in rows if len(row) == 10}
    assert len(by_point) == 18
    runs, used, _, _, delay, *_ = by_point["cubic", "4", "20"]
    values = [1 - 1 / (40 + number) for number in (1, 2, 3)]
    mean = mean_interval(values)
    assert mean is not None
    value, low, high = (100 * (end or 0) for end in (mean.value, mean.low, mean.high))
    assert (runs, used) == ("3", f"{value:.2f} % ({low:.2f} % to {high:.2f} %)")
    assert delay == "4 ms"  # the same in all repetitions
    assert by_point["reno", "4", "20"][0] == "2"


def test_page__takes_the_figures_of_a_paper_that_are_drawn_from_it(tmp_path, summary, blank):
    directory = tmp_path / "spang2021-single-flow-smoke"
    sweeps.write(directory, summary, {"cc": ["reno"], "flows": [1]})
    figures = tmp_path / "figures"
    (figures / "spang2021-smoke").mkdir(parents=True)
    # Drawn from this sweep; from another sweep; from no sweep; not a figure of a paper.
    for name in ("figure_01", "figure_08", "figure_99", "other"):
        (figures / f"{name}.svg").write_text('<svg viewBox="0 0 30 20" xmlns="http://www.w3.org/2000/svg"/>')
    text = sweep_report.write(directory, figures).read_text()
    assert "Figures of the paper" in text
    assert re.findall(r"<figcaption>(Figure [0-9]+)", text) == ["Figure 1"]
    (figures / "figure_01.svg").rename(figures / "spang2021-smoke/figure_01.svg")  # where make figures SMOKE=1 puts it
    assert "Figures of the paper" in sweep_report.write(directory).read_text()


def refusal(capsys, *words):
    """The one line with which the command ends; it prints nothing else."""
    capsys.readouterr()
    assert main(["sweep-report", *map(str, words)]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


def test_command__makes_the_page_or_refuses_with_one_line(tmp_path, capsys, summary, blank):
    directory = tmp_path / "spang2021-single-flow"
    directory.mkdir()
    assert "is not a sweep" in refusal(capsys, directory)
    for text in ("{", "[]", '{"jobs": {}}'):
        (directory / "plan.json").write_text(text)
        assert "plan.json" in refusal(capsys, directory)
    plans: tuple[dict[str, Any], ...] = (
        {"jobs": {"a": 1}}, {"jobs": {"a": {"spec": {"groups": 7}}}}, {"jobs": {}, "sweep": {"name": "another"}},
    )  # fmt: skip
    for plan in plans:
        (directory / "plan.json").write_text(json.dumps(record.signed(plan)))
        assert "plan.json" in refusal(capsys, directory)
    assert not (directory / "report.html").exists()
    sweeps.write(directory, summary, {"cc": ["reno"]})
    assert main(["sweep-report", str(directory)]) == 0
    assert capsys.readouterr().out == f"{directory / 'report.html'}\n"
    assert "/nowhere: is not a directory" in refusal(capsys, directory, "--figures", "/nowhere")
    (tmp_path / "figure_01.svg").write_text("no drawing")
    assert "figure_01.svg: is not an SVG" in refusal(capsys, directory, "--figures", tmp_path)
    (directory / "least_buffer.parquet").write_text("no table")
    assert "least_buffer.parquet: " in refusal(capsys, directory)


def test_layout__puts_the_longest_along_the_axis():
    cases: tuple[tuple[dict[str, list[Any]], tuple[Any, ...]], ...] = (
        ({}, ("cc", (), ())),
        ({"cc": ["a", "b"]}, ("cc", (), ())),
        ({"flows": [1, 2, 3], "buf": [3, 4], "cc": ["a", "b"]}, ("flows", ("cc", "buf"), ())),
        ({"flows": [1, 2, 3, 4, 5], "buf": [*range(9)], "cc": ["a", "b"]}, ("buf", ("cc",), ("flows",))),
        ({"mode": ["a", "b"], "cc": [*"abcdefghi"]}, ("cc", ("mode",), ())),
    )
    for parameters, expected in cases:
        assert layout(parameters) == expected, parameters
