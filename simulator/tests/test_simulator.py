# SPDX-License-Identifier: MIT
"""The simulator's queue against an independent model, its ledger, and the same bytes from the same seed. The senders'
options against exact expectations: access links, windows, pacing, initial windows, ACKs and SACK.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.read.raw import Columns, load_flows, load_postcards, load_tcp
from softswitch.tests.fifo_model import fifo
from wire import wire
from wire.wire import POSTCARD

SIMULATOR = Path(__file__).parents[2] / "build/simulator"
CARD, EVENT = POSTCARD.const, wire.TCP_RECORD.const
START_NS, LIMIT = 60_000_000_000, 8192
LINK = {"rate-bps": 6_000_000, "data-delay-ns": 10_000_000, "ack-delay-ns": 10_000_000, "mtu": 1500}

pytestmark = [
    pytest.mark.long,  # `make test` installs no ns-3
    pytest.mark.skipif(not SIMULATOR.exists(), reason="build/simulator is missing: make simulator"),
]


def simulate(directory: Path, flows: str = "reno 30000 5201 0 0\nreno 30001 5201 7000000 0\n", **more: Any) -> dict:
    directory.mkdir(exist_ok=True)
    options = LINK | {"threshold-packets": 12, "limit-packets": LIMIT, "start-mono-ns": START_NS} | {
        "duration-ns": 1_500_000_000, "drain-ns": 500_000_000, "directory": directory,
    } | {name.replace("_", "-"): value for name, value in more.items()}  # fmt: skip
    command = [str(SIMULATOR), *(f"--{name}={value}" for name, value in options.items())]
    subprocess.run(command, input=flows, text=True, check=True, timeout=20)
    return json.loads((directory / "simulator.json").read_text())


def cards(directory: Path) -> Columns:
    """The postcards, in the order of arrival."""
    found, _, file = load_postcards(directory / "postcards.bsp", 0)
    assert file.damage() is None
    return {name: column.astype(np.int64) for name, column in found.items()}


def records(directory: Path) -> Columns:
    found, _, file = load_tcp(directory / "tcp.bst")
    assert file.damage() is None
    return {name: column.astype(np.int64) for name, column in found.items()}


def refused(*options: str, flows: str = "reno 30000 5201 0 0\n") -> str:
    done = subprocess.run([str(SIMULATOR), *options], input=flows, text=True, capture_output=True, timeout=60)
    assert done.returncode
    return done.stderr


@pytest.mark.parametrize("mode", ["tail-drop", "ecn", "egress-threshold"])
def test_queue__does_what_an_independent_model_says(tmp_path, mode):
    summary = simulate(tmp_path / "run", mode=mode)
    table = cards(tmp_path / "run")
    dropped = (table["flags"] & CARD["POSTCARD_DROPPED"]) != 0
    at_ingress = (table["flags"] & CARD["POSTCARD_AT_INGRESS"]) != 0
    model = fifo(
        list(zip(table["enqueue_mono_ns"].tolist(), table["packet_bytes"].tolist(), strict=True)),
        LINK["rate-bps"],
        admits=lambda index, *_: not at_ingress[index],
        drops_at_egress=lambda index: bool(dropped[index]),
    )
    assert [packet.depth_packets for packet in model] == table["depth_packets"].tolist()
    assert [packet.depth_bytes for packet in model] == table["depth_bytes"].tolist()
    departures = table["enqueue_mono_ns"] + table["sojourn_ns"]
    assert [packet.departure_ns for packet in model if packet.departure_ns is not None] == departures[
        ~at_ingress
    ].tolist()
    assert len(dropped) == summary["arrivals"] == summary["postcards_stored"]
    assert np.count_nonzero(dropped) == summary["arrival_drops"] + summary["departure_drops"] > 0 or mode == "ecn"
    if mode == "egress-threshold":
        assert summary["arrival_drops"] == 0
        # Packets left behind at each departure: no arrival is dropped, and packets depart in the order of arrival.
        behind = np.searchsorted(table["enqueue_mono_ns"], departures, side="right") - np.arange(len(departures)) - 1
        assert behind[dropped].min() >= 12
        assert behind[~dropped].max() <= 12  # one may have arrived in the ns of the departure
    else:
        assert not (table["depth_packets"][~dropped & (table["flags"] & CARD["POSTCARD_ECT"] == 0)] >= 12).any()
    if mode == "ecn":
        assert summary["marks"] == np.count_nonzero(table["flags"] & CARD["POSTCARD_CE_MARKED"]) > 0


def test_trace__has_each_ack_and_retransmission(tmp_path):
    summary = simulate(tmp_path / "run")
    table = records(tmp_path / "run")
    is_probe = table["event"] == EVENT["TCP_EVENT_PROBE"]
    assert (is_probe.sum(), (~is_probe).sum()) == (summary["probes"], summary["retransmits"])
    for number in range(2):
        rows = is_probe & (table["flow"] == number)
        assert rows.sum() > 100
        assert (np.diff(table["mono_ns"][rows]) >= 0).all()
        assert table["cwnd_packets"][rows].max() > 10
        assert (table["in_flight_packets"][rows] <= table["cwnd_packets"][rows] + 4).all()
    sent = sum(flow["bytes"] for flow in summary["sink"])
    assert sent == sum(flow["bytes_acked"] for flow in summary["flows"])


def test_seed__gives_the_same_bytes_and_files_that_exist_are_not_touched(tmp_path):
    flows = "".join(f"{cc} {30000 + n} 5201 0 0\n" for n, cc in enumerate(("bbr", "cubic")))

    def contents(run):
        return {path.name: path.read_bytes() for path in (tmp_path / run).iterdir()}

    for run in ("first", "again"):
        simulate(tmp_path / run, flows=flows)
    assert contents("first") == contents("again")
    assert {"postcards.bsp", "tcp.bst", "goodput.bsg", "simulator.json"} <= contents("first").keys()
    with pytest.raises(subprocess.CalledProcessError):
        simulate(tmp_path / "first")
    assert contents("first") == contents("again")


def test_finite_flows__leave_records_that_agree_with_their_postcards(tmp_path):
    lines = "".join(
        [
            "cubic 30000 5201 0 0 0 0\n",
            *(f"reno {2000 + n} 6001 {n * 40_000_000} 0 {1000 + 9000 * n} 0\n" for n in range(10)),
            *(f"cubic {3000 + n} 6001 100000000 0 20000 7\n" for n in range(40)),
        ]
    )
    summary = simulate(tmp_path / "run", flows=lines, threshold_packets=40, duration_ns=4_000_000_000)
    table, flows, _ = load_postcards(tmp_path / "run/postcards.bsp", 0)
    found, file = load_flows(tmp_path / "run/flows.bsf", flows)
    counts = summary["finite"]
    assert file.records == counts["records_stored"] == counts["begun"] + 1
    assert counts["planned"] == 50 > counts["begun"] == counts["finished"] + counts["unfinished"]
    assert counts["finished"] > 10
    end = found["end"]
    finished = end == wire.FLOW_RECORD.const["FLOW_END_FINISHED"]
    assert (found["acked_bytes"][finished] == found["size_bytes"][finished]).all()
    assert (found["acked_bytes"] <= found["size_bytes"])[end != wire.FLOW_RECORD.const["FLOW_END_LONG"]].all()
    first = {number: int(table["enqueue_mono_ns"][table["flow"] == number].min()) for number in range(len(flows))}
    for row in np.flatnonzero(end != wire.FLOW_RECORD.const["FLOW_END_LONG"]):
        assert first[int(found["flow"][row])] == found["syn_mono_ns"][row]
    user = np.flatnonzero(found["user"] == 7)  # in the order of their SYNs
    gaps = found["syn_mono_ns"][user][1:] - found["ended_mono_ns"][user][:-1]
    assert len(gaps) > 2
    assert (gaps == 100_000_000).all()
    assert sum(entry["bytes"] for entry in summary["sink"]) >= int(found["acked_bytes"][finished].sum())


def test_bad_input__is_one_line(tmp_path):
    more = ["--threshold-packets=12", "--limit-packets=50", f"--start-mono-ns={START_NS}", "--duration-ns=1000"]
    link = [f"--{name}={value}" for name, value in LINK.items()]
    for options, flows, said in (
        (more, "reno 30000 5201 0 0\n", "--rate-bps"),
        ([*link, *more, "--mode=red"], "reno 30000 5201 0 0\n", "tail-drop"),
        ([*link, *more, "--sender=here"], "reno 30000 5201 0 0\n", "two different IPv4 addresses"),
        ([*link, *more], "red 30000 5201 0 0\n", "ns-3 has reno"),
        ([*link, *more], "reno 70000 5201 0 0\n", "line 1"),
        ([*link, *more], "reno 30000 5201 0 0 5\n", "line 1"),
        ([*link, *more], "reno 30000 5201 0 0 0 5\n", "line 1"),
        ([*link, *more], "", "no flows"),
    ):
        (line,) = refused(*options, f"--directory={tmp_path}", flows=flows).splitlines()
        assert said in line
    assert not list(tmp_path.iterdir())


# The senders' options -------------------------------------------------------------------------------------------------


FAST = {
    "rate_bps": 100_000_000, "threshold_packets": 1000, "data_delay_ns": 50_000_000, "ack_delay_ns": 50_000_000,
    "window_packets": 200,
}  # fmt: skip
SMALL = FAST | {"window_packets": 20}
FULL_BYTES, FULL_WIRE_BYTES = 1514, 1538
ACCESS_BPS = 8 * FULL_WIRE_BYTES * 1000  # a full frame takes exactly 1 ms
RTT_NS = 100_000_000
MSS = 1448


def full_frames(directory: Path) -> dict[str, np.ndarray]:
    """The full frames of the traffic, in the order of arrival."""
    table = cards(directory)
    is_full = (table["packet_bytes"] == FULL_BYTES) & (table["enqueue_mono_ns"] >= START_NS)
    return {name: column[is_full] for name, column in table.items()}


def gaps_ns(table: dict[str, np.ndarray], flow: int | None = None) -> np.ndarray:
    chosen = np.ones(len(table["flow"]), bool) if flow is None else table["flow"] == flow
    return np.diff(table["enqueue_mono_ns"][chosen])


def test_access_link__spaces_the_packets_of_its_flow_or_flows_exactly(tmp_path):
    word = f"access={ACCESS_BPS}"
    simulate(tmp_path / "own", flows=f"reno 30000 5201 0 0 {word}\nreno 30001 5201 0 0 {word}\n", **FAST)
    table = full_frames(tmp_path / "own")
    for flow in np.unique(table["flow"]):
        gaps = gaps_ns(table, flow)
        assert len(gaps) > 300
        assert gaps.min() == np.median(gaps) == 1_000_000
    assert gaps_ns(table).min() < 1_000_000
    word += " link=1000"
    simulate(tmp_path / "shared", flows=f"reno 30000 5201 0 0 {word}\nreno 2000 6001 0 0 900000 0 {word}\n", **FAST)
    table = full_frames(tmp_path / "shared")
    assert (np.unique(table["flow"], return_counts=True)[1] > 100).all()
    assert gaps_ns(table).min() == 1_000_000
    # A rate that does not divide the bits: the link carries the remainder on.
    simulate(tmp_path / "odd", flows="reno 30000 5201 0 0 access=7000001\n", **FAST)
    gaps = gaps_ns(full_frames(tmp_path / "odd"))
    busy = gaps[np.flatnonzero(gaps > 2_000_000)[-1] + 1 :]  # after slow start's last pause
    assert len(busy) > 300
    assert busy.sum() == pytest.approx(len(busy) * 8 * FULL_WIRE_BYTES * 1e9 / 7_000_001, abs=1)


def test_source__is_that_of_its_flow_and_its_record(tmp_path):
    finite = ("2000 6001 0 0 20000 0 from=10.77.0.16", "2001 6001 0 30000000 20000 0 from=10.77.3.17")
    lines = "reno 30000 5201 0 0\n" + "".join(f"reno {words}\n" for words in finite)
    summary = simulate(tmp_path / "run", flows=lines, **FAST)
    assert summary["finite"]["finished"] == 2
    _, flows, _ = load_postcards(tmp_path / "run/postcards.bsp", 0)
    found, _ = load_flows(tmp_path / "run/flows.bsf", flows)
    finished = found["end"] == wire.FLOW_RECORD.const["FLOW_END_FINISHED"]
    low = found["src_addr_lo"] & 0xFF
    assert sorted(low[finished].tolist()) == [16, 17]
    assert (found["flow"] >= 0).all()  # the postcards have packets of every record's flow
    took = {int(end): int(rtt) for end, rtt in zip(low[finished], found["min_rtt_us"][finished], strict=True)}
    assert took[17] - took[16] == pytest.approx(30_000, abs=1000)  # ns-3's timestamps count ms


def test_window__is_never_above_its_bound_nor_the_flight_above_the_socket_buffer(tmp_path):
    for cc in ("reno", "bbr"):
        simulate(tmp_path / cc, flows=f"{cc} 30000 5201 0 0\n", **SMALL)
        table = records(tmp_path / cc)
        assert table["cwnd_packets"].max() == table["in_flight_packets"].max() == 20
        times = full_frames(tmp_path / cc)["enqueue_mono_ns"]
        assert (np.searchsorted(times, times + RTT_NS) - np.arange(len(times))).max() == 20  # in every RTT
    more = {"socket_bytes": 40 * MSS} | {name: value for name, value in FAST.items() if name != "window_packets"}
    simulate(tmp_path / "buffer", flows=f"reno 30000 5201 0 0 access={ACCESS_BPS}\n", **more)
    assert records(tmp_path / "buffer")["in_flight_packets"].max() == 40


def test_pacing__at_one_window_per_rtt_makes_even_gaps_and_acks_are_delayed_or_each(tmp_path):
    gaps, acks_per_packet = {}, {}
    for pacing, acks in (("exact", "each"), ("off", "delayed")):
        run = tmp_path / pacing
        simulate(run, flows="reno 30000 5201 0 0\n", pacing=pacing, acks=acks, **SMALL)
        times = full_frames(run)["enqueue_mono_ns"]
        gaps[pacing] = np.diff(times[times > START_NS + 800_000_000])
        probes = int((records(run)["event"] == EVENT["TCP_EVENT_PROBE"]).sum())
        acks_per_packet[acks] = probes / int((cards(run)["packet_bytes"] == FULL_BYTES).sum())
    assert len(gaps["exact"]) > 100
    assert np.median(gaps["exact"]) == pytest.approx(RTT_NS / 20, rel=0.02)
    assert gaps["exact"].min() > 0.95 * RTT_NS / 20
    assert np.median(gaps["off"]) < 0.05 * RTT_NS / 20
    assert acks_per_packet == {"each": pytest.approx(1, abs=0.1), "delayed": pytest.approx(0.5, abs=0.1)}


def test_initial_window__and_an_ack_per_packet_double_the_window(tmp_path):
    flow = "reno 30000 5201 0 0\n"
    simulate(tmp_path / "run", flows=flow, initial_window=2, acks="each", sack="off", **FAST)
    times = full_frames(tmp_path / "run")["enqueue_mono_ns"] - START_NS
    assert [int(((times >= n * RTT_NS) & (times < (n + 0.9) * RTT_NS)).sum()) for n in range(5)] == [2, 4, 8, 16, 32]
    simulate(tmp_path / "default", flows=flow, **FAST)
    times = full_frames(tmp_path / "default")["enqueue_mono_ns"] - START_NS
    assert int((times < 0.9 * RTT_NS).sum()) == 10


def test_sack_off__repairs_one_loss_per_rtt(tmp_path):
    """NewReno: only a partial ACK, an RTT later, reveals the next loss."""
    repairs = {}
    for sack in ("on", "off"):
        simulate(tmp_path / sack, flows="reno 30000 5201 0 0\n", sack=sack, duration_ns=8_000_000_000)
        table = records(tmp_path / sack)
        at = table["mono_ns"][table["event"] == EVENT["TCP_EVENT_RETRANSMIT"]]
        dropped = cards(tmp_path / sack)["flags"] & CARD["POSTCARD_DROPPED"] != 0
        assert dropped.sum() > 3
        repairs[sack] = np.diff(at)[:3]
    assert repairs["off"].min() >= 20_000_000
    assert repairs["on"].min() < 20_000_000
