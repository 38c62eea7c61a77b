# SPDX-License-Identifier: MIT
"""Captures of the published artifact's postcards: every field, every container, damage and noise."""

import json
import random
import struct
from pathlib import Path

import polars as pl
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import CookedLinux, Dot1Q, Ether
from scapy.packet import Raw

from analysis.artifact import DATAGRAM_BYTES, FORMAT, read
from analysis.tables import write_raw_tables
from bufferscope import __main__ as command
from lib.errors import InputError
from wire import wire

ROOT = Path(__file__).resolve().parents[2]
VECTORS = json.loads((ROOT / "wire/vectors/artifact_postcard.json").read_text())
ODD = VECTORS["dropped_between_odd_ports_above_and_below_255"]
PADDING = bytes(DATAGRAM_BYTES - FORMAT.length)
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
        imported = read(capture(tmp_path / "c.pcap", [frame(bytes.fromhex(vector["bytes"]) + PADDING)]))
        fields, row = vector["fields"], {name: column[0] for name, column in imported.columns.items()}
        for name in ("ingress_port", "egress_port", "tcp_seq", "tcp_ack", "departure_depth_cells", "drop_control"):
            assert row[name] == fields[name], name
        assert row["enqueue_time"] == (fields["enqueue_time"] or None)
        assert row["rx_real_ns"] == FIRST_NS
        assert bool(row["flags"] & wire.POSTCARD.const["POSTCARD_DROPPED"]) == bool(fields["drop_control"])
        (flow,) = imported.flows
        assert (flow.src & 0xFFFFFFFF, flow.dst & 0xFFFFFFFF) == (fields["src_addr"], fields["dst_addr"])
        assert (flow.src_port, flow.dst_port, flow.is_ipv4) == (fields["src_port"], fields["dst_port"], True)


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
        imported = read(capture(tmp_path / name, [frame(CARD, link), frame(b"x", link)], link_type, nano))
        assert imported.columns["ingress_port"].to_list() == [437], name
        assert imported.columns["rx_real_ns"][0] == (FIRST_NS if nano else FIRST_NS // 1000 * 1000)
        assert (imported.postcards, imported.not_postcards, imported.other_packets) == (1, 1, 0)
    (tmp_path / "cards").write_bytes(2 * CARD)  # bare datagrams
    imported = read(tmp_path / "cards")
    assert imported.columns["ingress_port"].to_list() == [437] * 2
    assert imported.columns["rx_real_ns"].to_list() == [None] * 2


def test_pcapng__each_interface_has_its_own_resolution(tmp_path):
    def block(kind: int, body: bytes) -> bytes:
        return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))

    def interface(resolution: int) -> bytes:  # option 9: if_tsresol, 10^-resolution s
        return block(1, struct.pack("<HHI", 1, 0, 262144) + struct.pack("<HHBxxxHH", 9, 1, resolution, 0, 0))

    def packet(number: int, units: int) -> bytes:
        data = bytes(frame())
        head = struct.pack("<IIIII", number, units >> 32, units & 0xFFFFFFFF, len(data), len(data))
        return block(6, head + data + bytes(-len(data) % 4))

    section = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    blocks = [section, interface(6), interface(9), packet(0, FIRST_NS // 1000), packet(1, FIRST_NS)]
    (tmp_path / "c.pcapng").write_bytes(b"".join(blocks))
    times = read(tmp_path / "c.pcapng").columns["rx_real_ns"].to_list()
    assert times == [FIRST_NS // 1000 * 1000, FIRST_NS]


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
    imported = read(capture(tmp_path / "c.pcap", frames))
    assert imported.postcards == 4
    assert (imported.other_packets, imported.not_postcards, imported.cut_short) == (5, 3, 1)


def random_card(chance: random.Random) -> dict[str, int]:
    return {name: chance.getrandbits(bits) for name, bits in FORMAT.fields} | {"is_mirrored": 1}


def test_fuzz__damage_is_an_error_or_counted_and_nothing_is_made_up(tmp_path):
    """Files with changed bytes or a missing end raise InputError, report damage, or have no more frames than before."""
    chance = random.Random(12)
    good = [frame(FORMAT.encode(**random_card(chance)) + PADDING) for _ in range(20)]
    whole = capture(tmp_path / "whole.pcap", good).read_bytes()
    outcomes = set()
    for _ in range(600):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        (tmp_path / "c.pcap").write_bytes(data[: chance.randrange(len(data))] if chance.random() < 0.5 else data)
        try:
            imported = read(tmp_path / "c.pcap")
        except InputError:
            outcomes.add("refused")
            continue
        counted = imported.postcards + imported.not_postcards + imported.cut_short + imported.other_packets
        assert counted <= len(good) or imported.damage
        assert len(imported.columns["flags"]) == imported.postcards
        outcomes.add("damaged" if imported.damage else "read")
    assert outcomes == {"refused", "damaged", "read"}


def test_command__prints_a_summary_and_writes_a_table(tmp_path, capsys, known_runs):
    frames = [frame(bytes.fromhex(vector["bytes"]) + PADDING) for vector in VECTORS.values()] + [Ether() / IP() / UDP()]
    path = capture(tmp_path / "c.pcap", frames)
    assert command.main(["import-artifact", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "2 postcards of 2 flows (1 marked as dropped); queues of ports 2, 183; at most 2701 cells;" in printed
    assert "10.77.0.1:30000 > 10.77.0.2:5201 tcp" in printed
    path.write_bytes(path.read_bytes()[:-1])  # the packets before a cut are used
    assert command.main(["import-artifact", str(path), "--output", str(tmp_path / "t.parquet")]) == 2
    assert "damaged or cut off" in capsys.readouterr().err
    table = pl.read_parquet(tmp_path / "t.parquet")
    assert len(table) == 2
    # Its columns are those of our postcards, of the same types, and the artifact's own.
    write_raw_tables(tmp_path, known_runs("two_flows").analysis.run)
    schema = pl.read_parquet_schema(tmp_path / "postcards.parquet")
    assert set(table.columns) - set(schema) == {"rx_real_ns", "departure_depth_cells", "drop_control", "enqueue_time"}
    assert [name for name in schema if name != "five_tuple" and table.schema.get(name) != schema[name]] == []


def test_command__refuses_unreadable_files_in_one_line(tmp_path, capsys):
    path, output = tmp_path / "c", tmp_path / "t.parquet"

    def refused(to):
        assert command.main(["import-artifact", str(path), "--output", str(to)]) == 1
        assert len(capsys.readouterr().err.splitlines()) == 1

    refused(output)
    for content in (  # empty, compressed, no postcard, the other byte order's start alone, another link type
        b"", b"\x1f\x8b" + bytes(42), bytes(43), bytes.fromhex("a1b2c3d4"),
        bytes.fromhex("d4c3b2a1020004000000000000000000ffff000069000000"),
    ):  # fmt: skip
        path.write_bytes(content)
        refused(output)
    before = capture(path, [frame()]).read_bytes()
    refused(path)
    refused(tmp_path / "no/such/t.parquet")
    assert (path.read_bytes(), output.exists()) == (before, False)
