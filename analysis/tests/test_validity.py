# SPDX-License-Identifier: MIT
"""The faults of a run, one at a time: the verdict names each. A run that exceeds a limit of virtual time by a little is
not valid, with this reason alone.
"""

import json
import resource
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.judge.analyse import analyse
from analysis.judge.ledger import _numbering, ledger_reasons
from analysis.measure import metrics, stalled_flows
from analysis.measure.fidelity import depth_errors, histogram_percentiles
from analysis.read.postcards import dropped, misspaced
from analysis.read.raw import load_postcards
from analysis.tests import simulate
from analysis.tests.documents import change, change_spec
from model.experiment import Experiment
from wire import wire

DOCUMENTS = ("environment", "collector", "tracer", "switch", "traffic", "idle_rtt")


def test_verdict__of_a_faultless_run(known):
    assert known.analysis.reasons == []
    entries = known.analysis.ledger
    cards = len(known.truth.cards)
    chain = ("switch_packets", "postcards_sent", "postcards_received", "postcards_stored", "postcards_rows")
    assert [entries[name] for name in chain] == [cards] * 5
    assert entries["tcp_events_rows"] == len(known.truth.records)


def reasons_after(directory, name, path, value):
    """The reasons against a run after one change of a document, which is taken back."""
    file = directory / ("spec.yaml" if name == "spec" else f"{name}.json")
    before = file.read_text()
    change(directory, name, path, value)
    found = analyse(directory).reasons
    file.write_text(before)
    return found


def unnamed(directory, faults):
    """The faults (document, path of keys, value, text), each alone in a run, that no reason names; with the reasons."""
    found = [(said, reasons_after(directory, *fault)) for *fault, said in faults]
    return [(said, reasons) for said, reasons in found if not any(said in reason for reason in reasons)]


FAULTS = [
    ("switch", ("counters", "arrivals", "2", "packets"), lambda n: n + 3, ["came to watched queues", "(-3)"]),
    ("switch", ("counters", "postcards_made", "3", "packets"), lambda n: n - 1, ["by the switch (-1)", "(+1)"]),
    ("switch", ("stats", "port.1.rx_ring_drops"), 1, ["1 frames were dropped by the kernel before the"]),
    ("switch", ("stats", "port.3.tx_errors"), 2, ["2 frames could not be handed to the kernel"]),
    ("switch", ("stats", "port.2.queue_drops"), 3, ["3 admitted packets were dropped"]),
    ("switch", ("stats", "pool_exhausted"), 4, ["4 packets were dropped because the switch had no memory"]),
    ("switch", ("stats", "clone_drops"), 4, ["4 postcards were not made"]),
    ("switch", ("stats", "clock_steps"), 1, ["CLOCK_REALTIME stepped 1 times"]),
    ("switch", ("stats", "clock_steps"), None, ["does not say clock steps"]),
    ("switch", ("stats", "arrivals_clamped"), 100, ["of arrivals were read too late"]),
    ("switch", ("stats", "port.1.rx_frames"), None, ["does not say clamped arrivals"]),
    ("switch", ("stats", "real_span_ns.2"), 1_002_000_000, ["real rate was off by -0.200%"]),
    ("switch", ("stats", "virtual_span_ns.2"), None, ["does not say rate error of port 2"]),
    ("switch", ("stats", "departures.2"), 999, ["counts 1000 frames, but 999 departed"]),
    ("switch", ("lateness", "2"), [[100_000, 980], [600_000, 20]], ["left port 2 at least 600 us late"]),
    ("switch", ("settings", "2", "rate"), 50_000_001, ["50000001 bit/s, spec.yaml asks for 50000000"]),
    ("switch", ("settings", "1", "delay"), lambda ns: ns + 1, ["10000001 ns, spec.yaml asks for 10000000"]),
    ("switch", ("settings",), None, ["does not say the bottleneck's rate, the delays"]),
    ("switch", ("bottleneck_port",), None, ["does not say bottleneck_port"]),
    ("collector", ("received",), lambda n: n - 2, ["were received by the collector (-2)", "stored"]),
    ("collector", ("stored",), lambda n: n + 1, ["stored by the collector (+1)", "read from postcards.bsp (-1)"]),
    ("collector", ("kernel_drops",), 5, ["5 postcards were dropped in the collector's socket"]),
    *(
        ("collector", (name,), 4, ["4 datagrams to the collector were not postcards"])
        for name in ("bad_version", "short", "trailing")
    ),
    ("collector", ("write_errors",), 1, ["1 writes of the collector failed"]),
    ("collector", ("host_drops",), {"interface": 2, "backlog": 1}, ["3 datagrams were dropped by the"]),
    ("collector", ("host_drops",), {}, ["does not say collector_host_drops"]),
    ("collector", ("unstamped",), None, ["does not say collector_unstamped"]),
    ("tracer", ("lost",), 9, ["9 TCP events were not stored by the tracer"]),
    ("tracer", ("kernel_segments_received",), 10**6, ["have no trace event"]),
    ("tracer", ("kernel_segments_resent",), 10**6, ["have no trace event"]),
    ("tracer", ("events",), lambda n: n + 9, ["TCP events happened", "(-9)"]),
    ("environment", ("frames_lost_in_backlog", "sender/eth0"), 2, ["2 frames were lost by the kernel between"]),
    ("environment", ("frames_lost_in_backlog",), {}, ["does not say backlog_drops"]),
    ("idle_rtt", ("min_ns",), 10_600_000, ["RTT was 10.600 ms instead of "]),
    ("idle_rtt", ("min_ns",), 9_400_000, ["RTT was 9.400 ms instead of "]),
    ("traffic", ("groups", 0, "exit_status"), 1, ["iperf3 of the reno group ended with status 1"]),
    ("traffic", ("errors",), ["unable to connect:\nno route", "x"], ["unable to connect: no route (and 1 more)"]),
    ("traffic", ("errors",), None, ["does not say errors"]),
    ("traffic", ("flows",), lambda flows: flows[:1], ["2 flows were asked for, traffic.json names 1"]),
    ("traffic", ("flows",), lambda flows: [*flows, flows[0] | {"id": 2}], ["30000 > 10.77.0.2:5201 tcp twice"]),
    ("traffic", ("flows", 1, "src_port"), 9, ["1 flows sent nothing through the queue (first: flow 1)"]),
    ("traffic", ("end_mono_ns",), lambda ns: ns - 500_000_000, ["ended 0.50 s early"]),
    ("traffic", ("end_mono_ns",), None, ["does not say end_mono_ns"]),
    ("spec", ("buffer_packets",), 21, ["another threshold (first: 20 packets)"]),
    ("spec", ("threshold_bytes",), 20, ["another threshold (first: 20 packets)"]),
    ("spec", ("mode",), "egress-threshold", ["are of policy 1, which is not egress-threshold"]),
    ("spec", ("mode",), "ecn", ["does not say ecn_threshold_packets"]),
    ("spec", ("delay",), "tc", ["spec.yaml asks for 0 (where netem delays"]),
]


def test_taps__captured_all_frames_of_both_ports(fresh):
    directory = fresh()
    change_spec(directory, taps=True)
    stats = {"port.1.departed": 40, "port.2.departed": 50, "port.2.rx_frames": 40, "taps_lost": 0}
    came = json.loads((directory / "switch.json").read_text())["stats"]["port.1.rx_frames"]
    for name, count in {**stats, "taps_frames": came + 130}.items():
        change(directory, "switch", ("stats", name), count)
    assert analyse(directory).reasons == []
    faults = (
        ("switch", ("stats", "taps_frames"), came + 128, "were recorded there (-2)"),
        ("switch", ("stats", "taps_lost"), 2, "2 frames could not be written to the captures of TAPS=1"),
        ("switch", ("stats", "taps_lost"), None, "does not say tap_lost"),
    )
    assert unnamed(directory, faults) == []


def test_program_of_the_users__may_drop_by_its_queues_limit_and_clone_to_nowhere(fresh):
    directory = fresh()
    digest = "0" * 64
    change_spec(directory, p4={"compiled": {"name": "router", "file": "router.json", "sha256": digest}})
    for path, value in (
        (("program", "digest"), digest), (("settings", "2", "limit_packets"), 20),
        (("stats", "port.2.queue_drops"), 3), (("stats", "clone_drops"), 4), (("stats", "priority_drops"), 5),
    ):  # fmt: skip
        change(directory, "switch", path, value)
    found = analyse(directory)
    assert found.reasons == []
    entries = ("limit_drops", "program_clone_drops", "program_priority_drops")
    assert [found.ledger[name] for name in entries] == [3, 4, 5]
    faults = (
        ("switch", ("stats", "port.1.queue_drops"), 1, "1 admitted packets were dropped"),
        ("switch", ("settings", "2", "limit_packets"), 19, "limit that spec.yaml asks for"),
        ("switch", ("program", "digest"), "1" * 64, "another P4 program"),
        ("switch", ("parameters",), {"tbl": {"target_ns": 5}}, "target_ns was 5 (table tbl)"),
    )
    assert unnamed(directory, faults) == []


def test_verdict__names_each_fault(fresh):
    directory = fresh()
    found = [(fault, reasons_after(directory, *fault[:3])) for fault in FAULTS]
    assert [
        (fault, reasons)
        for fault, reasons in found
        if not all(any(text in reason for reason in reasons) for text in fault[3])
        or (fault[0] != "spec" and len(reasons) > len(fault[3]))
        or any("\n" in reason for reason in reasons)
    ] == []


def test_verdict__survives_documents_of_another_shape(fresh):
    directory = fresh()
    shapes: tuple[Any, ...] = (None, 7, [], "x", {"port.2.x": "y", "2": 3, "arrivals": 4})
    for junk in shapes:
        for name in ("stats", "counters", "lateness"):
            change(directory, "switch", (name,), lambda _, junk=junk: junk)
        for name in ("flows", "groups", "errors", "start_mono_ns", "end_mono_ns"):
            change(directory, "traffic", (name,), lambda _, junk=junk: junk)
        assert analyse(directory).reasons
    for name in DOCUMENTS:
        (directory / f"{name}.json").unlink()
    (directory / "tcp.bst").unlink()
    a = analyse(directory)
    assert len(a.reasons) == 7
    assert a.utilization["mean"] == pytest.approx(0.95, abs=0.05)


def test_verdict__tolerates_deviations_within_the_limits(fresh, known_runs):
    directory = fresh()
    change(directory, "idle_rtt", ("min_ns",), 10_450_000)
    change(directory, "switch", ("stats", "real_span_ns.2"), 1_000_900_000)
    change(directory, "switch", ("stats", "arrivals_clamped"), 1)
    change(directory, "traffic", ("end_mono_ns",), lambda ns: ns - 50_000_000)
    change_spec(directory, delay="tc")
    for port in ("1", "2"):
        change(directory, "switch", ("settings", port, "delay"), 0)
    assert analyse(directory).reasons == []
    # The rate's error needs frames back to back.
    for virtual_ns, reasons, error in ((0, 0, None), (24_607_000, 0, 0.219), (24_608_000, 1, 0.219)):
        change(directory, "switch", ("stats", "virtual_span_ns.2"), virtual_ns)
        change(directory, "switch", ("stats", "real_span_ns.2"), 30_000_000 if virtual_ns else 0)
        a = analyse(directory)
        assert len(a.reasons) == reasons
        assert a.fidelity["rate_error_fraction"] == (error and pytest.approx(error, abs=1e-3))
    a = known_runs("two_flows").analysis
    for step_ns, reasons in ((1_000_000, 0), (1_000_001, 1)):  # a clock may slew by a millisecond
        raw = {name: replace(file, clock_step_max_ns=step_ns * (name == "tcp")) for name, file in a.run.raw.items()}
        assert len(ledger_reasons(replace(a.run, raw=raw), a.ledger)) == reasons


def test_idle_rtt__has_the_echo_on_the_bottleneck_in_it(tmp_path):
    directory = tmp_path / "rep-1"
    simulate.write_run(directory, simulate.Scenario(rate_bps=1_000_000))
    for least, good in ((10_690_000, True), (10_100_000, False), (11_200_000, False)):  # echo of 84 bytes: 0.672 ms
        change(directory, "idle_rtt", ("min_ns",), least)
        assert any(reason.startswith("delay:") for reason in analyse(directory).reasons) != good


# Postcards that contradict each other or the switch ------------------------------------------------------------------


def _with_cards(directory, cards):
    simulate.write_postcards(directory, cards)
    return analyse(directory)


def _altered(cards, position, **changes):
    values = wire.POSTCARD.decode(cards[position][8:]) | changes
    return [*cards[:position], cards[position][:8] + wire.POSTCARD.encode(**values), *cards[position + 1 :]]


def test_verdict__sees_postcards_that_cannot_be_are_missing_or_came_twice(fresh):
    directory = fresh()
    cards = simulate.read_postcards(directory)
    unit, dropped = (simulate.CARD[f"POSTCARD_{name}"] for name in ("DEPTH_CELLS", "DROPPED"))
    late = [(int.from_bytes(card[:8], "little") + 20 * 10**9).to_bytes(8, "little") + card[8:] for card in cards]
    for changed, said in (
        (
            _altered(cards, 2000, depth_packets=19),
            "1 packets report a depth that contradicts the arrivals",
        ),
        (_altered(cards, 2000, depth_packets=20), "1 packets were admitted at a depth of 20 packets or more"),
        (
            _altered(cards, 2000, depth_unit=unit, depth_packets=0, depth_cells=57),
            "1 postcards have no depth in packets",
        ),
        (_altered(cards, 2000, flags=dropped | 0x70), "1 packets were dropped at a depth below 20 packets"),
        (late, "not on one clock"),
        (cards[:700] + cards[703:], "3 postcard numbers are missing"),
    ):
        a = _with_cards(directory, changed)
        assert any(said in reason for reason in a.reasons), (said, a.reasons)
    assert a.ledger["postcards_missing"] == 3
    assert not any("contradict" in reason for reason in a.reasons)
    assert _with_cards(directory, [*cards[:700], cards[699], *cards[700:]]).ledger["postcards_duplicate"] == 1


def test_verdict__sees_another_rate(fresh):
    directory = fresh()
    for rate_bps in (49_999_000, 50_001_000, 45_000_000):
        change_spec(directory, rate_bps=rate_bps)
        change(directory, "switch", ("settings", "2", "rate"), rate_bps)
        reasons = analyse(directory).reasons
        assert any("packets left at another time than wire bits / rate" in reason for reason in reasons), rate_bps
    assert any("which is impossible" in reason for reason in reasons)


def test_misspaced__sees_one_ns(known_runs):
    queue = dict(known_runs("two_flows").analysis.queue)
    assert misspaced(queue, 50_000_000) == 0
    for off_ns in (-1, 1):
        changed = queue | {"sojourn_ns": queue["sojourn_ns"].copy()}
        changed["sojourn_ns"][np.flatnonzero(~dropped(queue))[1500]] += off_ns
        assert 1 <= misspaced(changed, 50_000_000) <= 2


def test_depth_mismatches__are_none_whatever_the_scenario(known):
    assert not any(errors.any() for errors in depth_errors(known.analysis.queue))
    changed = dict(known.analysis.queue)
    changed["depth_packets"] = changed["depth_packets"].copy()
    changed["depth_packets"][1000:1010] += np.uint32(2)
    wrong = sum(map(np.count_nonzero, depth_errors(changed)))
    assert 5 <= wrong <= 10  # fewer than 10 if some packets came in the same ns


def test_depths__of_a_clock_with_ticks_may_count_a_packet_that_left_within_a_tick():
    """The first packet leaves at `left_us`, the second comes at 10 us and finds `depth`."""
    for left_us, depth, tick_ns, error in (
        (11, 0, 0, 1), (11, 0, 1000, 0), (11, 1, 1000, 0), (9, 1, 0, 1), (9, 1, 1000, 0),
        (12, 0, 1000, 1), (8, 1, 1000, 1), (11, 2, 1000, 1),
    ):  # fmt: skip
        queue = {
            "enqueue_mono_ns": np.array([0, 10_000]),
            "sojourn_ns": np.array([1000 * left_us, 20_000]),
            "depth_packets": np.array([0, depth], dtype=np.uint32),
            "flags": np.zeros(2, dtype=np.uint8),
        }
        assert np.concatenate([*depth_errors(queue, tick_ns)]).tolist() == [0, error], (left_us, depth, tick_ns)


def test_depths__may_count_any_of_the_packets_that_left_in_the_ns_of_an_arrival():
    """As when a qdisc that is full drops several packets for one that comes."""
    for depth, error in ((0, 0), (1, 0), (2, 0), (3, 3)):
        queue = {
            "enqueue_mono_ns": np.array([0, 1000, 10_000]),
            "sojourn_ns": np.array([10_000, 9000, 20_000]),
            "depth_packets": np.array([0, 1, depth], dtype=np.uint32),
            "flags": np.zeros(3, dtype=np.uint8),
        }
        assert np.concatenate([*depth_errors(queue)]).tolist() == [0, 0, error], depth


def test_histogram_percentiles__are_upper_edges():
    found = histogram_percentiles([[10, 50], [20, 49], [1000, 1]], p50=50, p99=99, p999=99.9)
    assert found == {"p50": 0.01, "p99": 0.02, "p999": 1.0, "max": 1.0}
    assert histogram_percentiles(None, p50=50) == histogram_percentiles([], p50=50) == {"p50": None, "max": None}


def test_load_postcards__in_any_order_of_blocks_gives_one_order(fresh):
    path = fresh() / "postcards.bsp"
    before = load_postcards(path)[0]
    simulate.write_postcards(path.parent, sorted(simulate.read_postcards(path.parent), key=lambda card: card[-4:]))
    after = load_postcards(path)[0]
    for name in ("enqueue_mono_ns", "depth_packets", "tcp_seq"):
        assert (before[name] == after[name]).all()


# Other policies ------------------------------------------------------------------------------------------------------


def test_ecn__verdicts_that_cannot_be_are_seen(fresh):
    """Flips flags of one admitted packet that arrived at a queue depth."""
    directory = fresh("ecn")
    stored = simulate.read_postcards(directory)
    depths = [wire.POSTCARD.decode(card[8:]) for card in stored]
    for depth, flip, said in (
        (7, ["CE_MARKED"], "1 packets were marked that are not ECN-capable, or at a depth below 8 packets"),
        (8, ["ECT"], "1 packets were admitted at a depth of 8 packets without ECN or more"),
        (8, ["CE_MARKED", "DROPPED"], "1 packets were dropped at a depth below 20 packets"),
        (19, ["DROPPED"], "1 packets were marked that are not ECN-capable, or at a depth below 8 packets, or dropped"),
        (8, ["CE_MARKED"], None),  # a packet that brought CE along needs no mark of the switch
    ):
        position = next(i for i, card in enumerate(depths) if i > 1000 and card["depth_packets"] == depth)
        flags = depths[position]["flags"] ^ sum(simulate.CARD[f"POSTCARD_{name}"] for name in flip)
        reasons = _with_cards(directory, _altered(stored, position, flags=flags)).reasons
        assert any(said in reason for reason in reasons) if said else not reasons, (said, reasons)


def test_ecn__marks_are_those_that_the_switch_counted_and_of_the_threshold(fresh):
    directory = fresh("ecn")
    change(directory, "switch", ("counters", "arrival_marks", "2", "packets"), lambda n: n - 1)
    (reason,) = analyse(directory).reasons
    assert "marks" in reason
    change(directory, "switch", ("counters", "arrival_marks"), None)
    (reason,) = analyse(directory).reasons
    assert "marks" in reason
    change_spec(directory, ecn_threshold_packets=9)
    assert any("than spec.yaml, 9 packets" in reason for reason in analyse(directory).reasons)


def test_egress_threshold__drops_leave_the_queue_but_not_by_the_link(fresh, known_runs):
    directory, known = fresh(), known_runs("two_flows")
    change_spec(directory, mode="egress-threshold")
    cards = simulate.stored_postcards(replace(known.scenario, mode="egress-threshold"), known.truth)
    before = _with_cards(directory, cards)
    a = _with_cards(directory, _altered(cards, 2000, flags=simulate.CARD["POSTCARD_DROPPED"] | 0x70))
    assert a.reasons == []
    assert before.link.bytes_before[-1] - a.link.bytes_before[-1] == 1538
    drops, drops_before = (metrics.counts(x.queue, x.window)["drops"] or 0 for x in (a, before))
    assert drops == drops_before + 1
    depth, depth_before = (metrics.queue_depth(x.queue, x.window)["time_mean"] for x in (a, before))
    assert depth == depth_before


def test_windows_of_zero__count_except_in_fast_recovery_of_ns3():
    """They show a stopped congestion control."""
    for switch, state, share in (("driver", 0, 0.5), ("driver", stalled_flows.RECOVERY, 0.5), ("ns3", 0, 0.5),
                                 ("ns3", stalled_flows.RECOVERY, 0.0)):  # fmt: skip
        tcp = {
            "mono_ns": np.arange(4), "flow": np.zeros(4, dtype=int), "cwnd_packets": np.array([0, 3, 0, 3]),
            "ca_state": np.array([state, 0, state, 0]), "unknown_fields": np.zeros(4, dtype=np.uint64),
        }  # fmt: skip
        run: Any = SimpleNamespace(tcp=tcp, experiment=Experiment.model_construct(rtt_ns=1, switch=switch))
        assert stalled_flows._zero_windows(run, [0], 0, 4) == share


# Virtual time ---------------------------------------------------------------------------------------------------------


ECHO_NS = 10_000_000 + 84 * 8 * 20  # RTT, and 84 bytes at 50 Mb/s
LATE_BY_1 = [[0, 999], [1, 1]]
LIMITS = [  # run, document, place of the changed value, value (None: removed), part of the reason ("": valid)
    ("virtual", "switch", "lateness/2", LATE_BY_1, "a frame left the switch 1 ns late"),
    ("virtual", "switch", "lateness/1", LATE_BY_1, "a frame left the switch 1 ns late"),
    ("virtual", "switch", "lateness/3", LATE_BY_1, "a postcard left the switch 1 ns late"),
    ("virtual", "switch", "stats/gap_error_max_ns.2", 2, "2 ns off the link's"),
    ("virtual", "switch", "stats/gap_error_max_ns.2", None, "does not say gap error of port 2"),
    ("virtual", "switch", "stats/real_span_ns.2", 1_000_001_001, "the link's rate was off by -1.00e-06"),
    ("virtual", "switch", "stats/real_span_ns.2", 999_998_998, "the link's rate was off by +1.00e-06"),
    ("virtual", "switch", "stats/arrivals_clamped", 1, "moved to a later time"),
    ("virtual", "switch", "program/executor", "process", "the switch was a process"),
    ("virtual", "switch", "program/executor", None, "does not say the kind of switch"),
    ("virtual", "idle_rtt", "min_ns", ECHO_NS - 1, f"took {ECHO_NS - 1} ns"),
    ("virtual", "idle_rtt", "min_ns", ECHO_NS + 10, ""),  # for reading the clock
    ("virtual", "idle_rtt", "min_ns", ECHO_NS + 11, f"took {ECHO_NS + 11} ns"),
    ("virtual", "environment", "virtual_machine", None, "is of a run in real time"),
    ("virtual_process", "switch", "lateness/1", [[0, 999], [10_239, 1]], "10239 ns late"),
    ("virtual_process", "switch", "lateness/3", [[274_431, 1000]], ""),  # postcards may leave later
    ("virtual_process", "switch", "stats/real_span_ns.2", 1_000_010_001, "the link's rate was off by"),
    ("virtual_process", "idle_rtt", "min_ns", 10_034_000, "took 10034000 ns"),
    ("virtual_process", "switch", "program/executor", "driver", "the switch was a driver"),
    ("two_flows", "environment", "virtual_machine", {}, "is of a run in virtual time"),
]


@pytest.mark.parametrize("run", ["virtual", "virtual_process", "two_flows"])
def test_limits__are_kept_to_the_ns(known_runs, tmp_path, run):
    assert known_runs(run).analysis.reasons == []
    wrong = []
    for number, (of, name, place, value, said) in enumerate(LIMITS):
        if of == run:
            directory = shutil.copytree(known_runs(run).directory, tmp_path / str(number) / "rep-1")
            change(directory, name, place.split("/"), value)
            reasons = analyse(directory).reasons
            if [said in reason for reason in reasons] != [True] * bool(said):
                wrong.append((name, place, value, reasons))
    assert wrong == []


def test_numbering__of_many_ports_opens_few_files(tmp_path):
    ports = np.arange(600) % 200
    cards = {
        "switch_id": np.ones(600, dtype=np.uint16), "egress_port": ports.astype(np.uint16),
        "flags": np.zeros(600, dtype=np.uint8),
        "card_seq": (np.arange(600) // 200 - ports - (ports == 7) * (np.arange(600) > 300)).astype(np.uint32),
    }  # fmt: skip
    cards["card_seq"][408] += 5
    most, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + 20, hard))
    try:
        found = _numbering(tmp_path, cards)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    assert found == (5, 1)
