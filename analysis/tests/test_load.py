# SPDX-License-Identifier: MIT
"""Raw files: cut off, of other kinds, and traces whose source lacks fields."""

import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml

from analysis.arithmetic.unwrap import switch_time
from analysis.join.in_flight import SEQUENCE_NUMBERS
from analysis.judge.analyse import analyse
from analysis.read import columns as columns_module
from analysis.read import flows as flows_module
from analysis.read.documents import Collector, Documents
from analysis.read.flows import FlowTable
from analysis.read.load import load
from analysis.read.raw import load_postcards, load_tcp, read_postcards
from analysis.replay.derive import derive
from analysis.results.summary import summarize
from analysis.tests import simulate
from analysis.tests.documents import change
from lib.errors import InputError
from wire import wire


def test_load__uses_the_records_before_a_cut_and_before_damage_in_the_middle(fresh, monkeypatch):
    monkeypatch.setattr(columns_module, "SLAB_ROWS", 300)
    directory = fresh()
    path = directory / "postcards.bsp"
    whole = path.read_bytes()
    middle = len(whole) // 2
    for damaged in (whole[:-1], whole[:-64], whole[:-1000], whole[:middle] + b"\xff\xfe" + whole[middle + 2 :]):
        path.write_bytes(damaged)
        raw = load(directory).raw["postcards"]
        assert raw.blocks > 3
        assert raw.records == raw.blocks * 500
        used = raw.blocks * (wire.BLOCK.length + 500 * wire.STORED_POSTCARD.itemsize)
        assert raw.size_bytes - raw.damaged_bytes == used
        assert f"postcards.bsp: damaged or cut off at byte {used}" in str(raw.damage())


def test_load__counts_records_missing_by_block_headers(fresh):
    path = fresh() / "tcp.bst"
    data, record = path.read_bytes(), wire.STORED_TCP_RECORD.itemsize
    block = wire.BLOCK.length + 500 * record
    clock = simulate.REALTIME_MINUS_MONO_NS - 5_000_000
    version = simulate.EVENT["TCP_RECORD_VERSION"]
    head = {"first_record": 100_000, "lost_records": 7, "realtime_minus_mono_ns": clock}
    lossy = wire.encode_block(simulate.BLOCK["BLOCK_TCP"], version, record, data[-record:], **head)
    path.write_bytes(data[:block] + data[2 * block : 3 * block] + lossy)
    _, _, raw = load_tcp(path)
    assert (raw.records, raw.missing_records, raw.lost_records) == (1001, 500 + 100_000 - 1500, 7)
    assert raw.clock_step_max_ns == 5_000_000
    assert raw.damaged_bytes == 0


def test_load__leaves_out_postcards_of_another_version(tmp_path):
    version, record = simulate.CARD["POSTCARD_VERSION"], wire.STORED_POSTCARD.itemsize
    good = struct.pack("<Q", 5) + wire.POSTCARD.encode(version=version, packet_bytes=100)
    bad = struct.pack("<Q", 6) + wire.POSTCARD.encode(version=9)
    path, kind = tmp_path / "postcards.bsp", simulate.BLOCK["BLOCK_POSTCARDS"]
    path.write_bytes(wire.encode_block(kind, version, record, good + bad + good))
    columns, _, raw = load_postcards(path)
    assert (raw.records, raw.bad_records, columns["packet_bytes"].tolist()) == (2, 1, [100, 100])


def test_read_postcards__merges_the_blocks_of_several_receivers_by_receipt(fresh):
    path = fresh() / "postcards.bsp"
    stored = simulate.read_postcards(path.parent)
    before, long = read_postcards(path)[0], len(stored) // 4
    shares = [stored[index] for index in range(0, 2 * long, 2)], stored[1 : 2 * long : 2] + stored[2 * long :]
    simulate.write_postcards(path.parent, shares[1] + shares[0])  # of unequal length
    after, _, raw = read_postcards(path)
    assert (raw.records, raw.missing_records) == (len(stored), 0)
    assert (after["rx_mono_ns"][1:] >= after["rx_mono_ns"][:-1]).all()
    for name in ("enqueue_switch_ns", "card_seq", "tcp_seq"):
        assert (before[name] == after[name]).all()


OPEN_LOOP = {"kind": "open-loop", "sizes": "fixed", "load": 0.5, "arrivals": "poisson", "flows": 4}


def test_load__refuses_with_one_line(fresh):
    directory = fresh()
    spec = (directory / "spec.yaml").read_text()
    for content, said in (
        ("a: [", "is not YAML"),
        (b"\xff\xfe\x00", "is not YAML"),
        ("- 1", "holds no keys"),
        ("a: &a 1\nb: *a", "no aliases"),  # a short file with aliases can expand without bound
        ("spec_version: 7", "use a newer bufferscope"),
        ({"spec_version": True}, "spec_version must be"),
        ({"rtt_ns": 2**60}, "rtt_ns must be"),
        ({"warmup_ns": -1}, "warmup_ns must be"),
        ({"mode": "red"}, "mode must be tail-drop or"),
        ({"target": "abacus"}, "target must be soft"),
        ({"flavour": 1}, "flavour is not known"),
        ({"clock": "atomic"}, "clock must be"),
        ({"switch": ["barn"]}, "switch must be"),
        ({"threshold_bytes": "<b>"}, "threshold_bytes must be"),
        ({"ecn_threshold_packets": 1.5}, "ecn_threshold_packets must be"),
        ({"groups": [OPEN_LOOP | {"load": 0.0}]}, "load must be"),
        ({"groups": [OPEN_LOOP | {"sizes": "bursts:0p"}]}, "sizes must be"),
        ({"mtu_bytes": 45}, "mtu_bytes must be"),
        ({"groups": [{"cc": "reno", "kind": "red"}]}, "groups.0 has a kind that is not one of long, finite"),
        ({"groups": [{"cc": "reno", "flows": "a"}]}, "flows must be"),
    ):
        if isinstance(content, dict):
            content = yaml.safe_dump(yaml.safe_load(spec) | content)
        (directory / "spec.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
        assert said in refusal(directory)
    (directory / "spec.yaml").write_text(spec)
    (directory / "postcards.bsp").write_bytes((directory / "tcp.bst").read_bytes())
    assert "analyse it with the version that wrote it" in refusal(directory)
    for name in ("postcards.bsp", "spec.yaml"):
        (directory / name).unlink()
        assert f"{name}: missing" in refusal(directory)


def refusal(directory):
    with pytest.raises(InputError) as error:
        load(directory)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_load__continues_without_a_missing_or_unreadable_document(fresh):
    directory = fresh()
    path = directory / "collector.json"
    path.unlink()
    unpaired = "\ud800".encode("utf-8", "surrogatepass")
    for content in (None, b"{", b"[1]", b'{"x": NaN}', b'{"x": -Infinity}', unpaired, b"[" * 100_000):
        if content is not None:
            path.write_bytes(content)
        run = load(directory)
        assert [problem.split(":")[0] for problem in run.problems] == ["collector.json"]
        assert run.documents.collector == Collector()


def test_load__names_unusable_values_and_counts_none_of_them(fresh):
    directory = fresh()
    cases: tuple[tuple[str, tuple[Any, ...], Any, Callable[[Documents], Any]], ...] = (
        ("switch", ("stats", "pool_exhausted"), -1, lambda said: said.switch.stats["pool_exhausted"]),
        ("switch", ("stats", "pool_exhausted"), True, lambda said: said.switch.stats["pool_exhausted"]),
        ("switch", ("counters", "arrivals", "2"), 7, lambda said: said.switch.packets("arrivals")),
        ("switch", ("lateness", "2", 1), [20_000], lambda said: said.switch.lateness["2"]),
        ("switch", ("lateness", "2", 1, 1), 0.5, lambda said: said.switch.lateness["2"]),
        ("collector", ("host_drops", "backlog"), "0", lambda said: (said.collector.host_drops or {})["backlog"]),
        ("tracer", ("lost",), "7", lambda said: said.tracer.lost),
        ("idle_rtt", ("min_ns",), [1], lambda said: said.idle_rtt.min_ns),
        ("traffic", ("end_mono_ns",), 1 << 62, lambda said: said.traffic.end_mono_ns),
        ("traffic", ("groups",), {}, lambda said: said.traffic.groups),
        ("traffic", ("transfers",), {"groups": [{}]}, lambda said: said.traffic.finite_groups or None),
    )
    for name, path, value, found in cases:
        whole = (directory / f"{name}.json").read_text()
        change(directory, name, path, value)
        run = load(directory)
        assert found(run.documents) is None, path
        (problem,) = run.problems
        assert problem.startswith(f"{name}.json: {path[0]}"), problem
        (directory / f"{name}.json").write_text(whole)


def test_load__leaves_out_malformed_flows(fresh):
    path = fresh() / "traffic.json"
    text = path.read_text()
    traffic = json.loads(text)
    strangers = (None, 3, ["id"], "flow", traffic["flows"][0] | {"src_addr": "x"}, traffic["flows"][1] | {"id": 10**30})
    for strange in strangers:
        path.write_text(json.dumps(traffic | {"flows": [*traffic["flows"], strange]}))
        run = load(path.parent)
        assert [entry.id for entry in run.traffic] == [0, 1]
        assert [problem.split(":")[0] for problem in run.problems] == ["traffic.json"]


def test_flow_table__gives_flows_beyond_its_limit_one_number(monkeypatch):
    monkeypatch.setattr(flows_module, "MAX_FLOWS", 10)
    words = np.zeros((flows_module.WORDS, 50), dtype=np.uint64)
    words[4] = np.arange(50)
    table = FlowTable()
    assert table.numbers(words).tolist() == [*range(10)] + [10] * 40
    assert table.numbers(words[:, :12]).tolist() == [*range(10), 10, 10]


@pytest.mark.parametrize(("most", "same_hash"), [(1 << 62, False), (3, True)])
def test_flow_table__numbers_flows_in_order_of_appearance(monkeypatch, most, same_hash):
    """Flows with equal hashes differ in some of their words only."""
    if same_hash:
        monkeypatch.setattr(flows_module, "_MULTIPLIERS", np.zeros(flows_module.WORDS, dtype=np.uint64))
    random = np.random.default_rng(4)
    words = random.integers(0, most, (flows_module.WORDS, 400 if same_hash else 20_000)).astype(np.uint64)
    words[4] &= np.uint64((1 << 40) - 1)  # protocol and ports
    words = np.unique(words, axis=1)
    table, seen, flows = FlowTable(), dict[int, int](), words.shape[1]
    order = np.concatenate([random.integers(0, flows, flows), np.arange(flows)])
    expected = np.array([seen.setdefault(flow, len(seen)) for flow in order.tolist()])
    for start in range(0, len(order), 7_000):
        block = order[start : start + 7_000]
        assert (table.numbers(words[:, block]) == expected[start : start + 7_000]).all()
    assert len(table) == flows
    assert (table.find(words[:, order]) == expected).all()
    assert table.find(words + np.uint64(most)).tolist() == [-1] * flows
    assert table.tuples()[seen[5]].words() == tuple(words[:, 5].tolist())


def test_load__numbers_flows_that_only_the_trace_has(fresh):
    directory = fresh()
    (directory / "postcards.bsp").write_bytes(b"")
    run = load(directory)
    assert (run.raw["postcards"].records, run.raw["postcards"].damage()) == (0, None)
    assert {flow.src_port for flow in run.flows} == {30_000, 30_001}
    assert run.tcp["flow"].dtype == run.postcards["flow"].dtype == np.uint16
    assert all(run.flows[entry.number] == entry.five_tuple for entry in run.traffic)


def test_switch_time__survives_the_wrap_and_a_stamp_that_is_a_little_early():
    rx = np.array([(3 << 48) + 100, (3 << 48) + 100, (3 << 48) - 100], dtype=np.uint64)
    true = np.array([(3 << 48) - 50, (3 << 48) + 200, (3 << 48) + 7])
    assert switch_time((true % (1 << 48)).astype(np.uint64), rx).tolist() == true.tolist()


# Traces whose source lacks fields -------------------------------------------------------------------------------------


FIELDS = [name for name, _ in wire.TCP_RECORD.fields]
PROBE = simulate.EVENT["TCP_EVENT_PROBE"]
ALWAYS = {"mono_ns", "event", "cpu", "src_port", "dst_port", "src_addr_hi", "src_addr_lo", "dst_addr_hi", "dst_addr_lo"}
# Fields of the kernel's stock tcp_probe event (hosts/trace/event_record.c). Stock retransmission events have ALWAYS.
STOCK_PROBE = ALWAYS | {
    "socket_cookie", "snd_nxt", "snd_una", "cwnd_packets", "ssthresh_packets", "snd_wnd_bytes", "rcv_wnd_bytes",
    "srtt_us", "data_bytes",
}  # fmt: skip


def _rewrite(directory, known, probe, retransmit):
    """Rewrites the trace as if its source had only the fields `probe` of probes and `retransmit` of retransmissions."""
    records = []
    for record in sorted(known.truth.records, key=lambda record: record["mono_ns"]):
        values = wire.TCP_RECORD.decode(simulate.record_bytes(known.scenario, record))
        fields = probe if record["event"] == PROBE else retransmit
        unknown = sum(1 << i for i, name in enumerate(FIELDS) if name not in fields and name != "unknown_fields")
        values = {name: value for name, value in values.items() if name in fields and name != "unknown_fields"}
        records.append(wire.TCP_RECORD.encode(**values, unknown_fields=unknown))
    simulate.write_trace(directory, records)


def test_stock_events__unknown_fields_are_null_and_windows_come_from_sequence_numbers(fresh, known_runs, undrawn):
    known, stock = known_runs("two_flows"), fresh()
    _rewrite(stock, known, STOCK_PROBE, ALWAYS)
    truth = sorted(known.truth.records, key=lambda record: record["mono_ns"])
    was, (summary, _) = summarize(known.analysis), derive(stock)
    table = pl.read_parquet(stock / "tcp.parquet")
    assert "unknown_fields" not in table.columns
    probe = [record["event"] == PROBE for record in truth]
    for name in ("packets_out", "in_flight_packets", "ca_state", "event_seq", "rtt_min_us", "mss_bytes"):
        assert table[name].null_count() == len(table)
    for name in ("cwnd_packets", "snd_una", "srtt_us", "data_bytes"):
        assert table[name].to_list() == [r[name] if known else None for r, known in zip(truth, probe, strict=True)]
    assert table["event"].to_list() == [record["event"] for record in truth]
    joined = pl.read_parquet(stock / "joined.parquet")
    assert joined["ca_state"].null_count() == joined["retransmit_mono_ns"].null_count() == len(joined)
    assert joined["packet_rtt_ns"].null_count() < len(joined)
    assert summary["valid"], summary["reasons"]
    assert summary["in_flight_from"] == SEQUENCE_NUMBERS
    for now, before in zip(summary["flows"], was["flows"], strict=True):
        assert now["rtt_min_us"] is None
        for name in ("retransmits", "srtt_us_mean", "goodput_bps", "drops"):
            assert now[name] == before[name]
        assert now["in_flight_packets_mean"] >= before["in_flight_packets_mean"]  # the estimate includes lost packets
        assert now["cwnd_packets_mean"] == pytest.approx(before["cwnd_packets_mean"], rel=0.05)
    assert summary["join"]["retransmits_untold"] == sum(record["event"] != PROBE for record in known.truth.records) > 0
    assert summary["join"]["retransmissions_with_record"] is summary["join"]["retransmits_without_packet"] is None
    assert summary["join"]["with_ack"] >= was["join"]["with_ack"] * 0.95
    assert summary["almost_fairness"]["delta"] is not None


def test_source_without_windows__leaves_them_out_everywhere(fresh, known_runs, undrawn):
    directory = fresh()
    _rewrite(directory, known_runs("two_flows"), ALWAYS, ALWAYS)
    summary, _ = derive(directory)
    assert summary["in_flight_from"] is None
    assert summary["almost_fairness"]["delta"] is None
    assert summary["aggregate_window_packets"]["in_flight_mean"] is None
    assert summary["join"]["with_window"] == summary["join"]["with_ack"] == 0
    for flow in summary["flows"]:
        assert flow["cwnd_packets_mean"] is flow["srtt_us_mean"] is None
        assert flow["retransmits"] is not None
    assert summary["valid"], summary["reasons"]


def test_in_flight_from__names_the_estimate_if_only_retransmissions_have_all_fields(fresh, known_runs):
    directory, known = fresh(), known_runs("two_flows")
    _rewrite(directory, known, STOCK_PROBE | {"mss_bytes"}, set(FIELDS))
    a = analyse(directory)
    assert a.in_flight.source == SEQUENCE_NUMBERS
    assert a.segments.retransmits_untold == 0
    assert a.segments.retransmits_unmatched == known.analysis.segments.retransmits_unmatched
