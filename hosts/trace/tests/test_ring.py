# SPDX-License-Identifier: MIT
"""Decodes hand-made pages of the kernel's trace ring. A damaged page yields the events before the damage."""

import struct
import subprocess
from pathlib import Path

import pytest

from lib.tests.fuzzing import fuzz
from wire.wire import TCP_RECORD

ROOT = Path(__file__).resolve().parents[3]
CONST = TCP_RECORD.const
PROBE, RETRANSMIT = CONST["TCP_EVENT_PROBE"], CONST["TCP_EVENT_RETRANSMIT"]
FIELDS = [name for name, _ in TCP_RECORD.fields]
START_NS = 5_000_000_000
PADDING, EXTEND, STAMP = 29, 30, 31
MISSED, STORED = 1 << 31, 1 << 30
DAMAGED = -74  # -EBADMSG
HEADER_EVENT = """# compressed entry header
\ttype_len    :    5 bits
\ttime_delta  :   27 bits
\tarray       :   32 bits

\tpadding     : type == 29
\ttime_extend : type == 30
\ttime_stamp : type == 31
\tdata max type_len  == 28
"""
COMMON = [("unsigned short", "common_type", 2), ("unsigned char", "common_flags", 1),
          ("unsigned char", "common_preempt_count", 1), ("int", "common_pid", 4)]  # fmt: skip
CUSTOM = [("__u32", "netns_inode", 4), ("__u16", "dport", 2), ("__u8", "failed", 1), ("__u8", "record_version", 1),
        ("__u8", f"record[{TCP_RECORD.length}]", 1)]  # fmt: skip
PROBE_5_10 = [("__u8", "saddr[28]", 1), ("__u8", "daddr[28]", 1), ("__u16", "sport", 2), ("__u16", "dport", 2),
              ("__u32", "mark", 4), ("__u16", "data_len", 2), ("__u32", "snd_nxt", 4), ("__u32", "snd_una", 4),
              ("__u32", "snd_cwnd", 4), ("__u32", "ssthresh", 4), ("__u32", "snd_wnd", 4), ("__u32", "srtt", 4),
              ("__u32", "rcv_wnd", 4), ("__u64", "sock_cookie", 8)]  # fmt: skip
PROBE_6_12 = [*PROBE_5_10[:4], ("__u16", "family", 2), *PROBE_5_10[4:], ("const void *", "skbaddr", 8)]
RETRANSMIT_5_10 = [("const void *", "skbaddr", 8), ("const void *", "skaddr", 8), ("int", "state", 4),
                   ("__u16", "sport", 2), ("__u16", "dport", 2), ("__u8", "saddr[4]", 1), ("__u8", "daddr[4]", 1),
                   ("__u8", "saddr_v6[16]", 1), ("__u8", "daddr_v6[16]", 1)]  # fmt: skip
RETRANSMIT_6_16 = [*RETRANSMIT_5_10[:5], ("__u16", "family", 2), *RETRANSMIT_5_10[5:], ("int", "err", 4)]


@pytest.fixture(scope="module")
def tool():
    subprocess.run(["make", "-s", "-C", ROOT / "hosts", "SANITIZE=1", "tools"], check=True)
    return ROOT / "build/sanitize/obj/hosts/ring_tool"


class Event:
    """An event's format text, and its bytes from values, laid out as by a C compiler."""

    def __init__(self, number, fields):
        self.number, self.places, at = number, {}, 0
        lines = []
        for kind, declared, size in [*COMMON, *fields]:
            name, _, count = declared.rstrip("]").partition("[")
            at = -(-at // size) * size
            length = size * int(count or 1)
            lines.append(f"\tfield:{kind} {declared};\toffset:{at};\tsize:{length};\tsigned:0;\n")
            self.places[name] = (at, length)
            at += length
        self.length = at
        self.text = (
            f'name: x\nID: {number}\nformat:\n{"".join(lines)}\nprint fmt: "field:u8 a;\\toffset:1;\\tsize:1;"\n'
        )

    def data(self, **values):
        result = bytearray(self.length)
        for name, value in dict(values, common_type=self.number).items():
            at, length = self.places[name]
            result[at : at + length] = value if isinstance(value, bytes) else value.to_bytes(length, "little")
        return bytes(result)


def word(kind, delta):
    return struct.pack("<I", delta << 5 | kind)


def entry(data, delta=0):
    data += bytes(-len(data) % 4)
    if 0 < len(data) // 4 <= 28:
        return word(len(data) // 4, delta) + data
    return word(0, delta) + struct.pack("<I", len(data) + 4) + data


def page(*entries, flags=0, behind=b"", size=4080):
    body = b"".join(entries)
    return struct.pack("<QQ", START_NS, len(body) | flags) + (body + behind).ljust(size, b"\0")


def header_page(data_bytes=4080):
    fields = [("u64 timestamp", 0, 8), ("local_t commit", 8, 8), ("int overwrite", 8, 1), ("char data", 16, data_bytes)]
    return "".join(f"\tfield: {name};\toffset:{at};\tsize:{size};\tsigned:0;\n" for name, at, size in fields)


class Reader:
    """Runs ring_tool on the given formats; `read` returns the events and the account of a page."""

    def __init__(self, tool, directory, kind, probe, retransmit, header=None):
        self.command = [tool, kind, directory]
        self.probe, self.retransmit = Event(701, probe), Event(702, retransmit)
        texts = {"header_page": header or header_page(), "header_event": HEADER_EVENT,
                 "tcp_probe": self.probe.text, "tcp_retransmit_skb": self.retransmit.text}  # fmt: skip
        for name, text in texts.items():
            (directory / name).write_text(text)

    def run(self, data=b""):
        return subprocess.run(self.command, input=data, capture_output=True, timeout=60, check=False)

    def read(self, data):
        done = self.run(data)
        assert done.returncode == 0, done.stderr.decode()
        *events, last = done.stdout.decode().splitlines()
        status, count, missed, uncounted = map(int, last.split()[1:])
        assert count == len(events)
        decoded = [TCP_RECORD.decode(bytes.fromhex(e[7:])) if e.startswith("record ") else e for e in events]
        return decoded, {"status": status, "missed": missed, "uncounted": uncounted}


@pytest.fixture
def custom(tool, tmp_path):
    return Reader(tool, tmp_path, "custom", CUSTOM, CUSTOM)


@pytest.fixture(params=["5.10", "6.16"])
def stock(request, tool, tmp_path):
    probe, retransmit = (PROBE_5_10, RETRANSMIT_5_10) if request.param == "5.10" else (PROBE_6_12, RETRANSMIT_6_16)
    return Reader(tool, tmp_path, "stock", probe, retransmit)


def custom_data(reader, number=1, event=PROBE, failed=0, version=CONST["TCP_RECORD_VERSION"]):
    source = reader.probe if event == PROBE else reader.retransmit
    record = TCP_RECORD.encode(event=event, snd_nxt=number, cpu=9)
    return source.data(record=record, failed=failed, record_version=version)


def times(decoded):
    return [record["mono_ns"] - START_NS for record in decoded]


def test_page__times_add_up_over_extensions_stamps_and_discarded_events(custom):
    data = custom_data(custom)
    extend = word(EXTEND, 5) + struct.pack("<I", 3)  # 3 << 27 | 5
    decoded, _ = custom.read(page(entry(data), entry(data, 100), extend, entry(data), entry(data, 7)))
    assert times(decoded) == [0, 100, 105 + (3 << 27), 112 + (3 << 27)]

    now = START_NS + 12345
    decoded, _ = custom.read(page(word(STAMP, now & (1 << 27) - 1) + struct.pack("<I", now >> 27), entry(data)))
    assert times(decoded) == [12345]
    high = 1 << 60  # a clock beyond 59 bits, whose low bits have just wrapped around
    head = struct.pack("<Q", high - 10) + page(word(STAMP, 4) + struct.pack("<I", 0), entry(data))[8:]
    assert custom.read(head)[0][0]["mono_ns"] == high + 4

    discarded = word(PADDING, 50) + struct.pack("<I", 20) + bytes(16)
    at_once = word(PADDING, 1) + struct.pack("<I", 20) + bytes(16)  # the kernel writes 1 for 0
    rest = [at_once, entry(data, 3), word(PADDING, 0), b"\xff" * 40]
    decoded, account = custom.read(page(entry(data), discarded, *rest))
    assert times(decoded) == [0, 53]
    assert account == {"status": 0, "missed": 0, "uncounted": 0}


def test_page__overwritten_events_are_missed(custom):
    data = entry(custom_data(custom))
    assert custom.read(page(data, flags=MISSED | STORED, behind=struct.pack("<Q", 77)))[1]["missed"] == 77
    assert custom.read(page(data, flags=MISSED))[1] == {"status": 0, "missed": 0, "uncounted": 1}
    # a page too full for the number of missed events
    assert custom.read(page(data, flags=MISSED | STORED, size=len(data) + 7))[1]["uncounted"] == 1


def test_custom_event__is_the_record_with_the_rings_time_and_cpu(custom):
    sent = {name: index + 1 for index, name in enumerate(FIELDS)} | {"event": RETRANSMIT}
    data = custom.retransmit.data(record=TCP_RECORD.encode(**sent), record_version=CONST["TCP_RECORD_VERSION"])
    decoded, _ = custom.read(page(entry(data, 9)))
    assert decoded == [sent | {"mono_ns": START_NS + 9, "cpu": 3}]


def test_custom_event__other_failed_and_damaged_events_are_distinguished(custom):
    other = Event(999, CUSTOM).data()
    decoded, account = custom.read(
        page(
            entry(custom_data(custom, event=RETRANSMIT, failed=1)),
            entry(other),
            entry(custom_data(custom, version=77)),
            entry(custom_data(custom)[:100]),
            entry(custom_data(custom, number=5)),
        )
    )
    assert decoded[:4] == ["failed", "other", "damaged", "damaged"]
    assert decoded[4]["snd_nxt"] == 5
    assert account["status"] == 0


def sockaddr(address, port):
    if len(address) == 4:
        return struct.pack("<H", 2) + struct.pack(">H", port) + address + bytes(20)
    return struct.pack("<H", 10) + struct.pack(">HI", port, 0) + address + bytes(4)


V4 = (bytes([10, 77, 0, 1]), bytes([10, 77, 0, 2]))
V6 = (bytes.fromhex("fd77" + "00" * 13 + "01"), bytes.fromhex("fd77" + "00" * 13 + "02"))


def test_stock_probe__missing_fields_are_unknown(stock):
    for addresses in (V4, V6):
        src, dst = addresses
        data = stock.probe.data(
            sport=5, dport=6, data_len=7, snd_nxt=8, snd_una=9, snd_cwnd=10, snd_wnd=11, rcv_wnd=12, srtt=13,
            saddr=sockaddr(src, 5), daddr=sockaddr(dst, 6), ssthresh=99, sock_cookie=1 << 40, mark=3,
        )  # fmt: skip
        decoded, _ = stock.read(page(entry(data)))
        mapped = [int.from_bytes(a if len(a) == 16 else bytes(10) + b"\xff\xff" + a, "big") for a in addresses]
        known = {
            "mono_ns": START_NS, "event": PROBE, "cpu": 3, "src_port": 5, "dst_port": 6, "data_bytes": 7, "snd_nxt": 8,
            "snd_una": 9, "cwnd_packets": 10, "snd_wnd_bytes": 11, "rcv_wnd_bytes": 12, "srtt_us": 13,
            "ssthresh_packets": 99, "socket_cookie": 1 << 40, "src_addr_hi": mapped[0] >> 64,
            "src_addr_lo": mapped[0] & (1 << 64) - 1, "dst_addr_hi": mapped[1] >> 64,
            "dst_addr_lo": mapped[1] & (1 << 64) - 1,
        }  # fmt: skip
        unknown = sum(1 << i for i, name in enumerate(FIELDS) if name not in known and name != "unknown_fields")
        assert decoded == [dict.fromkeys(FIELDS, 0) | known | {"unknown_fields": unknown}]
    data = stock.probe.data(saddr=bytes(28), daddr=bytes(28))  # of another family
    assert stock.read(page(entry(data)))[0] == ["damaged"]


def test_stock_probe__ssthresh_is_known_unless_it_is_three_quarters_of_cwnd(stock):
    bit = 1 << FIELDS.index("ssthresh_packets")
    for current, known in ((6, True), (7, False), (8, True), (2**31 - 1, True)):  # 7 = 10/2 + 10/4
        data = stock.probe.data(saddr=sockaddr(V4[0], 1), daddr=sockaddr(V4[1], 2), snd_cwnd=10, ssthresh=current)
        (record,), _ = stock.read(page(entry(data)))
        assert record["ssthresh_packets"] == (current if known else 0)
        assert bool(record["unknown_fields"] & bit) is not known


def test_stock_retransmit__has_the_socket_and_marks_failures(stock):
    mapped = [bytes(10) + b"\xff\xff" + address for address in V4]
    values = {"sport": 5, "dport": 6, "saddr_v6": mapped[0], "daddr_v6": mapped[1]}
    decoded, _ = stock.read(page(entry(stock.retransmit.data(**values))))
    assert (decoded[0]["event"], decoded[0]["src_port"], decoded[0]["dst_port"]) == (RETRANSMIT, 5, 6)
    assert decoded[0]["dst_addr_lo"] == int.from_bytes(mapped[1][8:], "big")
    for name in ("cwnd_packets", "event_seq", "data_bytes", "snd_una", "socket_cookie"):
        assert decoded[0]["unknown_fields"] >> FIELDS.index(name) & 1
    if "err" in stock.retransmit.places:
        assert stock.read(page(entry(stock.retransmit.data(**values, err=2**32 - 105))))[0] == ["failed"]


def test_format__of_an_unknown_ring_or_without_a_needed_field_is_refused_by_name(tool, tmp_path):
    for kind, probe, retransmit, named in (
        ("custom", CUSTOM[:-1], CUSTOM, "tcp_probe record"),
        ("custom", [*CUSTOM[:-1], ("__u8", "record[144]", 1)], CUSTOM, "tcp_probe record"),
        ("stock", [f for f in PROBE_5_10 if f[1] != "dport"], RETRANSMIT_5_10, "tcp_probe dport"),
        ("stock", PROBE_5_10, RETRANSMIT_5_10[:-1], "tcp_retransmit_skb daddr_v6"),
    ):
        done = Reader(tool, tmp_path, kind, probe, retransmit).run()
        assert (done.returncode, done.stdout.decode().strip()) == (2, f"refused {named}")
    for text in ("\n", "rubbish\n", header_page().replace("commit", "comet"), header_page(1 << 30)):
        done = Reader(tool, tmp_path, "custom", CUSTOM, CUSTOM, header=text).run()
        assert (done.returncode, done.stdout) == (2, b"refused header format\n")


def test_page__larger_sub_buffers_are_read(tool, tmp_path):
    reader = Reader(tool, tmp_path, "custom", CUSTOM, CUSTOM, header=header_page(16368))
    entries = [entry(custom_data(reader, number), 1) for number in range(90)]
    decoded, _ = reader.read(page(*entries, size=16368))
    assert [record["snd_nxt"] for record in decoded] == list(range(90))


def test_page__damaged_anywhere_keeps_the_events_before(custom):
    whole = page(*[entry(custom_data(custom, number)) for number in range(3)])
    first = entry(custom_data(custom))
    for cut in range(0, 16 + 3 * len(first), 13):
        done = custom.run(whole[:cut])
        assert done.returncode == 0, done.stderr.decode()
        assert done.stdout.decode().split()[-4] == str(DAMAGED)
    wrong_lengths = [
        struct.pack("<QQ", START_NS, 5000) + whole[16:],  # length of the page
        page(first, word(0, 0), b"\xff" * 4),  # length of an event
        page(first, word(0, 0), b"\0" * 4),
        page(first, word(PADDING, 2), b"\xf0\xff\xff\xff"),  # length of a discarded event
        page(first, b"\x01\x01"),
    ]
    for damaged in wrong_lengths:
        decoded, account = custom.read(damaged)
        assert account["status"] == DAMAGED
        assert len(decoded) == (damaged is not wrong_lengths[0])


def test_parser__holds_its_invariants_under_fuzzing(custom, tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    good = page(entry(Event(1, CUSTOM).data(record_version=2, record=TCP_RECORD.encode(event=PROBE))), entry(bytes(80)))
    texts = [header_page(), HEADER_EVENT, Event(1, CUSTOM).text, Event(2, PROBE_6_12).text]
    (corpus / "seed").write_bytes(b"".join(text.encode() + b"\0" for text in texts) + good)
    options = ["-seed=1", "-runs=50000", "-max_len=8192"]
    fuzz("hosts", "fuzz_ring", *options, corpus=corpus)
