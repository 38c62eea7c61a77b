# SPDX-License-Identifier: MIT
"""Captured postcards, and traces without postcards, become runs: on one clock, with every field of the source."""

import json
import shlex
import struct

import numpy as np
import polars as pl
import pytest

from analysis.exporting import pcapng
from analysis.importing import captures, text
from analysis.tests import foreign, simulate
from analysis.tests.imports import CONDITIONS, imported, pcap, refused
from bufferscope.__main__ import main
from wire import wire

pytestmark = pytest.mark.usefixtures("undrawn")


def test_capture__of_our_own_postcards_has_all_their_fields(tmp_path, recorded, known_runs):
    scenario, truth = recorded
    stored = simulate.stored_postcards(scenario, truth)
    cards = [(int.from_bytes(card[:8], "little"), card[8:]) for card in stored]
    # Two datagrams between the postcards: one is no postcard, one is a postcard of an unknown version.
    cards[5:5] = [(cards[5][0], b"no postcard"), (cards[5][0], bytes([9]) + cards[5][1][1:])]
    path = pcap(tmp_path / "own.pcap", cards, wire.POSTCARD.const["POSTCARD_UDP_PORT"])
    repetition = imported(path, tmp_path / "out")
    original = known_runs("two_flows").analysis.run.postcards
    table = pl.read_parquet(repetition / "postcards.parquet")
    for name, values in original.items():
        if name not in ("flow", "rx_mono_ns"):
            assert np.array_equal(table[name], values), name
    summary = json.loads((repetition / "summary.json").read_text())
    assert summary["queue_delay_ns"]["mean"] > 0
    assert summary["in_flight_from"] is None


ARTIFACT_PADDING = wire.ARTIFACT_POSTCARD.const["ARTIFACT_POSTCARD_PADDING_BYTES"]


def test_capture__that_kept_too_little_is_a_reason(tmp_path, recorded, capsys):
    artifact_card = wire.ARTIFACT_POSTCARD.encode(is_mirrored=1, src_addr=1, dst_addr=2, egress_port=2)
    for port, cards in (
        (5577, [card[8:] for card in simulate.stored_postcards(*recorded)][:600]),
        (4444, [artifact_card + bytes(ARTIFACT_PADDING)] * 600),
    ):
        directory = tmp_path / str(port)
        directory.mkdir()
        datagrams = [(10**18 + 1000 * number, card) for number, card in enumerate(cards)]
        half = pcap(directory / "half.pcap", datagrams, port, lambda number: 65535 if number % 2 else 60)
        half.write_bytes(half.read_bytes()[:-10])
        capsys.readouterr()
        assert main(["import", f"FROM={half}", f"OUTPUT={directory}/cut", *CONDITIONS]) == 2
        assert f"error: {half}: damaged or cut off" in capsys.readouterr().err
        reasons = json.loads((directory / "cut/rep-1/summary.json").read_text())["reasons"]
        assert "300 postcards in half.pcap are cut short, and left out: too few bytes were captured" in reasons
        assert [reason for reason in reasons if reason.startswith("half.pcap: damaged or cut off")]

        none = pcap(directory / "none.pcap", datagrams, port, lambda number: 60)
        line = refused(none, directory / "none", capsys)
        assert "has no whole postcard: 600 postcards were captured with too few bytes" in line


def test_capture__that_libpcap_cannot_read_is_refused_with_its_reason(tmp_path, recorded, capsys):
    """Two interfaces with different snapshot lengths, as Wireshark writes them."""
    cards = np.frombuffer(b"".join(card[8:] for card in simulate.stored_postcards(*recorded)[:9]), np.uint8)
    path = tmp_path / "two.pcapng"
    with path.open("wb") as file:
        pcapng.write_head(file)
    head = path.read_bytes()
    interface = bytearray(head[int.from_bytes(head[4:8], "little") :])
    interface[12:16] = (65535).to_bytes(4, "little")
    packets = pcapng.packets(pcapng.datagrams(cards.reshape(9, -1), 5577), np.full(9, 10**18))
    path.write_bytes(head + interface + packets.tobytes())
    assert "an interface has a snapshot length 65535" in refused(path, tmp_path / "out", capsys)


def test_next_step__is_offered_only_if_it_works(tmp_path, recorded, capsys, monkeypatch):
    """The capture has two switches; the what-if is of the one with more postcards."""
    stored = [card[8:] for card in simulate.stored_postcards(*recorded)]
    others = [wire.POSTCARD.encode(**wire.POSTCARD.decode(card) | {"switch_id": 2}) for card in stored[1:]]
    cards = [(10**18 + n, card) for n, card in enumerate([*stored, *others])]
    trace = tmp_path / "trace.tr"
    trace.write_text("\n".join(foreign.trace_lines(recorded[1])) + "\n")
    for source, can_replay in ((trace, False), (pcap(tmp_path / "own.pcap", cards, 5577), True)):
        capsys.readouterr()
        repetition = imported(source, tmp_path / f"their {source.suffix}")
        _, offered, step = capsys.readouterr().out.rpartition("make replay ")
        assert bool(offered) == can_replay
    monkeypatch.undo()  # a what-if needs the run's figures
    assert main(["replay", str(repetition)]) == 0
    assert main(["replay", *shlex.split(step)]) == 0
    assert json.loads((repetition / "whatif-1/summary.json").read_text())["packets"] == len(stored)


@pytest.mark.parametrize("uptime_ns", [3 << 48, 5 << 47])
def test_capture__joins_a_trace_of_a_host_with_a_long_uptime(tmp_path, recorded, uptime_ns):
    """A trace has all bits of CLOCK_MONOTONIC, a postcard 48. The last uptime is no multiple of 2^48 ns,
    so its trace must not join.
    """
    stored = simulate.stored_postcards(*recorded)
    cards = [(10**18 + int.from_bytes(card[:8], "little"), card[8:]) for card in stored]
    path, trace = pcap(tmp_path / "own.pcap", cards, 5577), tmp_path / "trace.tr"
    records = [dict(record, mono_ns=record["mono_ns"] + uptime_ns) for record in recorded[1].records]
    trace.write_text("\n".join(foreign.trace_lines(simulate.Truth(records=records))) + "\n")
    summary = json.loads((imported(f"{path},{trace}", tmp_path / "out", "DURATION=1s") / "summary.json").read_text())
    meet = uptime_ns % (1 << 48) == 0
    assert any("no time in common" in reason for reason in summary["reasons"]) != meet
    assert not meet or summary["join"]["with_window"] > 1000


def test_capture__without_depths_or_outside_the_measurement_window_has_a_note(tmp_path, recorded):
    stored = [wire.POSTCARD.decode(card[8:]) for card in simulate.stored_postcards(*recorded)[:300]]
    cells = {"depth_unit": wire.POSTCARD.const["POSTCARD_DEPTH_CELLS"], "depth_cells": 7}
    cards = [(10**18 + 1000 * n, wire.POSTCARD.encode(**fields | cells)) for n, fields in enumerate(stored)]
    path = pcap(tmp_path / "own.pcap", cards, 5577)
    for words, said in (
        ((), "300 postcards have no depth in packets and bytes"),
        (("WARMUP=20s",), "none of the 300 postcards is in the measurement window"),
    ):
        repetition = imported(path, tmp_path / f"out{len(words)}", *words)
        summary = json.loads((repetition / "summary.json").read_text())
        assert any(said in reason for reason in summary["reasons"]), summary["reasons"]


def test_trace__without_postcards_gives_windows_and_no_queue(tmp_path, recorded):
    path = tmp_path / "tcp_probe.log"
    path.write_text("\n".join(["CPU:3 [LOST 12 EVENTS]", *foreign.trace_lines(recorded[1])]) + "\n")
    repetition = imported(path, tmp_path / "out", "CC=reno", f"MTU={foreign.MTU}", "BUF=20p")
    summary = json.loads((repetition / "summary.json").read_text())
    assert summary["reasons"][1:] == ["the kernel lost 12 events of the trace"]
    assert (summary["utilization"]["mean"], summary["drops"], summary["goodput_bps"]) == (None, None, None)
    assert all(flow["cwnd_packets_mean"] > 1 for flow in summary["flows"])
    assert summary["almost_fairness"]["window_p50_packets"] > 1


def test_trace__of_other_kernels_is_read(tmp_path):
    fields = (
        "mark=0x0 data_len=0 snd_nxt=0x35a5a298 snd_una=0x35a4a298 snd_cwnd=10 ssthresh=2147483647 snd_wnd=65536 "
        "srtt=105 rcv_wnd=65536"
    )
    for line in (
        "  <idle>-0     [003] ..s2 12.000001: tcp_probe: family=AF_INET src=10.0.0.1:5 dest=10.0.0.2:6 "
        f"{fields} sock_cookie=ab41 skbaddr=00000000deadbeef skaddr=00000000deadbeef",  # Linux 6
        f"  a b-7  ( 123) [003] 12.000001: tcp_probe: src=[fd00::1]:5 dest=[fd00::2]:6 {fields}",  # 4.16
    ):
        (tmp_path / "t").write_text(line + "\n")
        events = text.read_trace(tmp_path / "t")
        assert {name: int(values[0]) for name, values in events.columns.items() if name != "socket_cookie"} == {
            "mono_ns": 12_000_001_000, "event": 1, "data_bytes": 0, "snd_nxt": 0x35A5A298, "snd_una": 0x35A4A298,
            "cwnd_packets": 10, "ssthresh_packets": 2147483647, "snd_wnd_bytes": 65536, "rcv_wnd_bytes": 65536,
            "srtt_us": 105,
        }  # fmt: skip
        assert (events.addresses.src_port[0], events.addresses.dst_port[0]) == (5, 6)


def test_capture__with_a_time_out_of_range_is_used_up_to_that_packet(tmp_path, recorded):
    """The capture's interface has times in seconds."""
    cards = [(10**18, card[8:]) for card in simulate.stored_postcards(*recorded)[:9]]
    with (tmp_path / "c.pcapng").open("wb") as file:
        pcapng.write_head(file)
        frames = pcapng.datagrams(np.frombuffer(b"".join(c for _, c in cards), np.uint8).reshape(9, -1), 5577)
        times = np.array([10**9] * 8 + [1 << 60])
        file.write(pcapng.packets(frames, times).tobytes())
    data = bytearray((tmp_path / "c.pcapng").read_bytes())
    at = data.index(struct.pack("<HHB", 9, 1, 9))
    data[at + 4] = 0
    (tmp_path / "c.pcapng").write_bytes(data)
    contents = captures.read(tmp_path / "c.pcapng")
    assert len(contents.cards.columns["mono_ns"]) == 8
    assert "damaged or cut off: a time of" in str(contents.damage)
