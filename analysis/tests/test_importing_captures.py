# SPDX-License-Identifier: MIT
"""Captured postcards, and traces without postcards, become runs: on one clock, with every field of the source;
of the published artifact, in every container.
"""

import json
import struct
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import CookedLinux, Dot1Q, Ether
from scapy.packet import Raw

from analysis.exporting import pcapng
from analysis.importing import captures, text
from analysis.importing.captures import ARTIFACT, read
from analysis.importing.traffic import ENDS
from analysis.tests import foreign, simulate
from analysis.tests.imports import ARTIFACT_CARD, CONDITIONS, imported, pcap, refused
from bufferscope.__main__ import main
from lib.errors import InputError
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
    left = table["enqueue_mono_ns"].to_numpy() + table["sojourn_ns"].to_numpy()
    placed = [int.from_bytes(card[:8], "little") for card in simulate.read_postcards(repetition)]
    assert sorted(placed) == sorted(left.tolist())  # by the switch's clock, not by the capture's
    summary = json.loads((repetition / "summary.json").read_text())
    assert summary["queue_delay_ns"]["mean"] > 0
    assert summary["in_flight_from"] is None


def test_capture__that_kept_too_little_is_a_reason(tmp_path, recorded, capsys):
    for port, cards in (
        (5577, [card[8:] for card in simulate.stored_postcards(*recorded)][:600]),
        (4444, [ARTIFACT_CARD] * 600),
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


def test_trace__without_postcards_gives_windows_and_no_queue(tmp_path, recorded, capsys):
    path = tmp_path / "tcp_probe.log"
    path.write_text("\n".join(["CPU:3 [LOST 12 EVENTS]", *foreign.trace_lines(recorded[1])]) + "\n")
    repetition = imported(path, tmp_path / "out", "CC=reno", f"MTU={foreign.MTU}", "BUF=20p")
    summary = json.loads((repetition / "summary.json").read_text())
    assert "make replay" not in capsys.readouterr().out  # there is no queue to replay
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
        (columns, _) = text.read_trace(tmp_path / "t", tmp_path).pieces
        others = {"socket_cookie", "digest", *ENDS} - {"mono_ns"}
        assert {name: int(values[0]) for name, values in columns.items() if name not in others} == {
            "mono_ns": 12_000_001_000, "event": 1, "data_bytes": 0, "snd_nxt": 0x35A5A298, "snd_una": 0x35A4A298,
            "cwnd_packets": 10, "ssthresh_packets": 2147483647, "snd_wnd_bytes": 65536, "rcv_wnd_bytes": 65536,
            "srtt_us": 105,
        }  # fmt: skip
        assert (columns["src_port"][0], columns["dst_port"][0]) == (5, 6)


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
    contents = captures.read(tmp_path / "c.pcapng", tmp_path)
    assert contents.cards.rows == 8
    assert ": a time of" in str(contents.damage)


def test_pcapng__each_interface_has_its_own_resolution(tmp_path):
    path, frames = tmp_path / "c.pcapng", pcapng.datagrams(np.frombuffer(ARTIFACT_CARD, np.uint8)[None], 4444)
    with path.open("wb") as file:
        pcapng.write_head(file)
    head = path.read_bytes()
    in_ns, in_us = (struct.pack("<HHB", 9, 1, resolution) for resolution in (9, 6))
    second = head[int.from_bytes(head[4:8], "little") :].replace(in_ns, in_us)
    packets = [pcapng.packets(frames, np.array([time])) for time in (FIRST_NS, FIRST_NS // 1000)]
    packets[1][0, 8] = 1  # of the second interface
    path.write_bytes(head + second + packets[0].tobytes() + packets[1].tobytes())
    assert read(path, tmp_path).cards.pieces[0]["mono_ns"].tolist() == [FIRST_NS, FIRST_NS // 1000 * 1000]


# Captures of the published artifact's postcards -----------------------------------------------------------------------


FORMAT = ARTIFACT.layout
ROOT = Path(__file__).resolve().parents[2]
VECTORS = json.loads((ROOT / "wire/vectors/artifact_postcard.json").read_text())
ODD = VECTORS["dropped_between_odd_ports_above_and_below_255"]
PADDING = bytes(ARTIFACT.datagram_bytes - FORMAT.length)
CARD = bytes.fromhex(ODD["bytes"]) + PADDING
FIRST_NS = 1_600_000_000_123_456_789


def frame(payload: bytes = CARD, link=None, **ip_fields):
    """A frame as the artifact's switch sent it: the original packet's MAC and IP addresses swapped, no UDP checksum."""
    link = Ether(src="00:00:00:00:00:02", dst="00:00:00:00:00:01") if link is None else link
    ip = IP(src="192.168.0.2", dst="192.168.0.1", **ip_fields)
    return link / ip / UDP(sport=4444, dport=4444, chksum=0) / payload


def capture(path: Path, frames, linktype: int = 1, nano: bool = True) -> Path:
    """A pcap file of scapy frames or bytes, one frame per microsecond."""
    magic, per_second = (0xA1B23C4D, 10**9) if nano else (0xA1B2C3D4, 10**6)
    data = struct.pack("<IHHiIII", magic, 2, 4, 0, 0, 65535, linktype)
    for number, packet in enumerate(frames):
        seconds, rest_ns = divmod(FIRST_NS + number * 1000, 10**9)
        size = len(bytes(packet))
        data += struct.pack("<IIII", seconds, rest_ns * per_second // 10**9, size, size) + bytes(packet)
    path.write_bytes(data)
    return path


def test_capture__gives_every_field(tmp_path):
    for vector in VECTORS.values():
        packet = frame(bytes.fromhex(vector["bytes"]) + PADDING)
        (columns,) = read(capture(tmp_path / "c.pcap", [packet]), tmp_path).cards.pieces
        fields, row = vector["fields"], {name: int(column[0]) for name, column in columns.items()}
        for name in ("ingress_port", "egress_port", "tcp_seq", "tcp_ack"):
            assert row[name] == fields[name], name
        assert (row["depth_cells"], row["mono_ns"]) == (fields["departure_depth_cells"], FIRST_NS)
        assert bool(row["flags"] & wire.POSTCARD.const["POSTCARD_DROPPED"]) == bool(fields["drop_control"])
        for name in ("src", "dst"):
            address = 0xFFFF << 32 | fields[f"{name}_addr"]
            assert [row[f"{name}_{end}"] for end in ("addr_hi", "addr_lo", "port")] == [
                0,
                address,
                fields[f"{name}_port"],
            ]


def test_container__does_not_matter(tmp_path):
    links = {
        "ethernet": (1, None),
        "vlan": (1, Ether() / Dot1Q(vlan=5)),
        "two vlans": (1, Ether(type=0x88A8) / Dot1Q(vlan=5) / Dot1Q(vlan=6)),
        "cooked": (113, CookedLinux(pkttype=0, lladdrtype=1, lladdrlen=6, src=b"\0\0\0\0\0\2", proto=0x800)),
        "cooked 2": (276, Raw(b"\x08\x00" + bytes(18))),
        "raw ip": (101, Raw(b"")),
        "ipv4": (228, Raw(b"")),
        "bsd loopback": (0, Raw(b"\x02\x00\x00\x00")),
    }
    for number, (name, (link_type, link)) in enumerate(links.items()):
        nano = number % 2 == 0
        contents = read(capture(tmp_path / name, [frame(CARD, link), frame(b"x", link)], link_type, nano), tmp_path)
        assert contents.cards.pieces[0]["ingress_port"].tolist() == [437], name
        assert contents.cards.pieces[0]["mono_ns"][0] == (FIRST_NS if nano else FIRST_NS // 1000 * 1000)
        assert (contents.malformed, contents.others) == (1, 0)
    with pytest.raises(InputError, match=r"link type 802\.11 is not known here"):
        read(capture(tmp_path / "wireless", [frame()], 105), tmp_path)


def test_other_packets__are_classified_and_counted(tmp_path):
    frames = [
        frame(),
        bytes(frame()) + bytes(7),  # a trailer of the link
        frame(options=b"\x01\x01\x01\x01"),
        bytes(frame())[: 14 + 20 + 8 + FORMAT.length],  # the snap length cut padding only
        Ether() / IP() / UDP(sport=4444, dport=4445) / CARD,
        Ether() / IP() / TCP(sport=4444, dport=4444) / CARD,
        Ether() / b"\x08",
        b"",
        frame(frag=100),
        frame(flags="MF"),
        frame(CARD + b"\0"),
        frame(b"\x11" + CARD[1:]),  # not marked as mirrored
        bytes(frame())[: 14 + 20 + 8 + FORMAT.length - 1],
    ]
    contents = read(capture(tmp_path / "c.pcap", frames), tmp_path)
    assert contents.cards.rows == 4
    assert (contents.others, contents.malformed, contents.cut_short) == (5, 3, 1)
