# SPDX-License-Identifier: MIT
"""Traces whose source lacks fields."""

import polars as pl
import pytest

from analysis.join.trace_by_flow import SEQUENCE_NUMBERS
from analysis.judge.analyse import analyse
from analysis.replay.derive import derive
from analysis.results.summary import summarize
from analysis.tests import simulate
from wire import wire

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
    kind, version = simulate.BLOCK["BLOCK_TCP"], simulate.EVENT["TCP_RECORD_VERSION"]
    (directory / "tcp.bst").write_bytes(simulate.blocks(kind, version, records))


@pytest.fixture
def stock(fresh, known_runs):
    directory = fresh()
    _rewrite(directory, known_runs("two_flows"), STOCK_PROBE, ALWAYS)
    return directory


def test_stock_events__unknown_fields_are_null(stock, known_runs, undrawn):
    truth = sorted(known_runs("two_flows").truth.records, key=lambda record: record["mono_ns"])
    summary, _ = derive(stock)
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


def test_stock_events__windows_come_from_sequence_numbers_and_say_so(stock, known_runs):
    known = known_runs("two_flows")
    was, summary = summarize(known.analysis), summarize(analyse(stock))
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
    directory = fresh()
    _rewrite(directory, known_runs("two_flows"), STOCK_PROBE | {"mss_bytes"}, set(FIELDS))
    a = analyse(directory)
    assert a.trace.in_flight_from == SEQUENCE_NUMBERS
    assert a.segments.retransmits_untold == 0
    assert a.segments.retransmits_unmatched == known_runs("two_flows").analysis.segments.retransmits_unmatched
