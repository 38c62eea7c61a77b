# SPDX-License-Identifier: MIT
"""Captures of the published artifact's postcards: every field, every container, damage and noise."""

import json
import random
import struct
from pathlib import Path

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import CookedLinux, Dot1Q, Ether
from scapy.packet import Raw

from analysis.importing.captures import ARTIFACT, read
from lib.errors import InputError
from wire import wire

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
        cards = read(capture(tmp_path / "c.pcap", [frame(bytes.fromhex(vector["bytes"]) + PADDING)])).cards
        fields, row, ends = (
            vector["fields"],
            {name: column[0] for name, column in cards.columns.items()},
            cards.addresses,
        )
        for name in ("ingress_port", "egress_port", "tcp_seq", "tcp_ack"):
            assert row[name] == fields[name], name
        assert (row["depth_cells"], row["mono_ns"]) == (fields["departure_depth_cells"], FIRST_NS)
        assert bool(row["flags"] & wire.POSTCARD.const["POSTCARD_DROPPED"]) == bool(fields["drop_control"])
        for name in ("src", "dst"):
            assert getattr(ends, name).tolist() == [[0, 0xFFFF << 32 | fields[f"{name}_addr"]]]
            assert getattr(ends, f"{name}_port").tolist() == [fields[f"{name}_port"]]


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
        contents = read(capture(tmp_path / name, [frame(CARD, link), frame(b"x", link)], link_type, nano))
        assert contents.cards.columns["ingress_port"].tolist() == [437], name
        assert contents.cards.columns["mono_ns"][0] == (FIRST_NS if nano else FIRST_NS // 1000 * 1000)
        assert (contents.malformed, contents.others) == (1, 0)
    with pytest.raises(InputError, match="link type IEEE802_11 is not known here"):
        read(capture(tmp_path / "wireless", [frame()], 105))


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
    times = read(tmp_path / "c.pcapng").cards.columns["mono_ns"].tolist()
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
    contents = read(capture(tmp_path / "c.pcap", frames))
    assert len(contents.cards.columns["flags"]) == 4
    assert (contents.others, contents.malformed, contents.cut_short) == (5, 3, 1)


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
            contents = read(tmp_path / "c.pcap")
        except InputError:
            outcomes.add("refused")
            continue
        postcards = len(contents.cards.columns["flags"])
        counted = postcards + contents.malformed + contents.cut_short + contents.others
        assert counted <= len(good) or contents.damage
        outcomes.add("damaged" if contents.damage else "read")
    assert outcomes == {"refused", "damaged", "read"}
