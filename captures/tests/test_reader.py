# SPDX-License-Identifier: MIT
"""Records of captures: each field as tshark reads it, on frames of our own and on files of others; containers; damage.

CAPTURES_OF_OTHERS=directory compares all captures below a directory with tshark, for example those of a public test
suite (tcpdump's tests/, Wireshark's test/captures, hadrielk/pcapng-test-generator).
"""

import ipaddress
import lzma
import os
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scapy.layers.inet import GRE, ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop
from scapy.layers.l2 import ARP, CookedLinux, Dot1AD, Dot1Q, Ether
from scapy.packet import Raw

from captures.reader import TUNNELS, Capture, is_capture
from lib.errors import InputError
from lib.tests.fuzzing import fuzz
from wire.wire import CAPTURED_PACKET

HERE = Path(__file__).resolve().parent
CONST = CAPTURED_PACKET.const
FIRST_NS = 1_700_000_000_123_456_789
HOST = "02:00:00:00:00:01"
ETHER = Ether(src=HOST, dst=HOST)
OPTIONS = [("MSS", 1460), ("SAckOK", b""), ("Timestamp", (7, 9)), ("NOP", None), ("WScale", 7)]
DATA = [("NOP", None), ("NOP", None), ("Timestamp", (70, 90))]
SACK = [("NOP", None), ("NOP", None), ("SAck", (1000, 2448))]
V4, V6 = IP(src="10.0.0.1", dst="10.0.0.2", id=77, ttl=9, tos=3), IPv6(src="fd00::1", dst="fd00::2", tc=1, hlim=5)
PAYLOADS = [
    V4 / TCP(sport=1, dport=2, seq=2**32 - 1, ack=5, flags="S", window=99, options=OPTIONS),
    V4 / TCP(sport=1, dport=2, seq=8, ack=9, flags="PAE", options=DATA) / bytes(1000),
    V4 / TCP(sport=1, dport=2, flags="A", options=SACK),
    V4 / TCP(sport=1, dport=2, flags="F"),
    V4 / UDP(sport=5, dport=6) / bytes(30),
    V4 / ICMP() / bytes(8),
    IP(src="10.0.0.1", dst="10.0.0.2", id=4, flags="MF") / UDP(sport=5, dport=6, len=3000) / bytes(1000),
    IP(src="10.0.0.1", dst="10.0.0.2", id=4, frag=126) / Raw(bytes(500)),
    IP(src="10.0.0.1", dst="10.0.0.2", options=[b"\x01\x01\x01\x01"]) / TCP(sport=3, dport=4) / b"ab",
    V6 / TCP(sport=1, dport=2, seq=3, options=DATA) / bytes(40),
    V6 / IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt() / UDP(sport=8, dport=9) / b"abc",
    V6 / IPv6ExtHdrFragment(id=99, m=1) / UDP(sport=8, dport=9, len=2000) / bytes(800),
    V6 / IPv6ExtHdrFragment(id=99, offset=101) / Raw(bytes(100)),
    V4 / GRE() / V4 / UDP(sport=8, dport=9),
]
LINKS = {
    "ethernet": (1, lambda packet: ETHER / packet),
    "vlan": (1, lambda packet: ETHER / Dot1Q(vlan=5) / packet),
    "qinq": (1, lambda packet: ETHER / Dot1AD(vlan=7) / Dot1Q(vlan=6) / packet),
    "cooked": (113, lambda packet: CookedLinux(pkttype=4, src=b"\0\0\0\0\0\2", proto=_type(packet)) / packet),
    "cooked 2": (276, lambda packet: Raw(struct.pack(">H8x2xBB6x", _type(packet), 4, 6)) / packet),
    "raw": (101, lambda packet: packet),
    "null": (0, lambda packet: Raw(struct.pack("<I", 2 if IP in packet else 30)) / packet),
    "loop": (108, lambda packet: Raw(struct.pack(">I", 2 if IP in packet else 24)) / packet),
}


def _type(packet) -> int:
    return 0x0800 if isinstance(packet, IP) else 0x86DD


def pcap(path: Path, frames: list, link_type: int = 1, order: str = "<", ns: bool = True, snap: int = 1 << 16) -> Path:
    """A capture of one frame a microsecond."""
    data = [struct.pack(order + "IHHIIII", 0xA1B23C4D if ns else 0xA1B2C3D4, 2, 4, 0, 0, snap, link_type)]
    for number, frame in enumerate(map(bytes, frames)):
        seconds, rest_ns = divmod(FIRST_NS + 1000 * number, 10**9)
        part = rest_ns if ns else rest_ns // 1000
        data.append(struct.pack(order + "IIII", seconds, part, min(len(frame), snap), len(frame)) + frame[:snap])
    path.write_bytes(b"".join(data))
    return path


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    return struct.pack(order + "II", kind, 12 + len(body)) + body + struct.pack(order + "I", 12 + len(body))


def section(order: str = "<") -> bytes:
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))


def interface(order: str, link_type: int, snap: int, options: bytes = b"") -> bytes:
    return block(order, 1, struct.pack(order + "HHI", link_type, 0, snap) + options)


def option(order: str, code: int, value: bytes) -> bytes:
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def packet(order: str, number: int, ticks: int, frame) -> bytes:
    data = bytes(frame)
    head = struct.pack(order + "IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data))
    return block(order, 6, head + data)


def records(path: Path, payload_bytes: int = 0) -> tuple[np.ndarray, Capture]:
    capture = Capture(path, payload_bytes)
    parts = list(capture.batches())
    return np.concatenate(parts) if parts else np.zeros(0, CAPTURED_PACKET.dtype()), capture


# tshark's fields, of the outermost header, beside ours: (name there, whether we have it, ours).
def _same(name):
    return lambda record: int(record[name])


TSHARK = {
    "tcp": {
        "tcp.srcport": _same("src_port"), "tcp.dstport": _same("dst_port"), "tcp.seq_raw": _same("tcp_seq"),
        "tcp.ack_raw": _same("tcp_ack"), "tcp.window_size_value": _same("tcp_window"),
        "tcp.checksum": _same("checksum"),
    },
    "options": {
        "tcp.options.mss_val": _same("mss_bytes"), "tcp.options.timestamp.tsval": _same("ts_value"),
        "tcp.options.timestamp.tsecr": _same("ts_echo"), "tcp.options.sack_le": _same("sack_left"),
        "tcp.options.sack_re": _same("sack_right"), "tcp.options.wscale.shift": _same("window_scale"),
    },
    "udp": {
        "udp.srcport": _same("src_port"), "udp.dstport": _same("dst_port"), "udp.checksum": _same("checksum"),
    },
    "v4": {
        "ip.id": _same("ip_id"), "ip.ttl": _same("ttl"), "ip.dsfield": _same("tos"), "ip.proto": _same("ip_protocol"),
        "ip.len": _same("ip_bytes"),
        "ip.src": lambda record: int(record["src_addr_lo"]) & 0xFFFFFFFF,
        "ip.dst": lambda record: int(record["dst_addr_lo"]) & 0xFFFFFFFF,
    },
    "v6": {
        "ipv6.hlim": _same("ttl"), "ipv6.tclass": _same("tos"), "ipv6.fraghdr.ident": _same("ip_id"),
        "ipv6.plen": lambda record: int(record["ip_bytes"]) - 40,
        "ipv6.src": lambda record: int(record["src_addr_hi"]) << 64 | int(record["src_addr_lo"]),
        "ipv6.dst": lambda record: int(record["dst_addr_hi"]) << 64 | int(record["dst_addr_lo"]),
    },
}  # fmt: skip
OTHERS = (
    "frame.len", "frame.cap_len", "frame.time_epoch", "tcp.len", "tcp.flags", "vlan.id", "ieee8021ad.id",
    "frame.protocols", "ip.frag_offset",
)  # fmt: skip
NAMES = (*OTHERS, *(name for group in TSHARK.values() for name in group))
RAW_FIELDS = ("-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE", "-o", "tcp.relative_sequence_numbers:FALSE")


def by_tshark(path: Path) -> list[dict[str, str]]:
    fields = [word for name in NAMES for word in ("-e", name)]
    command = ["tshark", "-n", "-r", str(path), *RAW_FIELDS, "-T", "fields", "-E", "occurrence=f", *fields]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    return [dict(zip(NAMES, line.split("\t"), strict=True)) for line in done.stdout.splitlines()]


def number(text: str) -> int:
    if "." in text or ":" in text:
        return int(ipaddress.ip_address(text))
    return int(text, 0)


def differences(record: np.void, read: dict[str, str]) -> list[str]:
    """The fields in which a record and tshark differ; a field that tshark does not have counts where we have none."""
    flags, layers = int(record["flags"]), read["frame.protocols"].split(":")
    has = {name: bool(flags & CONST[f"CAPTURED_HAS_{name.upper()}"]) for name in ("ip", "ports", "tcp", "options")}
    is_v4 = int(record["src_addr_lo"]) >> 32 == 0xFFFF and not record["src_addr_hi"]
    pairs = {"frame.len": record["frame_bytes"], "frame.cap_len": record["captured_bytes"]}
    groups = []
    if has["ip"]:
        groups = ["v4" if is_v4 else "v6", *["tcp"] * has["tcp"], *["options"] * (has["tcp"] and has["options"])]
        groups += ["udp"] * bool(
            has["ports"] and record["ip_protocol"] == 17 and not flags & CONST["CAPTURED_IS_SHORT"]
        )
    pairs |= {name: of(record) for group in groups for name, of in TSHARK[group].items()}
    wrong = [
        f"{name}: {read[name]}, here {ours}"
        for name, ours in pairs.items()
        if read[name]
        and number(read[name]) != ours
        and not (name in ("ip.len", "ipv6.plen") and number(read[name]) == 0)
    ]
    seconds, _, rest = read["frame.time_epoch"].partition(".")
    if seconds and int(seconds) * 10**9 + int(rest.ljust(9, "0")) != int(record["real_ns"]):
        wrong.append(f"time: {read['frame.time_epoch']}, here {record['real_ns']}")
    if has["tcp"]:
        if read["tcp.flags"] and number(read["tcp.flags"]) & 0xFF != record["tcp_flags"]:
            wrong.append(f"tcp.flags: {read['tcp.flags']}, here {record['tcp_flags']}")
        if read["tcp.len"] and number(read["tcp.len"]) != record["payload_bytes"] and not record["fragment"]:
            wrong.append(f"tcp.len: {read['tcp.len']}, here {record['payload_bytes']}")
    offset = number(read["ip.frag_offset"] or "0")  # in bytes, or in units of 8 bytes, by tshark's version
    if is_v4 and has["ip"] and int(record["fragment"] & 0x1FFF) not in (offset, offset // 8):
        wrong.append(f"ip.frag_offset: {offset}, here {record['fragment']}")
    outer = layers[: layers.index("ip" if "ip" in layers else "ipv6")] if {"ip", "ipv6"} & set(layers) else None
    outer_tag = read["ieee8021ad.id"] or read["vlan.id"]
    if outer and {"vlan", "ieee8021ad"} & set(outer) and number(outer_tag) != record["vlan_id"] and has["ip"]:
        wrong.append(f"vlan.id: {outer_tag}, here {record['vlan_id']}")
    understood = has["ip"] or flags & (CONST["CAPTURED_IS_SHORT"] | CONST["CAPTURED_IS_MALFORMED"]) or record["tunnel"]
    if outer is not None and set(outer) <= {"eth", "ethertype", "vlan", "sll", "raw", "null", "llc"} and not understood:
        wrong.append(f"no IP here, but {read['frame.protocols']}")
    return wrong


def assert_as_tshark(path: Path) -> int:
    ours, capture = records(path)
    read = [frame for frame in by_tshark(path) if frame["frame.time_epoch"]]  # pcapng may leave out times
    assert len(read) == len(ours), (path, capture.damage)
    wrong = [
        f"{path} frame {row + 1}: {line}" for row in range(len(ours)) for line in differences(ours[row], read[row])
    ]
    assert not wrong, "\n".join(wrong[:40])
    return len(ours)


needs_tshark = pytest.mark.skipif(not shutil.which("tshark"), reason="no tshark on the PATH: apt-get install tshark")


@needs_tshark
def test_headers__are_those_of_tshark(tmp_path):
    for number_of_link, (name, (link_type, link)) in enumerate(LINKS.items()):
        frames = [link(payload) for payload in PAYLOADS] + ([ETHER / ARP()] if link_type == 1 else [])
        order, ns = "<>"[number_of_link % 2], number_of_link % 3 > 0
        path = pcap(tmp_path / name, frames, link_type, order, ns)
        assert assert_as_tshark(path) == len(frames)
        ours, _ = records(path)
        assert (ours["flags"][: len(PAYLOADS)] & CONST["CAPTURED_HAS_IP"]).all(), name
        # Down to the TCP header, and to every shorter length: what is not there is said, and nothing else changes.
        for snap in range(0, 90, 7):
            part, _ = records(pcap(tmp_path / "short", frames, link_type, order, ns, snap))
            short = part["flags"] & CONST["CAPTURED_IS_SHORT"] != 0
            for field, layer in (("src_addr_lo", "IP"), ("tcp_seq", "TCP"), ("options_digest", "OPTIONS")):
                absent = part["flags"] & CONST[f"CAPTURED_HAS_{layer}"] == 0
                assert (absent | (part[field] == ours[field])).all(), (name, snap, field)
            assert (short | (part["payload_bytes"] == ours["payload_bytes"])).all(), (name, snap)


@needs_tshark
def test_pcapng__has_interfaces_of_any_kind(tmp_path):
    """Link types, snap lengths, resolutions, offsets of each interface; sections of either byte order; other blocks."""
    data = b""
    for order in "<>":
        offset = option(order, 14, struct.pack(order + "q", 1000))
        data += section(order) + interface(order, 276, 262144) + interface(order, 1, 96, option(order, 9, b"\x09"))
        data += interface(order, 101, 65535, option(order, 9, b"\x94") + offset) + block(order, 4, bytes(4))
        data += packet(order, 0, FIRST_NS // 1000, LINKS["cooked 2"][1](PAYLOADS[0]))
        data += packet(order, 1, FIRST_NS, LINKS["qinq"][1](PAYLOADS[1]))
        data += packet(order, 2, 5 << 20, PAYLOADS[9])
        counts = option(order, 4, struct.pack(order + "Q", 10)) + option(order, 5, struct.pack(order + "Q", 3))
        data += block(order, 5, struct.pack(order + "III", 1, 0, 0) + counts)
    (tmp_path / "c").write_bytes(data)
    assert assert_as_tshark(tmp_path / "c") == 6
    ours, capture = records(tmp_path / "c")
    assert ours["interface"].tolist() == [0, 1, 2, 3, 4, 5]
    assert ours["real_ns"][:3].tolist() == [FIRST_NS // 1000 * 1000, FIRST_NS, 1005 * 10**9]
    assert (capture.lost, [one["received"] for one in capture.interfaces]) == (6, [None, 10, None, None, 10, None])


@needs_tshark
def test_interfaces__may_be_more_than_a_pipe_holds_the_counts_of(tmp_path):
    blocks = [interface("<", 1, 0)] * 3000 + [packet("<", 2999, 5_000_000, ETHER / PAYLOADS[0])]
    (tmp_path / "file").write_bytes(section() + b"".join(blocks))
    read, capture = records(tmp_path / "file")
    assert (read["interface"].tolist(), len(capture.interfaces)) == ([2999], 3000)


@pytest.mark.skipif(not os.environ.get("CAPTURES_OF_OTHERS"), reason="CAPTURES_OF_OTHERS names no directory")
def test_captures_of_others__are_read_as_tshark_reads_them():
    compared, faults = [], []
    for path in sorted(Path(os.environ["CAPTURES_OF_OTHERS"]).rglob("*")):
        if not path.is_file():
            continue
        try:
            compared.append((path, assert_as_tshark(path)))
        except InputError as error:
            print(error)
        except AssertionError as error:
            faults.append(str(error))
    print(f"{len(compared)} files, {sum(count for _, count in compared)} packets")
    assert not faults, "\n".join(faults)


def test_tunnel__is_named(tmp_path):
    mpls = Raw(b"\0\1\1\x40")
    frames = {
        "MPLS": Ether(src=HOST, dst=HOST, type=0x8847) / mpls / V4,
        "PPPOE": Ether(src=HOST, dst=HOST, type=0x8864) / Raw(b"\x11\0\0\1\0\x20\0\x21") / V4,
        "GRE": ETHER / V4 / GRE() / V4,
        "VXLAN": ETHER / V4 / UDP(dport=4789) / bytes(8) / ETHER / V4,
        "IP-in-IP": ETHER / V4 / V6,
        "GENEVE": ETHER / V6 / UDP(dport=6081) / bytes(8),
    }
    ours, _ = records(pcap(tmp_path / "c", list(frames.values())))
    assert [TUNNELS[kind] for kind in ours["tunnel"].tolist()] == list(frames)


@pytest.mark.parametrize("program", ["gzip", "zstd", "xz"])
def test_compressed_capture__is_read_like_the_file_in_it(tmp_path, program):
    if not shutil.which(program):
        pytest.skip(f"no {program} on the PATH")
    path = pcap(tmp_path / "c", [ETHER / PAYLOADS[1]] * 5000)
    packed = tmp_path / "packed"
    packed.write_bytes(subprocess.run([program, "-c", path], check=True, capture_output=True).stdout)
    assert np.array_equal(records(packed)[0], records(path)[0])
    (tmp_path / "link").symlink_to(packed)
    assert is_capture(tmp_path / "link")
    packed.write_bytes(packed.read_bytes()[:-20])
    _, capture = records(packed)
    assert capture.damage


def test_decompressor__that_is_killed_between_packets_is_damage(tmp_path, monkeypatch):
    (tmp_path / "packed").write_bytes(b"\x1f\x8b")
    pcap(tmp_path / "c", [ETHER / PAYLOADS[1]] * 3)
    (tmp_path / "gzip").write_text(f"#!/bin/sh\ncat {tmp_path / 'c'}\nkill -9 $$\n")
    (tmp_path / "gzip").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    ours, capture = records(tmp_path / "packed")
    assert len(ours) == 3
    assert capture.damage


def test_file__of_which_nobody_can_tell_whether_it_is_a_capture_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "packed").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(100))
    monkeypatch.setenv("PATH", "")
    for name in ("packed", "none"):
        with pytest.raises(InputError):
            is_capture(tmp_path / name)


def test_damage__ends_the_capture_and_is_said(tmp_path):
    whole = pcap(tmp_path / "c", [ETHER / PAYLOADS[1]] * 3).read_bytes()
    path = tmp_path / "d"
    for data, count in (
        (whole[:-1], 2),
        (whole[: 24 + 10], 0),
        (whole[:24] + struct.pack("<IIII", 1, 0, 1 << 30, 5), 0),
        (section() + packet("<", 0, 1, b""), 0),
        (section() + interface("<", 1, 0) + packet("<", 0, 1, b"x")[:-1], 0),
        (section() + struct.pack("<II", 6, 7), 0),
        (section() + interface("<", 1, 0) + packet("<", 0, 1, b"x")[:-4] + bytes(4), 0),
    ):
        path.write_bytes(data)
        ours, capture = records(path)
        assert len(ours) == count
        assert capture.damage, data[:40]
    for data in (b"", b"no capture at all", whole[:20]):
        path.write_bytes(data)
        with pytest.raises(InputError):
            list(Capture(path).batches())


def test_reader__survives_any_bytes(tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for name, (link_type, link) in LINKS.items():
        pcap(corpus / name, [link(payload) for payload in PAYLOADS], link_type)
    (corpus / "ng").write_bytes(section() + interface("<", 1, 0) + packet("<", 0, 1, ETHER / PAYLOADS[0]))
    fuzz("captures", "fuzz_capture", "-max_total_time=3", "-max_len=9000", corpus=corpus)


@pytest.mark.skipif(not shutil.which("xz"), reason="no xz on the PATH")
def test_compressed_file__that_asks_for_much_memory_is_refused(tmp_path):
    data = pcap(tmp_path / "file", [ETHER / PAYLOADS[0]]).read_bytes()
    fast = {"mode": lzma.MODE_FAST, "mf": lzma.MF_HC3, "nice_len": 8, "depth": 1}
    for dictionary_bytes, is_read in ((1 << 26, True), (1 << 30, False)):
        filters = [{"id": lzma.FILTER_LZMA2, "dict_size": dictionary_bytes, **fast}]
        (tmp_path / "file.xz").write_bytes(lzma.compress(data, filters=filters))
        if is_read:
            assert is_capture(tmp_path / "file.xz")
        else:
            with pytest.raises(InputError, match="needs more than 256 MiB"):
                is_capture(tmp_path / "file.xz")


def test_connections__of_any_packets_lose_none(tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    fuzz("captures", "fuzz_connections", "-max_total_time=3", "-len_control=0", "-max_len=24000", corpus=corpus)
