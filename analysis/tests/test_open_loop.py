# SPDX-License-Identifier: MIT
"""Our own generators' runs: the sink's goodput, and open-loop traffic compared with theory and with its own ledger."""

import json

import numpy as np
import pytest
import yaml

from analysis import open_loop
from analysis.analyse import analyse
from analysis.derive import derive
from analysis.summary import summarize
from analysis.tests import simulate
from analysis.tests.simulate import BLOCK, CARD, START_NS
from analysis.theory import packet_sizes, short_flows
from lib.errors import InputError
from lib.frames import ETHERNET_BYTES, WIRE_EXTRA_BYTES
from wire import wire

GOODPUT = wire.GOODPUT_RECORD
INTERVAL_NS = 10_000_000


def change(path, edit):
    document = json.loads(path.read_text())
    edit(document)
    path.write_text(json.dumps(document))


def change_spec(directory, **more):
    path = directory / "spec.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | more))


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
    change_spec(directory, generator="epoll", traffic="long")
    change(directory / "traffic.json", lambda traffic: traffic.update(generator="epoll"))
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


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda d: (d / "goodput.bsg").unlink(), "goodput.bsg: missing"),
        (lambda d: (d / "traffic_sink.json").unlink(), "traffic_sink.json: missing"),
        (lambda d: change(d / "traffic_sink.json", lambda s: s.update(records_stored=282)), "282 goodput records"),
        (lambda d: change(d / "traffic_sink.json", lambda s: s.update(write_errors=1)), "writes of the traffic sink"),
        (lambda d: change(d / "traffic_sink.json", lambda s: s.pop("connections_refused")), "does not say connections"),
        (lambda d: change(d / "traffic.json", lambda s: s.update(generator="iperf3")), "spec.yaml asks for epoll"),
        (lambda d: (d / "goodput.bsg").write_bytes((d / "goodput.bsg").read_bytes()[:-1]), "goodput.bsg: damaged"),
    ],
)
def test_sink__faults_are_named(sunk, edit, said):
    edit(sunk)
    analysis = analyse(sunk)
    assert any(said in reason for reason in analysis.reasons)
    summarize(analysis)


def write_open_loop(directory, load=0.8, sizes="fixed", packets=20_000, buffer=500, seed=1):
    """A repetition of Poisson arrivals at a link of 100 Mb/s, where a byte takes 80 ns."""
    scenario = simulate.Scenario(flows=4, rate_bps=100_000_000, threshold=buffer, warmup_ns=0)
    rng = np.random.default_rng(seed)
    values, probabilities = packet_sizes.packet_sizes(sizes, 1500)
    lengths = rng.choice(values, packets, p=probabilities)
    mean_ns = np.dot(values + ETHERNET_BYTES + WIRE_EXTRA_BYTES, probabilities) * 80 / load
    if sizes.startswith("bursts"):
        bursts = rng.choice(short_flows.slow_start_bursts(int(sizes[7:-1])), packets)
        mean_ns *= bursts.mean()
        came = START_NS + np.cumsum(rng.exponential(mean_ns, packets)).astype(np.int64)
        came = np.repeat(came, bursts)[:packets]
    else:
        came = START_NS + np.cumsum(rng.exponential(mean_ns, packets)).astype(np.int64)
    flows = rng.integers(0, 4, packets)
    scenario.duration_ns = int(came[-1]) - START_NS
    truth = simulate.Truth()
    departures: list[int] = []
    queued: list[int] = []
    free_ns, seq = 0, {True: 0, False: 0}
    for now, length, flow in zip(came.tolist(), lengths.tolist(), flows.tolist(), strict=True):
        while departures and departures[0] <= now:
            departures.pop(0)
            queued.pop(0)
        refused = len(departures) >= buffer
        card = {"enqueue_ns": now, "sojourn_ns": 0, "depth_packets": len(departures), "depth_bytes": sum(queued)}
        card |= {"packet_bytes": length + 14, "tcp_seq": 0, "tcp_flags": 0, "ip_protocol": 17, "card_seq": seq[refused]}
        card["flags"] = CARD["POSTCARD_HAS_IP"] | CARD["POSTCARD_HAS_PORTS"]
        seq[refused] += 1
        if refused:
            card["flags"] |= CARD["POSTCARD_DROPPED"] | CARD["POSTCARD_AT_INGRESS"]
        else:
            free_ns = max(free_ns, now) + (length + 38) * 80
            card["sojourn_ns"] = free_ns - now
            departures.append(free_ns)
            queued.append(length + 14)
        truth.cards.append(card)
        truth.arrival_flow.append(flow)
    simulate.write_run(directory, scenario, truth)
    change_spec(
        directory, traffic="open-loop", generator=None, groups=[], load=load, sizes=sizes, arrivals="poisson",
        datagram_flows=4, mtu_bytes=1500, wire_bytes=1538,
    )  # fmt: skip
    kept = flows[[not card["flags"] & CARD["POSTCARD_DROPPED"] for card in truth.cards]]
    sent, received = np.bincount(flows, minlength=4).tolist(), np.bincount(kept, minlength=4).tolist()

    def as_open_loop(traffic):
        traffic["generator"] = "open-loop"
        traffic["groups"] = [{"cc": None, "flows": 4, "exit_status": 0}]
        traffic["open_loop"] = {"datagrams": packets, "unsent": 0, "lateness_ns": [[1, packets - 10], [65536, 10]]}
        for flow, count in zip(traffic["flows"], sent, strict=True):
            flow.update(cc=None, protocol="udp", datagrams=count)

    change(directory / "traffic.json", as_open_loop)
    write_sink(directory, [], [{"src_port": 30_000 + flow, "reads": count} for flow, count in enumerate(received)])
    return directory


@pytest.fixture(scope="module")
def open_loop_run(tmp_path_factory):
    return write_open_loop(tmp_path_factory.mktemp("open") / "rep-1")


@pytest.fixture
def copy(open_loop_run, tmp_path):
    import shutil

    return shutil.copytree(open_loop_run, tmp_path / "rep-1")


def test_open_loop__is_valid_without_a_trace_and_has_no_windows(open_loop_run):
    analysis = analyse(open_loop_run)
    assert analysis.reasons == []
    summary = summarize(analysis)
    assert [summary[name] for name in ("goodput_bps", "goodput_p01_bps", "jain_index")] == [None] * 3
    assert summary["almost_fairness"]["delta"] is None
    assert summary["rules"]["sqrt_n_packets"] is None
    assert summary["drained_fraction"] is None
    assert {flow["cc"] for flow in summary["flows"]} == {None}
    assert all(flow["five_tuple"].endswith(" udp") for flow in summary["flows"])
    ledger = summary["ledger"]
    assert {ledger[f"datagrams_{name}"] for name in ("sent", "queued", "departed", "received")} == {20_000}


@pytest.mark.parametrize(
    ("load", "sizes", "buffer", "name"),
    [
        (0.7, "fixed", 500, "M/D/1/500"),
        (0.7, "bimodal", 500, "M/G/1/500"),
        (0.6, "exponential", 5000, "M/G/1"),
        (0.9, "fixed", 6, "M/D/1/6"),
        (1.3, "exponential", 20, "M/G/1/20"),
    ],
)
def test_open_loop__depth_is_the_theorys(tmp_path, load, sizes, buffer, name):
    analysis = analyse(write_open_loop(tmp_path / "rep-1", load, sizes, 30_000, buffer, seed=2))
    assert analysis.reasons == []
    open_loop = summarize(analysis)["open_loop"]
    depth, drops = open_loop["mean_depth_packets"], open_loop["drop_fraction"]
    assert open_loop["model"] == name
    assert open_loop["offered_load"] == pytest.approx(load, rel=0.03)
    assert abs(depth["measured"] - depth["theory"]) < 3 * depth["standard_error"] + 0.01 * depth["theory"]
    assert drops["measured"] == pytest.approx(drops["theory"], abs=0.012)
    assert open_loop["depth_distance"] < 0.03


@pytest.mark.parametrize(
    ("load", "buffer", "name"), [(0.6, 500, "M[X]/D/1/500"), (0.6, 5000, "M[X]/D/1"), (0.9, 12, "M[X]/D/1/12")]
)
def test_open_loop__depth_of_bursts_is_the_theorys_over_time_and_at_arrivals(tmp_path, load, buffer, name):
    analysis = analyse(write_open_loop(tmp_path / "rep-1", load, "bursts:14p", 40_000, buffer, seed=3))
    assert analysis.reasons == []
    open_loop = summarize(analysis)["open_loop"]
    assert open_loop["model"] == name
    for depth in (open_loop["mean_depth_packets"], open_loop["time_mean_depth_packets"]):
        assert abs(depth["measured"] - depth["theory"]) < 4 * depth["standard_error"]
        assert depth["standard_error"] < 0.06 * depth["theory"]
    difference = open_loop["mean_depth_packets"]["theory"] - open_loop["time_mean_depth_packets"]["theory"]
    if buffer >= 500:
        bursts = short_flows.slow_start_bursts(14)
        assert open_loop["time_mean_depth_packets"]["theory"] == pytest.approx(short_flows.mean_depth(load, bursts))
        assert difference == pytest.approx(2.5)  # (1 + 6 + 28) / 14: mean of the earlier packets of the same burst
    assert open_loop["drop_fraction"]["measured"] == pytest.approx(open_loop["drop_fraction"]["theory"], abs=0.012)
    assert open_loop["depth_distance"] < 0.03


def test_open_loop__time_mean_is_the_summarys_and_the_page_shows_it(tmp_path):
    directory = write_open_loop(tmp_path / "rep-1", 0.5, "bursts:6p", 5000, 500, seed=4)
    summary, damage = derive(directory)
    assert (summary["valid"], damage) == (True, [])
    over_time = summary["open_loop"]["time_mean_depth_packets"]
    assert over_time["measured"] == pytest.approx(summary["queue_depth_packets"]["time_mean"], rel=1e-12)
    page = (directory / "report.html").read_text()
    assert "mean depth over time (packets)" in page
    assert "slow-start bursts of 6-packet flows, poisson arrivals" in page
    assert "M[X]/D/1/500 in theory" in (directory / "figures/queue_depth_distribution.svg").read_text()


def test_open_loop__of_single_packets_has_no_depth_over_time(open_loop_run):
    assert "time_mean_depth_packets" not in summarize(analyse(open_loop_run))["open_loop"]


def test_open_loop__depth_differs_from_the_theory_for_another_load(copy):
    change_spec(copy, load=0.7)
    open_loop = summarize(analyse(copy))["open_loop"]
    depth = open_loop["mean_depth_packets"]
    assert depth["measured"] - depth["theory"] > 3 * depth["standard_error"]
    assert open_loop["depth_distance"] > 0.08


@pytest.mark.parametrize(
    "more",
    [
        {"arrivals": "cbr"},
        {"mode": "egress-threshold"},
        {"threshold_bytes": 9000},
        {"load": 1.2, "buffer_packets": 10**6},
    ],
)
def test_open_loop__without_a_closed_form_has_no_theory(copy, more):
    change_spec(copy, **more)
    open_loop = summarize(analyse(copy))["open_loop"]
    assert [open_loop["model"], open_loop["mean_depth_packets"]["theory"], open_loop["depth_distance"]] == [None] * 3


def test_open_loop__with_ecn_the_limit_is_the_mark_threshold(copy):
    spec = yaml.safe_load((copy / "spec.yaml").read_text()) | {"mode": "ecn", "ecn_threshold_packets": 7}
    marking = open_loop.model(spec)
    assert marking
    assert marking.name == "M/D/1/7"


@pytest.mark.parametrize(
    ("file", "edit", "said"),
    [
        ("traffic", lambda t: t["open_loop"].update(datagrams=20_001), "20001 datagrams were sent, 20000 came to the"),
        ("traffic_sink", lambda s: s["flows"].pop(), "20000 datagrams left the queue, "),
        ("traffic_sink", lambda s: s.update(datagrams_dropped=3), "3 datagrams found no room in the sink's socket"),
        ("traffic", lambda t: t["open_loop"].update(unsent=2), "2 datagrams found no room in the sending host"),
        ("traffic", lambda t: t["open_loop"].update(lateness_ns=[[1 << 20, 20_000]]), "sent 1049 us or more"),
        ("traffic", lambda t: t["open_loop"].pop("lateness_ns"), "does not say lateness_ns"),
        ("traffic", lambda t: t.pop("open_loop"), "do not say datagrams_sent, datagrams_unsent"),
        ("traffic", lambda t: t["flows"].pop(), "4 flows were asked for, traffic.json names 3"),
        ("traffic", lambda t: t["groups"][0].update(exit_status=1), "open-loop ended with status 1"),
        ("traffic_sink", lambda s: s.update(flows=None), "do not say datagrams_received"),
    ],
)
def test_open_loop__faults_are_named(copy, file, edit, said):
    change(copy / f"{file}.json", edit)
    analysis = analyse(copy)
    assert any(said in reason for reason in analysis.reasons), analysis.reasons
    summarize(analysis)


@pytest.mark.parametrize(
    "more",
    [
        {"load": "0.8"},
        {"load": 0.0},
        {"sizes": "pareto"},
        {"sizes": "bursts:0p"},
        {"datagram_flows": None},
        {"arrivals": 3},
        {"mtu_bytes": 45},
        {"mtu_bytes": 65536},
    ],
)
def test_open_loop__a_damaged_spec_is_one_line(copy, more):
    change_spec(copy, **more)
    with pytest.raises(InputError, match=f"spec.yaml: {next(iter(more))} must be"):
        analyse(copy)


def test_open_loop__has_no_figures_of_windows_but_one_of_theory(copy):
    summary, damage = derive(copy)
    assert (summary["valid"], damage) == (True, [])
    figures = {path.stem for path in (copy / "figures").iterdir()}
    assert {name for name in figures if not name.endswith("-phone")} == {
        "queue_and_windows", "queue_depth_distribution", "queueing_delay", "utilization", "zoom_on_loss",
    }  # fmt: skip
    assert "M/D/1/500 in theory" in (copy / "figures/queue_depth_distribution.svg").read_text()
    page = (copy / "report.html").read_text()
    assert "Measured against queueing theory" in page
    assert "Measured against the rules" not in page
