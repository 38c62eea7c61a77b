# SPDX-License-Identifier: MIT
"""Runs whose switch has a wall clock and a rate in packets: other measures, null measures, faults."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from analysis.judge.analyse import analyse
from analysis.judge.validity import _path_reasons
from analysis.read.target_limits import MEASURED, rules
from analysis.report.run_report import render
from analysis.results.summary import summarize
from analysis.tests import simulate
from analysis.tests.documents import change, change_spec
from analysis.tests.test_validity import unnamed
from wire import wire

OFFSET_NS = 1_234_567_890_123  # CLOCK_MONOTONIC minus the switch's clock
SCENARIO = simulate.Scenario()


def _their_clock(card: bytes) -> bytes:
    """A stored postcard with the stamps of a switch whose own clock has a resolution of 1 us."""
    values = wire.POSTCARD.decode(card[8:])
    ticks = (values["enqueue_switch_ns"] - OFFSET_NS) % (1 << 48) // 1000
    sojourn = values["sojourn_ns"] // 1000
    return card[:8] + wire.POSTCARD.encode(**values | {"enqueue_switch_ns": ticks * 1000, "sojourn_ns": sojourn * 1000})


def as_bmv2(directory):
    """Rewrites a run of the soft switch as BMv2's run of the same packets. The soft switch becomes the delay line."""
    truth = simulate.Simulation(SCENARIO).run()
    cards = [_their_clock(card) for card in simulate.stored_postcards(SCENARIO, truth)]
    simulate.write_postcards(directory, cards)
    rate_pps = round(SCENARIO.rate_bps / (8 * simulate.spec(SCENARIO)["wire_bytes"]))
    change_spec(directory, target="bmv2", rate_pps=rate_pps)
    soft = json.loads((directory / "switch.json").read_text())
    dropped = sum(bool(card["flags"] & simulate.CARD["POSTCARD_DROPPED"]) for card in truth.cards)
    admitted, echoes = len(cards) - dropped, 20
    drops = {"2": {"packets": dropped, "bytes": 0}}
    counters = {**soft["counters"], "arrival_drops": drops, "departure_drops": {}, "unknown_hosts": {}}
    counts = {"port.1.rx_frames": admitted + echoes, "port.2.rx_frames": 500 + echoes}
    halves = {"1": {"rate": 0, "delay": SCENARIO.rtt_ns // 2}, "2": {"rate": 0, "delay": SCENARIO.rtt_ns // 2}}
    switch = {
        "target": "bmv2", "program": {"name": "bufferscope", "digest": "ab" * 32}, "bottleneck_port": 2,
        "settings": {"2": {"rate_pps": rate_pps, "limit_packets": 8000}},
        "stats": {"port.2.queued_or_lost_packets": 0}, "counters": counters,
        "clock": {"offset_ns": OFFSET_NS, "uncertainty_ns": 20_000},
        "line": {"settings": halves, "lateness": soft["lateness"], "stats": soft["stats"] | counts},
        "before": {
            "counters": {name: {} for name in counters},
            "clock": {"offset_ns": OFFSET_NS + 900, "uncertainty_ns": 22_000},
            "line": {"stats": dict.fromkeys(counts, echoes)},
        },
    }  # fmt: skip
    (directory / "switch.json").write_text(json.dumps(switch))
    environment = json.loads((directory / "environment.json").read_text())
    after = {
        "sender/eth0": {"sent": len(cards) + 22, "received": 520},
        "receiver/eth0": {"sent": 522, "received": admitted + 20},
        "collector/eth0": {"sent": 0, "received": len(cards) + 20},
    }  # fmt: skip
    # Sender and receiver each sent two frames before the switch started.
    before = {"sender/eth0": {"sent": 22, "received": 20}, "receiver/eth0": {"sent": 22, "received": 20}}
    before["collector/eth0"] = {"sent": 0, "received": 20}
    environment |= {"frames_passed": {"before": before, "after": after}, "target_programs": {"simple_switch": "1.15.5"}}
    (directory / "environment.json").write_text(json.dumps(environment))
    return directory


@pytest.fixture
def bmv2(fresh):
    return as_bmv2(fresh())


def test_bmv2__is_valid_and_says_rate_and_clock_and_why_the_rest_is_null(known_runs, bmv2):
    soft, a = known_runs("two_flows").analysis, analyse(bmv2)
    assert a.reasons == []
    assert abs(a.queue["enqueue_mono_ns"] - soft.queue["enqueue_mono_ns"]).max() <= 1000
    assert a.utilization["mean"] == pytest.approx(soft.utilization["mean"], abs=1e-3)
    summary = summarize(a)
    assert summary["lab"]["target"] == "bmv2"
    assert summary["lab"]["programs"] == {"simple_switch": "1.15.5"}
    rate = summary["rate"]
    assert rate["kept_pps"] == 4064
    assert rate["rounding_error_fraction"] == pytest.approx(4064 * 8 * 1538 / 50e6 - 1)
    assert rate["measured_pps"] == pytest.approx(4063.7, rel=2e-3)
    facts = summary["fidelity"]
    assert (facts["clock_moved_ns"], facts["clock_uncertainty_ns"]) == (900, 22_000)
    assert facts["lateness_us"]["max"] < 300  # the simulated packets leave after their transmission, BMv2's before it
    assert facts["absent"]
    assert all(facts[name] is None and why for name, why in facts["absent"].items())
    assert facts["line"]["lateness_us"]["p99"] == 20.0
    page = render(summary, a.run.documents.environment, None)
    assert facts["absent"]["departures"] in page
    limits = rules(a.run)
    assert not limits.exact_time
    assert not limits.echo_takes_link_time
    assert limits.max_rate_error == MEASURED.max_rate_error
    limits = rules(replace(a.run, experiment=a.run.experiment.model_copy(update={"clock": "virtual"})))
    assert (limits.depth_error_packets, limits.depth_error_fraction, limits.tick_ns) == (0, 0.0, 1000)


def stalled(directory, begin_mono_ns, stall_ns):
    """Lets the switch stand still for `stall_ns`: packets that are due meanwhile leave together at the end."""
    stored = simulate.read_postcards(directory)
    values = [wire.POSTCARD.decode(card[8:]) for card in stored]
    begin = begin_mono_ns - OFFSET_NS
    for each in values:
        left = each["enqueue_switch_ns"] + each["sojourn_ns"]
        if begin <= left < begin + stall_ns and not each["flags"] & simulate.CARD["POSTCARD_DROPPED"]:
            each["sojourn_ns"] += begin + stall_ns - left
    cards = [card[:8] + wire.POSTCARD.encode(**each) for card, each in zip(stored, values, strict=True)]
    simulate.write_postcards(directory, cards)


def test_bmv2__that_stood_still_is_late_and_keeps_its_rate(bmv2):
    """The packets that waited follow at once: no window's utilization says that the rate is another."""
    stalled(bmv2, analyse(bmv2).window.start_ns + 300_000_000, 40_000_000)
    a = analyse(bmv2)
    assert 38_000 < a.fidelity["lateness_us"]["max"] < 41_000
    assert [reason for reason in a.reasons if "left port 2 at least" in reason]
    once = a.utilization | {"max": 1.0412}
    assert [bool(_path_reasons(a.run, once, late_us)) for late_us in (0.0, 1000.0, 40_000.0)] == [True, True, False]


def test_bmv2__without_a_delay_line_has_a_ledger_of_the_frames_of_all_hosts(bmv2):
    """As on separate machines, where netem adds the delay."""
    change_spec(bmv2, delay="tc", tc_at="receiver-egress", machines={"sender": "a", "switch": "b", "receiver": "c"})
    for place in (("line",), ("before", "line")):
        change(bmv2, "switch", place, None)
    entries = analyse(bmv2).ledger
    assert "ring_drops" not in entries
    assert "frames_at_line" not in entries
    assert entries["frames_admitted"] == entries["frames_delivered"]
    assert entries["frames_admitted"]
    change(bmv2, "environment", ("frames_passed", "after", "receiver/eth0", "received"), lambda n: n - 7)
    reasons = analyse(bmv2).reasons
    assert ["(-7)" in reason for reason in reasons if "came to the receiver" in reason] == [True]
    assert not [reason for reason in reasons if reason.startswith("switch.json: does not say")]


def test_bmv2__faults_are_named(bmv2):
    frames = ("frames_passed", "after")
    faults = [
        ("switch", ("clock", "offset_ns"), OFFSET_NS + 400_000, "clock moved by 399 us against CLOCK_MONOTONIC"),
        ("switch", ("clock",), None, "does not say its clock's offset"),
        ("switch", ("settings", "2", "rate_pps"), 4000, "port 2 had a rate of 4000 packets/s, spec.yaml asks for 4064"),
        ("switch", ("settings", "2", "limit_packets"), 20, "holds 20 packets, no more than the policy's 20"),
        ("switch", ("line", "settings", "1", "delay"), 0, "delays add up to 5000000 ns"),
        ("switch", ("line", "stats", "port.1.rx_ring_drops"), 3, "3 frames were dropped by the kernel"),
        ("switch", ("line", "stats", "port.1.rx_frames"), lambda n: n - 1, "were admitted and not dropped by the"),
        ("switch", ("line", "stats", "clock_steps"), 1, "CLOCK_REALTIME stepped 1 times"),
        ("switch", ("line", "lateness", "2"), [[9_000_000, 1000]], "port 2 of the delay line at least 9000 us late"),
        ("switch", ("target",), "soft", "is of a soft switch, spec.yaml asks for bmv2"),
        ("environment", (*frames, "sender/eth0", "sent"), lambda n: n + 1, "frames left the sender"),
        ("environment", (*frames, "sender/eth0", "received"), lambda n: n - 2, "came to the sender (-2)"),
        ("environment", (*frames, "collector/eth0", "received"), lambda n: n - 1, "came to the collector (-1)"),
        ("environment", ("frames_passed",), None, "does not say frames_sent"),
    ]
    faults.append(("spec", ("rate_bps",), 51_000_000, "link's real rate was off by"))
    assert unnamed(bmv2, faults) == []
