# SPDX-License-Identifier: MIT
"""advise MEASURE=1: the scaling of a link, and the sentences about the result."""

import itertools
import re
from pathlib import Path
from typing import Any

import pytest

from analysis.advise import brief, evidence, parameters
from analysis.advise.estimates import Estimate
from analysis.advise.evidence import Evidence
from bufferscope.__main__ import main
from experiments.commands import advise, advise_link
from experiments.commands.advise import LEAST_WINDOW, RUN_SHARE, Scaled, run_cost_s, scaled
from experiments.machine.host import CHECKOUT, Host
from experiments.spec.resolve import resolve
from experiments.sweep import run as sweep_run
from runs import run_table

BUDGET_S = 300
HOST = Host(("cubic", "reno"), netem=True, clock="virtual")


def probe(clock: str) -> Host:
    return HOST


def question(**given: str) -> parameters.Question:
    return parameters.read(given)


def scale_of(**given: str) -> tuple[Scaled, parameters.Question]:
    asked = question(**given)
    return scaled(asked.link, RUN_SHARE * BUDGET_S), asked


def test_scale__keeps_windows_then_flows_and_stays_in_the_budget() -> None:
    for rate, rtt, asked_flows, flows, is_scaled in (
        ("200mbit", "10ms", "16", 16, False),
        ("100mbit", "20ms", "1", 1, False),
        ("1gbit", "20ms", "100", 100, False),
        ("1gbit", "40ms", "100", 100, True),  # a lower rate is enough
        ("10gbit", "40ms", "500", 175, True),
        ("100gbit", "100ms", "10000", 124, True),
        ("10gbit", "100ms", "1", 1, True),
        ("1gbit", "10ms", "100000", None, True),  # windows below one packet stay below one
    ):
        share, asked = scale_of(rate=rate, rtt=rtt, flows=asked_flows)
        assert run_cost_s(share, asked.link) <= RUN_SHARE * BUDGET_S
        assert (share.rate_bps < asked.link.rate_bps) == is_scaled
        if flows is not None:
            assert share.flows == flows
            assert share.window >= min(LEAST_WINDOW, asked.link.fair_window) * 0.999
        assert share.window <= asked.link.fair_window * (1 + 1e-6)
        rate_bps = asked.link.rate_bps * share.bdp / asked.link.bdp
        assert share.rate_bps == pytest.approx(max(rate_bps, 64_000), rel=1e-3)
        assert share.flows >= min(advise.SMALLEST_FLOWS, asked.link.flows) or share.bdp >= advise.SMALLEST_BDP
        words = {"rate": f"{share.rate_bps}bit", "rtt": rtt, "flows": str(share.flows)}
        assert resolve(words, HOST).bdp_packets == pytest.approx(share.bdp, abs=1)


def row(low: int | None, high: int | None, note: str = "") -> dict[str, Any]:
    return {"low_packets": low, "high_packets": high, "runs": 6, "note": note}


def before(**given: str) -> brief.Answer:
    """The answer without a measurement, from our published runs."""
    return brief.answer(question(**given), evidence.load(CHECKOUT / "docs/results"))


def test_answer__says_whether_and_how_the_link_was_scaled() -> None:
    share, _ = scale_of(rate="200mbit", rtt="10ms", flows="16")
    said = advise.answer(before(rate="200mbit", rtt="10ms", flows="16"), share, row(40, 50))
    assert said.lines[0].startswith("Measured on your link, not scaled: more than 40 and at most 50 packets keep ")
    assert (said.interval, said.carried_over) == (Estimate(50, 40, 50), False)
    share, _ = scale_of(rate="10gbit", rtt="40ms", flows="500")
    earlier = before(rate="10gbit", rtt="40ms", flows="500")
    said = advise.answer(earlier, share, row(100, 175, "not finished"))
    assert said.lines[0].startswith("Measured, scaled to 175 cubic flows at 538.3 Mb/s, RTT 40ms ")
    assert said.lines[0].endswith("not finished).")
    assert said.carried_over
    assert said.interval
    assert earlier.least
    assert said.interval.high / said.interval.low < earlier.least.high / earlier.least.low  # the measurement counts
    without = brief.answer(earlier.question, Evidence([], 0, [], []))
    assert advise.answer(without, share, row(100, 175)).interval == pytest.approx(Estimate(1924, 1099, 1924), abs=1)
    more = advise.answer(earlier, share, row(2000, None))  # a lower bound counts, too
    assert "more than 2000 packets" in more.lines[0]
    assert more.interval
    assert more.interval.low > said.interval.low
    whole, _ = scale_of(rate="200mbit", rtt="10ms", flows="16")
    none = advise.answer(before(rate="200mbit", rtt="10ms", flows="16"), whole, row(100, None))
    assert "even 100 packets" in none.lines[0]
    assert none.interval is None


def test_check__is_a_command_that_is_not_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for words, check in (
        ("RATE=10gbit RTT=40ms FLOWS=500", "make advise RATE=10gbit RTT=40ms FLOWS=500 CC=cubic UTIL=0.99 MEASURE=1 ("),
        ("RATE=100gbit RTT=60ms FLOWS=20000", "on a scaled link, because a run has at most 10000 flows"),
        ("RATE=1gbit RTT=9s FLOWS=2", "MEASURE=1 BUDGET=7"),  # a search of the smallest link takes two hours
        ("RATE=1gbit RTT=50us FLOWS=2", "no command measures this link, because RTT=50us "),
        ("RATE=1gbit RTT=1ms FLOWS=unknown", "no command measures this link, because FLOWS=unknown "),
    ):
        assert main(["advise", *words.split()]) == 0
        line = capsys.readouterr().out.splitlines()[-1]
        assert line.startswith("Check")
        assert check in line, line
        if found := re.search("make advise (.*) MEASURE=1( BUDGET=([0-9]+)s)? ", line):
            asked = dict(word.lower().split("=") for word in found[1].split())
            share = scaled(question(**asked).link, RUN_SHARE * int(found[3] or BUDGET_S))
            assert run_cost_s(share, question(**asked).link) <= RUN_SHARE * int(found[3] or BUDGET_S)
            search = advise.search(question(**asked), share)
            assert resolve({key: str(value) for key, value in search.base.items()} | {"buf": "1bdp"}, HOST)


def test_taken__is_the_upper_end_of_what_was_measured() -> None:
    for carried_over, refused, needs_yes in (
        (True, "", False),
        (True, "", True),
        (True, "FLOWS", False),
        (False, "", False),
    ):
        measured = brief.Measurement(["Measured."], Estimate(300, 200, 477.2), carried_over, refused, needs_yes)
        answer = before(rate="10gbit", rtt="40ms", flows="500")
        said = brief.lines(answer, advise._check_measured(answer.question, measured), measured)
        assert said[1].startswith("Take BUF=478p (or "), said
        assert said[2].startswith("Without the measurement: BUF=")
        command = f"BUF=478p {brief.CHECK_WORDS}{' YES=1' * needs_yes} (it announces its time)"
        assert (command in said[-1]) == (carried_over and not refused)


@pytest.mark.parametrize(
    ("used", "runs", "interval", "carried_over", "tried"),
    [
        ({478: 0.995, 5816: 0.999}, 3, (478, 0, 478), False, 1),
        ({478: 0.96, 5816: 0.999}, 3, (5816, 478, 5816), False, 2),
        ({478: None, 5816: 0.999}, 3, (5816, 0, 5816), False, 2),
        ({478: 0.96, 5816: 0.97, 32510: 0.98}, 3, (32510, 32510, 32510), True, 3),
        ({478: 0.96}, 1, (5816, 478, 5816), True, 1),
        ({}, 0, (478, 60, 5815.5), True, 0),
    ],
)
def test_link_itself__is_run_with_larger_buffers_until_one_is_enough(
    used: dict[int, float | None], runs: int, interval: tuple[float, ...], carried_over: bool, tried: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    link = question(rate="10gbit", rtt="40ms", flows="500").link
    ran: list[int] = []

    def run(link: object, buffers: list[int], results: Path, probe: object) -> dict[int, float | None]:
        ran.extend(buffers)
        return {packets: used[packets] for packets in buffers}

    monkeypatch.setattr(advise_link, "_utilizations", run)
    for at_once in (1, 2):
        ran.clear()
        found = brief.Measurement(["Measured."], Estimate(478, 60, 5815.5), True)
        limits = advise_link.Limits(runs, at_once, 60.0, "no run of your link itself, which would take about 2 h")
        said = advise_link.try_on_link(link, found, limits, Path("x"), probe)
        most = min(-(-tried // at_once) * at_once, runs)
        assert (said.interval, said.carried_over, ran) == (interval, carried_over, [478, 5816, 32510][:most])
        assert len(said.lines) == 1 + max(most, 1) + (carried_over and bool(most))


def test_link_itself__is_run_only_in_the_time_that_the_search_leaves() -> None:
    fits = advise_link.Limits.of(question(rate="1gbit", rtt="20ms", flows="100").link, probe, 200)
    assert fits.runs == advise_link.MOST_RUNS
    assert fits.text == "up to 3 runs of your link itself"
    assert fits.most_s <= 200
    long = advise_link.Limits.of(question(rate="10gbit", rtt="40ms", flows="500").link, probe, 30)
    assert long.runs == 0
    assert re.search(r"no run of your link itself.*: BUDGET=\d+s has the time for it", long.text)
    large = advise_link.Limits.of(question(rate="100gbit", rtt="100ms", flows="10000").link, probe, 86_400)
    assert large.runs == 0
    assert "no run of your link" in large.text
    many = advise_link.Limits.of(question(rate="100gbit", rtt="60ms", flows="20000").link, probe, 86_400)
    assert many.refused.startswith("FLOWS")


def test_measurement__stays_in_its_budget(tmp_path: Path) -> None:
    """The budget holds on the idle reference machine, by the cost model."""
    for rate, flows, rtt in itertools.product(("10mbit", "1gbit", "100gbit"), ("1", "500", "10000"), ("1ms", "200ms")):
        share, asked = scale_of(rate=rate, rtt=rtt, flows=flows)
        if share.bdp < 4:  # is refused
            continue
        options = sweep_run.Options(tmp_path, at_once=2)
        search_s = sweep_run.missing(advise.search(asked, share), probe, options, run_table.read(tmp_path)).duration_s
        assert search_s <= 0.6 * BUDGET_S
        link_s = advise_link.Limits.of(asked.link, probe, BUDGET_S - search_s).most_s
        assert search_s + link_s <= BUDGET_S


def test_budget__is_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    for given in ("59s", "2", "x", "1000000s"):
        assert main(["advise", "RATE=1gbit", "RTT=10ms", "FLOWS=9", "MEASURE=1", f"BUDGET={given}"]) == 1
        assert f"BUDGET={given} " in capsys.readouterr().err
