# SPDX-License-Identifier: MIT
"""The faults of a run, one at a time: the verdict names each."""

from dataclasses import replace

import numpy as np
import pytest

from analysis import metrics
from analysis.analyse import analyse
from analysis.fidelity import depth_errors, histogram_percentiles
from analysis.flow_rows import flow_rows
from analysis.ledger import ledger_reasons
from analysis.postcards import dropped, misspaced
from analysis.raw import load_postcards
from analysis.tests import simulate
from analysis.tests.documents import change
from wire import wire


def test_verdict__of_a_faultless_run(known):
    assert known.analysis.reasons == []
    entries = known.analysis.ledger
    cards = len(known.truth.cards)
    chain = ("switch_packets", "postcards_sent", "postcards_received", "postcards_stored", "postcards_rows")
    assert [entries[name] for name in chain] == [cards] * 5
    assert entries["tcp_events_rows"] == len(known.truth.records)


@pytest.mark.parametrize(
    ("name", "path", "value", "said"),
    [
        ("switch", ("counters", "arrivals", "2", "packets"), lambda n: n + 3, ["came to watched queues", "(-3)"]),
        ("switch", ("counters", "postcards_made", "3", "packets"), lambda n: n - 1, ["by the switch (-1)", "(+1)"]),
        ("collector", ("received",), lambda n: n - 2, ["were received by the collector (-2)", "stored"]),
        ("collector", ("stored",), lambda n: n + 1, ["stored by the collector (+1)", "read from postcards.bsp (-1)"]),
        ("collector", ("kernel_drops",), 5, ["5 postcards were dropped in the collector's socket"]),
        ("collector", ("bad_version",), 4, ["4 datagrams to the collector were not postcards"]),
        ("collector", ("write_errors",), 1, ["1 writes of the collector failed"]),
        ("collector", ("host_drops",), {"interface": 2, "backlog": 1}, ["3 datagrams were dropped by the"]),
        ("collector", ("kernel_drops",), None, ["collector.json: does not say collector_kernel_drops"]),
        ("tracer", ("lost",), 9, ["9 TCP events were not stored by the tracer"]),
        ("tracer", ("kernel_segments_received",), 10**6, ["segments (", "have no trace event"]),
        ("tracer", ("events",), lambda n: n + 9, ["TCP events happened", "(-9)"]),
        ("environment", ("frames_lost_in_backlog", "sender/eth0"), 2, ["2 frames were lost by the kernel between"]),
        ("environment", ("frames_lost_in_backlog",), None, ["environment.json: does not say backlog_drops"]),
        ("switch", ("stats", "port.1.rx_ring_drops"), 1, ["1 frames were dropped by the kernel before the"]),
        ("switch", ("stats", "port.3.tx_errors"), 2, ["2 frames could not be handed to the kernel"]),
        ("switch", ("stats", "port.2.queue_drops"), 3, ["3 admitted packets were dropped"]),
        ("switch", ("stats", "pool_exhausted"), 4, ["4 packets were dropped because the switch had no memory"]),
        ("switch", ("stats", "clone_drops"), 4, ["4 postcards were not made"]),
        ("switch", ("stats", "clock_steps"), 1, ["CLOCK_REALTIME stepped 1 times"]),
        ("switch", ("stats", "arrivals_clamped"), 100, ["of arrivals were read too late", "allowed is 0.1%"]),
        ("switch", ("stats", "real_span_ns.2"), 1_002_000_000, ["real rate was off by -0.200%"]),
        ("switch", ("stats", "virtual_span_ns.2"), None, ["switch.json: does not say rate error of port 2"]),
        ("switch", ("lateness", "2"), [[100_000, 980], [600_000, 20]], ["left port 2 at least 600 us late", "500 us"]),
        (
            "idle_rtt", ("min_ns",), 10_600_000,
            ["RTT was 10.600 ms instead of ", "(10.000 ms and an echo's own time)", "0.500 ms"],
        ),
        ("idle_rtt", ("min_ns",), None, ["idle_rtt.json: does not say min_ns"]),
        ("traffic", ("groups", 0, "exit_status"), 1, ["iperf3 of the reno group ended with status 1"]),
        ("traffic", ("errors",), ["unable to connect:\nno route", "x"], ["unable to connect: no route (and 1 more)"]),
        ("traffic", ("flows",), lambda flows: flows[:1], ["2 flows were asked for, traffic.json names 1"]),
        ("traffic", ("flows", 1, "src_port"), 9, ["1 flows sent nothing through the queue (first: flow 1)"]),
        (
            "traffic", ("end_mono_ns",), lambda ns: ns - 500_000_000,
            ["ended 0.50 s early (allowed are 0.1 s): 0.70 s of 1.20 s"],
        ),
    ],
)  # fmt: skip
def test_verdict__names_each_fault(fresh, name, path, value, said):
    directory = fresh()
    change(directory, name, path, value)
    reasons = analyse(directory).reasons
    assert reasons
    for text in said:
        assert any(text in reason for reason in reasons), reasons
    assert len(reasons) <= len(said)
    assert all("\n" not in reason for reason in reasons)


def test_verdict__tolerates_deviations_within_the_limits(fresh):
    directory = fresh()
    change(directory, "idle_rtt", ("min_ns",), 10_450_000)
    change(directory, "switch", ("stats", "real_span_ns.2"), 1_000_900_000)
    change(directory, "switch", ("stats", "arrivals_clamped"), 1)
    change(directory, "traffic", ("end_mono_ns",), lambda ns: ns - 50_000_000)
    assert analyse(directory).reasons == []


def test_idle_rtt__has_the_echo_on_the_bottleneck_in_it(tmp_path):
    directory = tmp_path / "rep-1"
    simulate.write_run(directory, simulate.Scenario(rate_bps=1_000_000))
    for least, good in ((10_690_000, True), (10_100_000, False), (11_200_000, False)):  # echo of 84 bytes: 0.672 ms
        change(directory, "idle_rtt", ("min_ns",), least)
        assert any(reason.startswith("delay:") for reason in analyse(directory).reasons) != good


@pytest.mark.parametrize(
    ("virtual_ns", "real_ns", "reasons", "error"),
    [(0, 0, 0, None), (24_607_000, 30_000_000, 0, 0.219), (24_608_000, 30_000_000, 1, 0.219)],
)
def test_rate_error__needs_frames_back_to_back(fresh, virtual_ns, real_ns, reasons, error):
    directory = fresh()
    change(directory, "switch", ("stats", "virtual_span_ns.2"), virtual_ns)
    change(directory, "switch", ("stats", "real_span_ns.2"), real_ns)
    a = analyse(directory)
    assert len(a.reasons) == reasons
    assert a.fidelity["rate_error_fraction"] == (error and pytest.approx(error, abs=1e-3))


@pytest.mark.parametrize(("step_ns", "reasons"), [(1_000_000, 0), (1_000_001, 1)])
def test_verdict__allows_a_clock_to_slew_by_a_millisecond(known_runs, step_ns, reasons):
    a = known_runs("two_flows").analysis
    raw = {name: replace(file, clock_step_max_ns=step_ns * (name == "tcp")) for name, file in a.run.raw.items()}
    assert len(ledger_reasons(replace(a.run, raw=raw), a.ledger)) == reasons


def _rewrite(directory, change, scenario=None):
    """Stores the same run with its postcards changed: change(list of stored bytes) -> list."""
    scenario = scenario or simulate.Scenario()
    cards = change(simulate.stored_postcards(scenario, simulate.Simulation(scenario).run()))
    kind, version = simulate.BLOCK["BLOCK_POSTCARDS"], simulate.CARD["POSTCARD_VERSION"]
    (directory / "postcards.bsp").write_bytes(simulate.blocks(kind, version, cards))


def test_verdict__sees_a_gap_between_postcards(fresh):
    directory = fresh()
    _rewrite(directory, lambda cards: cards[:700] + cards[703:])
    a = analyse(directory)
    assert a.ledger["postcards_missing"] == 3
    assert any("3 postcard numbers are missing" in reason for reason in a.reasons)
    assert not any("contradict" in reason for reason in a.reasons)


def test_verdict__sees_a_postcard_that_came_twice(fresh):
    directory = fresh()
    _rewrite(directory, lambda cards: [*cards[:700], cards[699], *cards[700:]])
    assert analyse(directory).ledger["postcards_duplicate"] == 1


def _altered(cards, position, **changes):
    values = wire.POSTCARD.decode(cards[position][8:]) | changes
    return [*cards[:position], cards[position][:8] + wire.POSTCARD.encode(**values), *cards[position + 1 :]]


def test_verdict__sees_a_depth_that_cannot_be(fresh):
    directory = fresh()
    _rewrite(directory, lambda cards: _altered(cards, 2000, depth_packets=19))
    reasons = analyse(directory).reasons
    assert len(reasons) == 1
    assert reasons[0].startswith(
        "queue: 1 packets report a depth that contradicts the arrivals and departures of the other packets"
    )


def test_verdict__sees_a_queue_above_its_threshold(fresh):
    directory = fresh()
    _rewrite(directory, lambda cards: _altered(cards, 2000, depth_packets=20))
    assert any(
        "1 packets were admitted at a depth of 20 packets or more" in reason for reason in analyse(directory).reasons
    )


def test_verdict__sees_depths_in_cells(fresh):
    directory = fresh()
    unit = simulate.CARD["POSTCARD_DEPTH_CELLS"]
    _rewrite(directory, lambda cards: _altered(cards, 2000, depth_unit=unit, depth_packets=0, depth_cells=57))
    assert any(
        reason.startswith("queue: 1 postcards have no depth in packets") for reason in analyse(directory).reasons
    )


def test_verdict__sees_drops_below_the_threshold(fresh):
    directory = fresh()
    flags = simulate.CARD["POSTCARD_DROPPED"] | 0x70
    _rewrite(directory, lambda cards: _altered(cards, 2000, flags=flags))
    assert any("1 packets were dropped at a depth below 20 packets" in reason for reason in analyse(directory).reasons)


def test_verdict__sees_two_clocks(fresh):
    directory = fresh()

    def late(cards):
        return [
            (int.from_bytes(card[:8], "little") + 20_000_000_000).to_bytes(8, "little") + card[8:] for card in cards
        ]

    _rewrite(directory, late)
    assert any("not on one clock" in reason for reason in analyse(directory).reasons)


def test_verdict__sees_a_link_faster_than_its_rate(fresh):
    directory = fresh()
    text = (directory / "spec.yaml").read_text()
    (directory / "spec.yaml").write_text(text.replace("rate_bps: 50000000", "rate_bps: 40000000"))
    assert any("which is impossible" in reason for reason in analyse(directory).reasons)


def test_verdict__of_a_run_without_documents_names_each(fresh):
    directory = fresh()
    for name in ("environment", "collector", "tracer", "switch", "traffic", "idle_rtt"):
        (directory / f"{name}.json").unlink()
    (directory / "tcp.bst").unlink()
    a = analyse(directory)
    assert len(a.reasons) == 7
    assert a.utilization["mean"] == pytest.approx(0.95, abs=0.05)


@pytest.mark.parametrize("junk", [-1, "7", True, [1], {}, 1e999, 1 << 64])
@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("switch", ("stats", "port.2.queue_drops")),
        ("switch", ("stats", "pool_exhausted")),
        ("switch", ("stats", "departures.2")),
        ("switch", ("stats", "virtual_span_ns.2")),
        ("switch", ("counters", "arrivals", "2", "packets")),
        ("switch", ("lateness", "2", 1, 1)),
        ("switch", ("settings", "2", "delay")),
        ("collector", ("stored",)),
        ("collector", ("host_drops", "interface")),
        ("tracer", ("lost",)),
        ("environment", ("frames_lost_in_backlog", "sender/eth0")),
        ("idle_rtt", ("min_ns",)),
    ],
)
def test_verdict__accepts_only_counts_as_counts(fresh, name, path, junk):
    directory = fresh()
    change(directory, name, path, lambda _: junk)
    reasons = analyse(directory).reasons
    assert any("does not say" in reason or "JSON" in reason for reason in reasons), reasons


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("name", ["environment", "collector", "tracer", "switch", "traffic", "idle_rtt"])
def test_verdict__refuses_constants_that_are_no_json(fresh, name, constant):
    directory = fresh()
    path = directory / f"{name}.json"
    path.write_text(path.read_text().replace("{", f'{{"x": {constant}, ', 1))
    assert [reason for reason in analyse(directory).reasons if f"{constant} is not a JSON number" in reason]


@pytest.mark.parametrize("departures", [999, 1001])
def test_verdict__compares_the_histogram_with_departures(fresh, departures):
    directory = fresh()
    change(directory, "switch", ("stats", "departures.2"), departures)
    (reason,) = analyse(directory).reasons
    assert f"counts 1000 frames, but {departures} departed" in reason


def test_verdict__sees_a_flow_that_is_named_twice(fresh):
    directory = fresh()
    change(directory, "traffic", ("flows",), lambda flows: [*flows, flows[0] | {"id": 2}])
    a = analyse(directory)
    assert len(a.reasons) == 1
    assert "names flow 10.77.0.1:30000 > 10.77.0.2:5201 tcp twice" in a.reasons[0]
    assert len(a.run.traffic) == 2


@pytest.mark.parametrize("name", ["environment", "collector", "tracer", "switch", "traffic", "idle_rtt"])
def test_verdict__does_not_trust_an_empty_document(fresh, name):
    directory = fresh()
    (directory / f"{name}.json").write_text("{}")
    assert any(reason.startswith(f"{name}.json: does not say") for reason in analyse(directory).reasons)


@pytest.mark.parametrize(
    ("name", "path", "said"),
    [
        ("collector", ("host_drops",), "collector_host_drops"),
        ("collector", ("unstamped",), "collector_unstamped"),
        ("switch", ("stats", "clone_drops"), "clone_drops"),
        ("switch", ("stats", "clock_steps"), "clock steps"),
        ("switch", ("stats", "port.1.rx_frames"), "clamped arrivals"),
        ("traffic", ("errors",), "errors"),
        ("traffic", ("groups",), "groups"),
        ("traffic", ("end_mono_ns",), "end_mono_ns"),
    ],
)
def test_verdict__names_missing_keys_of_documents(fresh, name, path, said):
    directory = fresh()
    change(directory, name, path, None)
    (reason,) = analyse(directory).reasons
    assert reason.startswith(f"{name}.json: does not say {said}")


@pytest.mark.parametrize(("name", "key"), [("collector", "host_drops"), ("environment", "frames_lost_in_backlog")])
def test_verdict__does_not_take_an_empty_account_for_zero(fresh, name, key):
    directory = fresh()
    change(directory, name, (key,), lambda _: {})
    (reason,) = analyse(directory).reasons
    assert "does not say" in reason


@pytest.mark.parametrize("what", ["stats", "counters", "lateness"])
@pytest.mark.parametrize("junk", [None, 7, [], "x", {"port.2.x": "y", "2": 3, "arrivals": 4}])
def test_verdict__survives_documents_of_another_shape(fresh, what, junk):
    directory = fresh()
    change(directory, "switch", (what,), lambda _: junk)
    for name in ("flows", "groups", "errors", "start_mono_ns", "end_mono_ns"):
        change(directory, "traffic", (name,), lambda _: junk)
    assert analyse(directory).reasons


def test_depth_mismatches__are_none_whatever_the_scenario(known):
    assert not depth_errors(known.analysis.queue).any()
    changed = dict(known.analysis.queue)
    changed["depth_packets"] = changed["depth_packets"].copy()
    changed["depth_packets"][1000:1010] += np.uint32(2)
    assert 5 <= np.count_nonzero(depth_errors(changed)) <= 10  # fewer than 10 if some packets came in the same ns


@pytest.mark.parametrize(("left_us", "depth", "tick_ns", "error"), [
    (11, 0, 0, 1), (11, 0, 1000, 0), (11, 1, 1000, 0), (9, 1, 0, 1), (9, 1, 1000, 0),
    (12, 0, 1000, 1), (8, 1, 1000, 1), (11, 2, 1000, 1),
])  # fmt: skip
def test_depths__of_a_clock_with_ticks_may_count_a_packet_that_left_within_a_tick(left_us, depth, tick_ns, error):
    """The first packet leaves at `left_us`, the second comes at 10 us and finds `depth`."""
    queue = {
        "enqueue_mono_ns": np.array([0, 10_000]),
        "sojourn_ns": np.array([1000 * left_us, 20_000]),
        "depth_packets": np.array([0, depth], dtype=np.uint32),
        "flags": np.zeros(2, dtype=np.uint8),
    }
    assert depth_errors(queue, tick_ns).tolist() == [0, error]


def test_histogram_percentiles__are_upper_edges():
    buckets = [[10, 50], [20, 49], [1000, 1]]
    assert histogram_percentiles(buckets, p50=50, p99=99, p999=99.9) == {
        "p50": 0.01, "p99": 0.02, "p999": 1.0, "max": 1.0,
    }  # fmt: skip
    assert histogram_percentiles([], p50=50) == {"p50": None, "max": None}
    assert histogram_percentiles("junk", p50=50) == {"p50": None, "max": None}


def test_load_postcards__in_any_order_of_blocks_gives_one_order(fresh):
    directory = fresh()
    before = load_postcards(directory / "postcards.bsp")[0]
    _rewrite(directory, lambda cards: sorted(cards, key=lambda card: card[-4:]))
    after = load_postcards(directory / "postcards.bsp")[0]
    for name in ("enqueue_mono_ns", "depth_packets", "tcp_seq"):
        assert (before[name] == after[name]).all()


def _respec(directory, old, new):
    text = (directory / "spec.yaml").read_text()
    assert text.count(old) == 1
    (directory / "spec.yaml").write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("settings", "2", "rate"), 50_000_001, "a rate of 50000001 bit/s, spec.yaml asks for 50000000"),
        (("settings", "1", "delay"), lambda ns: ns + 1, "delays add up to 10000001 ns, spec.yaml asks for 10000000"),
        (("settings", "2", "rate"), None, "does not say the bottleneck's rate"),
        (("settings", "3", "delay"), None, "does not say the delays"),
        (("settings",), None, "does not say the bottleneck's rate, the delays"),
        (("bottleneck_port",), None, "does not say bottleneck_port"),
    ],
)
def test_settings__of_the_switch_are_those_of_the_spec(fresh, path, value, said):
    directory = fresh()
    change(directory, "switch", path, value)
    (reason,) = analyse(directory).reasons
    assert said in reason


def test_settings__with_netem_the_switch_must_not_delay(fresh):
    directory = fresh()
    _respec(directory, "delay: switch", "delay: tc")
    (reason,) = analyse(directory).reasons
    assert "spec.yaml asks for 0 (where netem delays" in reason
    for port in ("1", "2"):
        change(directory, "switch", ("settings", port, "delay"), 0)
    assert analyse(directory).reasons == []


@pytest.mark.parametrize("rate_bps", [49_999_000, 50_001_000, 50_010_000, 45_000_000])
def test_settings__another_rate_in_spec_and_switch_contradicts_the_postcards(fresh, rate_bps):
    directory = fresh()
    _respec(directory, "rate_bps: 50000000", f"rate_bps: {rate_bps}")
    change(directory, "switch", ("settings", "2", "rate"), rate_bps)
    assert any("packets left at another time than wire bits / rate" in reason for reason in analyse(directory).reasons)


@pytest.mark.parametrize("off_ns", [-1, 1])
def test_misspaced__sees_one_ns(known_runs, off_ns):
    a = known_runs("two_flows").analysis
    queue = dict(a.queue)
    queue["sojourn_ns"] = queue["sojourn_ns"].copy()
    queue["sojourn_ns"][np.flatnonzero(~dropped(queue))[1500]] += off_ns
    assert misspaced(a.queue, 50_000_000) == 0
    assert 1 <= misspaced(queue, 50_000_000) <= 2


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "buffer_packets: 20",
            "buffer_packets: 21",
            "another threshold (first: 20 packets) than spec.yaml, 21 packets",
        ),
        ("threshold_bytes: null\n", "threshold_bytes: 20\n", "another threshold (first: 20 packets)"),
        ("mode: tail-drop", "mode: egress-threshold", "are of policy 1, which is not egress-threshold"),
        ("mode: tail-drop", "mode: red", "mode 'red' is none of"),
        ("mode: tail-drop", "mode: ecn", "does not say ecn_threshold_packets"),
    ],
)
def test_policy__in_the_postcards_is_that_of_the_spec(fresh, old, new, said):
    directory = fresh()
    if "bytes" in old:
        old, new = "\n" + old, "\n" + new  # from the line's start: ecn_threshold_bytes has the same end
    _respec(directory, old, new)
    assert any(said in reason for reason in analyse(directory).reasons)


def test_ecn__marks_are_counted(known_runs):
    known = known_runs("ecn")
    a = known.analysis
    inside = [card for card in known.truth.cards if a.window.start_ns <= card["enqueue_ns"] < a.window.end_ns]
    marks = sum(bool(card["flags"] & simulate.CARD["POSTCARD_CE_MARKED"]) for card in inside)
    assert marks > 500
    assert metrics.counts(a.queue, a.window)["marks"] == marks
    flows = flow_rows(a.run, a.queue, a.segments, a.trace, a.good, a.window)
    assert sum(flow["marks"] for flow in flows) == marks


def _flip(known_runs, directory, at_depth, flip):
    """Flips flags of one admitted packet that arrived at the queue depth `at_depth`."""
    known = known_runs("ecn")
    depths = [wire.POSTCARD.decode(card[8:]) for card in simulate.stored_postcards(known.scenario, known.truth)]
    position = next(i for i, card in enumerate(depths) if i > 1000 and card["depth_packets"] == at_depth)
    flags = depths[position]["flags"] ^ sum(simulate.CARD[f"POSTCARD_{name}"] for name in flip)
    _rewrite(directory, lambda cards: _altered(cards, position, flags=flags), known.scenario)


@pytest.mark.parametrize(
    ("depth", "flip", "said"),
    [
        (7, ["CE_MARKED"], "1 packets were marked that are not ECN-capable, or at a depth below 8 packets"),
        (8, ["ECT"], "1 packets were admitted at a depth of 8 packets without ECN or more"),
        (8, ["CE_MARKED", "DROPPED"], "1 packets were dropped at a depth below 20 packets"),
        (19, ["DROPPED"], "1 packets were marked that are not ECN-capable, or at a depth below 8 packets, or dropped"),
    ],
)
def test_ecn__verdicts_that_cannot_be_are_seen(fresh, known_runs, depth, flip, said):
    directory = fresh("ecn")
    _flip(known_runs, directory, depth, flip)
    assert any(said in reason for reason in analyse(directory).reasons)


def test_ecn__a_packet_that_brought_ce_along_needs_no_mark_of_the_switch(fresh, known_runs):
    directory = fresh("ecn")
    _flip(known_runs, directory, 8, ["CE_MARKED"])
    assert analyse(directory).reasons == []


@pytest.mark.parametrize("value", [lambda n: n - 1, None])
def test_ecn__marks_are_those_that_the_switch_counted(fresh, value):
    directory = fresh("ecn")
    change(directory, "switch", ("counters", "arrival_marks") + (() if value is None else ("2", "packets")), value)
    (reason,) = analyse(directory).reasons
    assert "marks" in reason


def test_ecn__a_threshold_that_was_never_set_is_seen(fresh):
    directory = fresh("ecn")
    _respec(directory, "ecn_threshold_packets: 8", "ecn_threshold_packets: 9")
    assert any("than spec.yaml, 9 packets" in reason for reason in analyse(directory).reasons)


def test_egress_threshold__drops_leave_the_queue_but_not_by_the_link(fresh):
    directory = fresh()
    scenario = simulate.Scenario(mode="egress-threshold")
    _rewrite(directory, lambda cards: cards, scenario)
    _respec(directory, "mode: tail-drop", "mode: egress-threshold")
    before = analyse(directory)
    flags = simulate.CARD["POSTCARD_DROPPED"] | 0x70
    _rewrite(directory, lambda cards: _altered(cards, 2000, flags=flags), scenario)
    a = analyse(directory)
    assert a.reasons == []
    assert before.link.bytes_before[-1] - a.link.bytes_before[-1] == 1538
    drops, drops_before = (metrics.counts(x.queue, x.window)["drops"] or 0 for x in (a, before))
    assert drops == drops_before + 1
    depth, depth_before = (metrics.queue_depth(x.queue, x.window)["time_mean"] for x in (a, before))
    assert depth == depth_before
