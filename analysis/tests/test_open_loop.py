# SPDX-License-Identifier: MIT
"""Our own generators' runs: the sink's goodput, and open-loop traffic compared with theory and with its own ledger."""

import json
import shutil

import numpy as np
import pytest
import yaml

from analysis.figures import queue_depth_distribution
from analysis.judge.analyse import analyse
from analysis.measure import open_loop
from analysis.results.summary import summarize
from analysis.tests import simulate
from analysis.tests.documents import change, change_spec
from analysis.tests.simulate import BLOCK, CARD, START_NS
from analysis.tests.test_validity import unnamed
from analysis.theory import packet_sizes, short_flows
from lib.frames import ETHERNET_BYTES, WIRE_EXTRA_BYTES
from model.experiment import Experiment
from softswitch.tests.fifo_model import fifo
from wire import wire

GOODPUT = wire.GOODPUT_RECORD
INTERVAL_NS = 10_000_000


def write_sink(directory, records, flows, **more):
    """Writes goodput.bsg of records (interval number, flow, bytes), and traffic_sink.json."""
    data = [
        GOODPUT.encode(
            interval_mono_ns=at * INTERVAL_NS, payload_bytes=size, reads=1, src_port=30_000 + flow, dst_port=5201
        )
        for at, flow, size in records
    ]
    raw = simulate.blocks(BLOCK["BLOCK_GOODPUT"], GOODPUT.const["GOODPUT_RECORD_VERSION"], data) if data else b""
    (directory / "goodput.bsg").write_bytes(raw)
    summary = {"interval_ns": INTERVAL_NS, "records_stored": len(data), "write_errors": 0, "connections_refused": 0}
    summary |= {"datagrams_dropped": 0, "flows": flows, **more}
    (directory / "traffic_sink.json").write_text(json.dumps(summary))


@pytest.fixture
def sunk(fresh):
    """The repetition two_flows as if our own generator had made it: flow 0 got 1000 bytes per interval, flow 1 3000.
    One record is of a flow that is not in traffic.json.
    """
    directory = fresh("two_flows")
    change_spec(directory, generator="epoll")
    change(directory, "traffic", ("generator",), "epoll")
    first = START_NS // INTERVAL_NS
    records = [(first + at, flow, (1000, 3000)[flow]) for at in range(140) for flow in (0, 1)]
    write_sink(directory, [*records, (first + 30, 7, 10**6)], [])
    return directory


def test_sink__goodput_is_of_the_measurement_window(sunk):
    analysis = analyse(sunk)
    assert analysis.reasons == []
    summary = summarize(analysis)
    assert summary["application_goodput_bps"] == pytest.approx(4000 * 8 / 0.01)
    assert summary["application_goodput_p01_bps"] == pytest.approx(4000 * 8 / 0.01)
    assert [flow["application_goodput_bps"] for flow in summary["flows"]] == pytest.approx([8e5, 24e5])
    assert summary["jain_index"] == pytest.approx(1, rel=1e-4)  # of goodput at the queue, equal for both flows
    assert (summary["ledger"]["goodput_records"], summary["ledger"]["goodput_rows"]) == (281, 281)


def test_sink__faults_are_named(sunk):
    faults = [
        ("traffic_sink", ("records_stored",), 282, "282 goodput records"),
        ("traffic_sink", ("write_errors",), 1, "writes of the traffic sink"),
        ("traffic_sink", ("connections_refused",), None, "does not say connections"),
        ("traffic", ("generator",), "iperf3", "spec.yaml asks for epoll"),
    ]
    assert unnamed(sunk, faults) == []
    raw = sunk / "goodput.bsg"
    raw.write_bytes(raw.read_bytes()[:-1])
    assert any("goodput.bsg: damaged" in reason for reason in analyse(sunk).reasons)
    for name in ("goodput.bsg", "traffic_sink.json"):
        (sunk / name).unlink()
        assert any(f"{name}: missing" in reason for reason in analyse(sunk).reasons)


def write_open_loop(directory, load=0.8, sizes="fixed", packets=20_000, buffer=500, seed=1):
    """A repetition of Poisson arrivals at a link of 100 Mb/s, where a byte takes 80 ns."""
    scenario = simulate.Scenario(flows=4, rate_bps=100_000_000, threshold=buffer, warmup_ns=0)
    rng = np.random.default_rng(seed)
    values, probabilities = packet_sizes.packet_sizes(sizes, 1500)
    lengths = rng.choice(values, packets, p=probabilities)
    mean_ns = np.dot(values + ETHERNET_BYTES + WIRE_EXTRA_BYTES, probabilities) * 80 / load
    of_flow = short_flows.slow_start_bursts(int(sizes[7:-1])) if sizes.startswith("bursts") else [1]
    bursts = rng.choice(of_flow, packets)
    came = START_NS + np.cumsum(rng.exponential(mean_ns * bursts.mean(), packets)).astype(np.int64)
    came = np.repeat(came, bursts)[:packets]
    flows = rng.integers(0, 4, packets)
    scenario.duration_ns = int(came[-1]) - START_NS
    truth, seq = simulate.Truth(), {True: 0, False: 0}
    arrivals = list(zip(came.tolist(), (lengths + ETHERNET_BYTES).tolist(), strict=True))
    queued = fifo(arrivals, scenario.rate_bps, admits=lambda _, depth, size: depth < buffer)
    for (came_ns, frame_bytes), packet in zip(arrivals, queued, strict=True):
        refused = CARD["POSTCARD_DROPPED"] | CARD["POSTCARD_AT_INGRESS"] if packet.dropped else 0
        truth.cards.append(
            {
                "enqueue_ns": came_ns, "sojourn_ns": (packet.departure_ns or came_ns) - came_ns,
                "flags": CARD["POSTCARD_HAS_IP"] | CARD["POSTCARD_HAS_PORTS"] | refused,
                "depth_packets": packet.depth_packets, "depth_bytes": packet.depth_bytes, "packet_bytes": frame_bytes,
                "card_seq": seq[packet.dropped], "tcp_seq": 0, "tcp_flags": 0, "ip_protocol": 17,
            }
        )  # fmt: skip
        seq[packet.dropped] += 1
    truth.arrival_flow = flows.tolist()
    simulate.write_run(directory, scenario, truth)
    change_spec(
        directory, generator=None, mtu_bytes=1500, wire_bytes=1538,
        groups=[{"kind": "open-loop", "flows": 4, "load": load, "sizes": sizes, "arrivals": "poisson"}],
    )  # fmt: skip
    kept = flows[[not packet.dropped for packet in queued]]
    sent, received = np.bincount(flows, minlength=4).tolist(), np.bincount(kept, minlength=4).tolist()
    lateness = [[1, packets - 10], [65536, 10]]
    for name, value in {
        "generator": "open-loop", "groups": [{"cc": None, "flows": 4, "exit_status": 0}],
        "open_loop": {"datagrams": packets, "unsent": 0, "lateness_ns": lateness},
        "flows": lambda of: [
            flow | {"cc": None, "protocol": "udp", "datagrams": n} for flow, n in zip(of, sent, strict=True)
        ],
    }.items():  # fmt: skip
        change(directory, "traffic", (name,), value)
    write_sink(directory, [], [{"src_port": 30_000 + flow, "reads": count} for flow, count in enumerate(received)])
    return directory


@pytest.fixture(scope="module")
def open_loop_run(tmp_path_factory):
    return write_open_loop(tmp_path_factory.mktemp("open") / "rep-1")


@pytest.fixture
def copy(open_loop_run, tmp_path):
    return shutil.copytree(open_loop_run, tmp_path / "rep-1")


def test_open_loop__is_valid_without_a_trace_and_has_no_windows(open_loop_run):
    analysis = analyse(open_loop_run)
    assert analysis.reasons == []
    summary = summarize(analysis)
    assert [summary[name] for name in ("goodput_bps", "goodput_p01_bps", "jain_index")] == [None] * 3
    assert summary["almost_fairness"]["delta"] is None
    assert summary["rules"]["sqrt_n_packets"] is None
    assert summary["drained_fraction"] is None
    assert summary["open_loop"]["model"] == "M/D/1/500"
    drawn = queue_depth_distribution.draw(queue_depth_distribution.prepare(analysis))
    assert "M/D/1/500 in theory" in drawn.axes[0].get_legend_handles_labels()[1]
    assert {flow["cc"] for flow in summary["flows"]} == {None}
    assert all(flow["five_tuple"].endswith(" udp") for flow in summary["flows"])
    ledger = summary["ledger"]
    assert {ledger[f"datagrams_{name}"] for name in ("sent", "queued", "departed", "received")} == {20_000}


@pytest.mark.parametrize(
    ("load", "sizes", "buffer", "name"),
    [
        (1.3, "exponential", 20, "M/G/1/20"),
        (0.6, "bursts:14p", 500, "M[X]/D/1/500"),
        (0.9, "bursts:14p", 12, "M[X]/D/1/12"),
    ],
)
def test_open_loop__depth_is_the_theorys(tmp_path, load, sizes, buffer, name):
    analysis = analyse(write_open_loop(tmp_path / "rep-1", load, sizes, 30_000, buffer, seed=2))
    assert analysis.reasons == []
    summary = summarize(analysis)
    found = summary["open_loop"]
    depth, over_time, drops = (found.get(n) for n in ("mean_depth_packets", "time_mean_depth_packets", "drop_fraction"))
    assert found["model"] == name
    assert found["offered_load"] == pytest.approx(load, rel=0.05)
    assert drops["measured"] == pytest.approx(drops["theory"], abs=0.012)
    assert found["depth_distance"] < 0.03
    assert (over_time is not None) == sizes.startswith("bursts")
    for mean in (depth, over_time or depth):
        assert abs(mean["measured"] - mean["theory"]) < 4 * mean["standard_error"] + 0.01 * mean["theory"]
    if over_time:
        assert over_time["measured"] == pytest.approx(summary["queue_depth_packets"]["time_mean"], rel=1e-12)
        if buffer >= 500:
            bursts = short_flows.slow_start_bursts(14)
            assert over_time["theory"] == pytest.approx(short_flows.mean_depth(load, bursts))
            # (1 + 6 + 28) / 14: mean of the earlier packets of the same burst
            assert depth["theory"] - over_time["theory"] == pytest.approx(2.5)


def test_open_loop__without_a_closed_form_has_no_theory(copy):
    spec = yaml.safe_load((copy / "spec.yaml").read_text())
    (group,) = spec["groups"]
    for more in (
        {"groups": [group | {"arrivals": "cbr"}]},
        {"mode": "egress-threshold"},
        {"threshold_bytes": 9000},
        {"groups": [group | {"load": 1.2}], "buffer_packets": 10**6},
    ):
        (copy / "spec.yaml").write_text(yaml.safe_dump(spec | more))
        found = summarize(analyse(copy))["open_loop"]
        assert [found["model"], found["mean_depth_packets"]["theory"], found["depth_distance"]] == [None] * 3, more
    marking = open_loop.model(Experiment.model_validate(spec | {"mode": "ecn", "ecn_threshold_packets": 7}))
    assert marking
    assert marking.name == "M/D/1/7"


def test_open_loop__faults_are_named(copy):
    faults = [
        ("traffic", ("open_loop", "datagrams"), 20_001, "20001 datagrams were sent, 20000 came to the"),
        ("traffic", ("open_loop", "unsent"), 2, "2 datagrams found no room in the sending host"),
        ("traffic", ("open_loop", "lateness_ns"), [[1 << 20, 20_000]], "sent 1049 us or more"),
        ("traffic", ("open_loop", "lateness_ns"), None, "does not say lateness_ns"),
        ("traffic", ("open_loop",), None, "traffic.json: does not say datagrams_sent, datagrams_unsent"),
        ("traffic", ("flows",), lambda flows: flows[:3], "4 flows were asked for, traffic.json names 3"),
        ("traffic", ("groups", 0, "exit_status"), 1, "open-loop ended with status 1"),
        ("traffic_sink", ("flows",), lambda flows: flows[:3], "20000 datagrams left the queue, "),
        ("traffic_sink", ("flows",), lambda _: None, "traffic_sink.json: does not say datagrams_received"),
        ("traffic_sink", ("datagrams_dropped",), 3, "3 datagrams found no room in the sink's socket"),
    ]
    assert unnamed(copy, faults) == []
