# SPDX-License-Identifier: MIT
"""One capture of user traffic becomes a run, with a table of its connections."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from analysis.importing.link import LinkExperiment, most_behind_bps
from analysis.importing.sides import BACK, FORWARD, NEITHER, Sides
from analysis.importing.tap import Tap
from analysis.importing.write import Conditions
from analysis.measure import captured_link
from analysis.read import connections
from analysis.results.tables import write_frame
from analysis.tests import tcp_model as model
from analysis.tests.imports import pcap, refused
from bufferscope.__main__ import main
from lib.errors import InputError
from runs.spec_file import load_spec
from wire.wire import CONNECTION


def experiment(capture: Path, rate_bps: int) -> LinkExperiment:
    return LinkExperiment(
        Tap.of("FROM", [str(capture)]), Conditions(rate_bps, 0, 0, "unknown", None, "tail-drop", None, None), None
    )


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """A capture of forty flows of four kinds and five RTTs, and the run."""
    directory = tmp_path_factory.mktemp("link")
    flows, rate_bps, buffer, end_ns = model.five_rtts()
    packets, states = model.simulate(flows, rate_bps, buffer, end_ns)
    capture = model.write_pcap(directory / "link.pcap", packets, flows)
    (directory / "run").mkdir()
    imported = experiment(capture, rate_bps)
    imported.write(directory / "run")
    return flows, packets, states, directory / "run", imported


def test_flows__of_a_known_capture_are_found_with_their_limits(known):
    flows, packets, states, run, _ = known
    table = pl.read_parquet(run / connections.FILE)
    assert table["start_ns"].is_sorted()
    table = table.sort("src_port")
    assert table["src_port"].to_list() == [2000 + n for n in range(len(flows))]
    ways = {is_back: np.array([[p[1], p[5]] for p in packets if p[2] == is_back]) for is_back in (False, True)}
    for name, way in (("out", ways[False]), ("back", ways[True])):
        assert table[f"packets_{name}"].to_list() == np.bincount(way[:, 0]).tolist()
        assert table[f"payload_bytes_{name}"].to_list() == np.bincount(way[:, 0], way[:, 1]).tolist()
    rtts = np.array([flow.rtt_ns for flow in flows])
    for name in ("rtt_handshake_ns", "rtt_least_ns"):
        assert np.abs(table[name].to_numpy() / rtts - 1).max() < 0.02
    access = table.filter(pl.Series([flow.truth == "access link" for flow in flows]))
    assert np.abs(access["access_bps"].to_numpy() / 2e6 - 1).max() < 0.05
    windows = table.filter(pl.Series([flow.truth == "window" for flow in flows]))
    asked = [-(-flow.window >> 9) << 9 for flow in flows if flow.truth == "window"]
    assert windows["window_bytes"].to_list() == asked
    right = [flow.truth == limit for flow, limit in zip(flows, table["limit"].to_list(), strict=True)]
    assert np.mean(right) >= 0.95
    paused = table.filter(pl.Series([flow.truth == "application" for flow in flows]))
    writes = [state.limit // flow.write for flow, state in zip(flows, states, strict=True) if flow.write]
    assert np.abs(paused["writes"].to_numpy() - writes).max() <= 2
    assert table["unseen_bytes"].sum() == 0
    sent = [(packet[1], packet[3]) for packet in packets if packet[5]]
    assert table["retransmissions_out"].sum() == len(sent) - len(set(sent))


def test_run__has_the_forward_packets_as_arrivals_and_both_ways_in_bins(known):
    _, packets, _, run, imported = known
    spec = load_spec(run)
    forward = sum(not packet[2] for packet in packets)
    assert spec.imported
    assert spec.imported.link
    assert (spec.imported.link.packets, spec.imported.link.packets_back) == (forward, len(packets) - forward)
    bins = pl.read_parquet(run / connections.BINS_FILE)
    assert (bins["packets_forward"].sum(), bins["packets_back"].sum()) == (forward, len(packets) - forward)
    assert imported.source.remarks[0].startswith(f"user traffic: {forward:,} packets forward")
    assert spec.buffer_packets > 300  # more than the queue that dropped: nothing is dropped before the capture


def test_capture__of_one_way_says_what_it_lacks(known, tmp_path):
    flows, packets, _, run, _ = known
    capture = model.write_pcap(tmp_path / "forward.pcap", packets, flows, only_forward=True)
    imported = experiment(capture, 200_000_000)
    (tmp_path / "run").mkdir()
    imported.write(tmp_path / "run")
    assert [line for line in imported.source.remarks if line.startswith("only one way was captured")]
    one, both = (pl.read_parquet(d / connections.FILE).sort("src_port") for d in (tmp_path / "run", run))
    assert one["rtt_handshake_ns"].to_list() == both["rtt_handshake_ns"].to_list()
    for name in ("rtt_least_ns", "in_flight_bytes", "window_bytes"):
        assert one[name].null_count() == len(one)
    kinds = pl.Series([flow.truth for flow in flows])
    for kind in ("application", "access link"):
        assert np.mean([limit == kind for limit in one.filter(kinds == kind)["limit"]]) >= 0.8


def test_capture__of_few_packets_or_without_tcp_works(tmp_path):
    """A single datagram; datagrams, whose RTT is unknown; the middle of a connection, cut off."""
    one = pcap(tmp_path / "one.pcap", [(10**18, b"x")], 9999)
    many = pcap(tmp_path / "many.pcap", [(10**18 + n * 10**7, bytes([n % 256])) for n in range(99)], 9999)
    for capture, packets_ in ((one, 1), (many, 99)):
        (tmp_path / capture.stem).mkdir()
        with pytest.raises(InputError, match="so the RTT is unknown: add RTT=20ms"):
            experiment(capture, 10**9).write(tmp_path / capture.stem)
        imported = experiment(capture, 10**9)
        imported.conditions = replace(imported.conditions, rtt_ns=20_000_000)
        (tmp_path / f"{capture.stem}-rtt").mkdir()
        imported.write(tmp_path / f"{capture.stem}-rtt")
        table = pl.read_parquet(tmp_path / f"{capture.stem}-rtt" / connections.FILE)
        assert table.select("protocol", "packets_out", "limit").rows() == [("udp", packets_, "no data")]
    flows = [model.Flow(10**6, 10**6, 10**9)]
    sent, _ = model.simulate(flows, 10**8, 100, 3 * 10**8)
    middle = model.write_pcap(tmp_path / "middle.pcap", sent[300:600], flows)
    middle.write_bytes(middle.read_bytes()[:-40])
    (tmp_path / "run").mkdir()
    imported = experiment(middle, 10**8)
    imported.write(tmp_path / "run")
    assert [line for line in imported.source.remarks if line.startswith("no connection began within the capture")]
    assert "cut off in a packet" in imported.source.notes[-1]
    assert pl.read_parquet(tmp_path / "run" / connections.FILE)["limit"].to_list() == ["this link"]


def test_frames_of_gro__count_as_the_packets_on_the_link(known, tmp_path):
    flows, packets, _, _, _ = known
    first = [packet for packet in packets if packet[1] == 15][:200]
    merged: list[tuple] = []
    for packet in first:
        last = merged[-1] if merged else None
        if (
            last
            and not packet[2]
            and packet[5]
            and last[5]
            and not last[2]
            and packet[3] == last[3] + last[5] < last[3] + 50_000
        ):
            merged[-1] = (packet[0], *last[1:5], last[5] + packet[5], *last[6:])
        else:
            merged.append(packet)
    assert len(merged) < len(first) - 20
    for name, some in (("one", first), ("two", merged)):
        (tmp_path / name).mkdir()
        experiment(model.write_pcap(tmp_path / f"{name}.pcap", some, flows), 200_000_000).write(tmp_path / name)
    one, two = (pl.read_parquet(tmp_path / name / connections.FILE) for name in ("one", "two"))
    for column in ("packets_out", "payload_bytes_out", "ip_bytes_out", "packets_back"):
        assert one[column].to_list() == two[column].to_list()


def test_capture__that_needs_another_rate_is_refused(known, tmp_path, capsys):
    capture = known[3].parent / "link.pcap"
    line = refused(capture, tmp_path / "slow", capsys)
    assert "RATE is 50mbit, and the capture carries up to " in line
    assert main(["import", f"FROM={capture}", f"OUTPUT={tmp_path}/none"]) == 1
    assert "is a capture of user traffic, without postcards; give the rate of its link" in capsys.readouterr().err


def test_import__of_a_capture_makes_a_report_that_a_replay_repeats(known, tmp_path, capsys, undrawn):
    capture = known[3].parent / "link.pcap"
    assert main(["import", f"FROM={capture}", f"OUTPUT={tmp_path}/mine", "RATE=200mbit"]) == 0
    assert "user traffic: " in capsys.readouterr().out
    summary = json.loads((tmp_path / "mine/rep-1/summary.json").read_text())
    assert summary["arrivals"] == sum(not packet[2] for packet in known[1])
    passed = summary["captured_link"]
    assert (passed["connections"], passed["at_a_time"]["max"], passed["rtt_ns"]["known"]) == (40, 40, 1)
    assert sum(one["bytes"] for one in passed["limits"].values()) == pytest.approx(1)
    assert [one["window_s"] for one in passed["rates"]] == [0.001, 0.01, 0.1, 1]
    capsys.readouterr()
    assert main(["replay", f"RUN={tmp_path}/mine"]) == 0
    assert "byte for byte what they were" in capsys.readouterr().out

    ask = ["advise", f"FROM={tmp_path}/mine"]
    assert main([*ask, "BUF=300p"]) == 0
    lines = capsys.readouterr().out.splitlines()
    starts = ("The capture: load ", "Start with BUF=", "Least buffer: ", "Confidence: ", "Rules: ", "Enough: ")
    assert [line.startswith(start) for line, start in zip(lines, starts, strict=False)] == [True] * len(starts)
    assert "Asked: RATE=200mbit RTT=15.76ms FLOWS=4 CC=cubic UTIL=0.99." in lines[1]
    table = [line for line in lines if "what-if, open loop" in line]
    assert [line.split("  ")[0] for line in table] == ["today", "enough", "a tenth of today's"]
    assert sum("published runs" in line for line in lines[6:]) == 3
    packets = int(lines[5].removeprefix("Enough: ").split("p")[0])
    assert f"  tc qdisc replace dev eth0 root bfifo limit {packets * 1514}" in lines
    profiles = [json.loads(line) for line in lines if line.startswith("  {")]
    assert profiles[0]["BUFFER_PROFILE"]["advised"]["static_th"] == str(packets * 1514)
    assert profiles[1]["WRED_PROFILE"]["advised"]["green_max_threshold"] == str(packets * 1514)
    assert f"  policy: {{mode: tail-drop, threshold: {packets}p}}" in lines
    for words, said in (
        (["WATERMARK=10kB"], "and the switch held at most WATERMARK=10kB without drops: the capture has packets"),
        (["WATERMARK=10kB", "DROPS=0.0001%"], "Contradiction: DROPS=0.0001% is outside of the what-if's"),
        (["WATERMARK=100MB"], "they were captured behind the queue, or the switch saw other traffic"),
        (["BUF=10p", "WATERMARK=1MB"], "Contradiction: WATERMARK=1MB is 661 packets, more than BUF=10p."),
    ):
        assert main([*ask, *words]) == 0
        assert said in capsys.readouterr().out, words


def test_advise__refuses_counters_alone_and_runs_that_are_no_captures(tmp_path, capsys):
    assert main(["advise", "RATE=1gbit", "RTT=10ms", "FLOWS=10", "DROPS=1%"]) == 1
    assert "DROPS=1% has no meaning here; allowed: with FROM" in capsys.readouterr().err
    assert main(["advise", f"FROM={tmp_path}"]) == 1
    assert f"FROM={tmp_path} is not an imported capture of a link; allowed: what make import" in capsys.readouterr().err


def test_captured_link__counts_flows_and_dispersion(tmp_path):
    """Poisson arrivals have an index of 1, pairs of packets 2; four connections, one of them nine times as fast."""
    random = np.random.default_rng(3)
    bins = connections.Bins()
    times = np.sort(random.integers(0, 10**10, 200_000)) + 10**18
    bins.add(np.repeat(times, 2), np.full(2 * len(times), 1000), 0)
    write_frame(tmp_path / connections.BINS_FILE, bins.frame(slice(0, len(bins))))
    rows = np.zeros(4, dtype=CONNECTION.dtype())
    rows["start_ns"], rows["end_ns"] = 10**18 + 10**9, 10**18 + 9 * 10**9
    rows["payload_bytes_out"] = [900_000, 100_000, 100_000, 100_000]
    rows["flags"] = CONNECTION.const["CONNECTION_OUT_IS_FORWARD"] | CONNECTION.const["CONNECTION_IS_TCP"]
    rows["handshake_ns"], rows["link_ns"] = [10**7, 10**7, 10**8, 10**8], 1
    write_frame(tmp_path / connections.FILE, connections.frame(rows))
    scales, index = captured_link.dispersions(tmp_path)
    assert scales[:3] == [0.001, 0.002, 0.004]
    assert np.allclose(index[:8], 2, rtol=0.1)
    passed = captured_link.summarize(tmp_path, 1_000_000_000)
    assert passed["load"] == pytest.approx(2 * 200_000 * 8000 / 10 / 1e9, rel=1e-3)
    assert passed["at_a_time"]["effective"] == pytest.approx(12**2 / (81 + 3))
    assert passed["at_a_time"]["mean"] == pytest.approx(4 * 0.8, rel=1e-2)
    assert passed["rtt_ns"]["harmonic_mean"] == pytest.approx(1.2e6 / (1e6 / 1e7 + 2e5 / 1e8))
    assert passed["limits"] == {"this link": {"flows": 4, "bytes": 1}}


def packets(*rows, macs: bool = False):
    """Columns of (from, to, bytes)."""
    src, dst, size = np.array(rows).T
    zero = np.zeros(len(src), dtype=np.uint64)
    return {
        "src_addr_hi": zero, "src_addr_lo": src.astype(np.uint64), "dst_addr_hi": zero,
        "dst_addr_lo": dst.astype(np.uint64), "ip_bytes": size,
        "src_mac": (src % 2 + 1).astype(np.uint64) if macs else zero,
        "dst_mac": (dst % 2 + 1).astype(np.uint64) if macs else zero,
    }  # fmt: skip


def test_sides__are_of_hosts_that_send_to_each_other():
    """Two groups; one packet stays on a side; with Ethernet addresses there is one group."""
    rows = [(1, 2, 1500), (2, 1, 60), (3, 2, 1500), (5, 6, 60), (6, 5, 1500), (1, 3, 40)]
    sides = Sides()
    sides.add(packets(*rows))
    sides.settle()
    assert sides.groups == 2
    assert sides.way(packets(*rows)).tolist() == [FORWARD, BACK, FORWARD, BACK, FORWARD, NEITHER]
    sides = Sides()
    sides.add(packets(*rows[:5], macs=True))
    sides.settle()
    assert (sides.groups, sides.way(packets(*rows[:5], macs=True)).tolist()[3:]) == (1, [FORWARD, BACK])


def test_bins__become_longer_and_lose_nothing(monkeypatch):
    monkeypatch.setattr(connections, "MOST_BINS", 8)
    bins = connections.Bins()
    times = 10**9 + np.arange(0, 100, 7) * connections.BIN_NS
    bins.add(times, np.full(len(times), 1000), 0)
    bins.add(times, np.full(len(times), 100), 1)
    frame = bins.frame(slice(0, len(bins)))
    assert len(frame) <= 8
    assert frame["start_ns"].diff().drop_nulls().unique().to_list() == [16 * connections.BIN_NS]
    assert frame["wire_bytes_forward"].sum() == 1000 * len(times)
    assert frame["packets_back"].sum() == len(times)


def test_full_link__counts_at_most_its_rate_and_a_frame_in_any_second():
    rate_bps, mtu_bytes = 50_000_000, 1500
    bins, frame_ns = connections.Bins(), 1538 * 8 * 10**9 // rate_bps
    times_ns = 10**9 + frame_ns * np.arange(12_000)
    bins.add(times_ns, np.full(len(times_ns), 1538), 0)
    assert rate_bps < bins.most_bps(10**9) <= most_behind_bps(rate_bps, mtu_bytes)
