# SPDX-License-Identifier: MIT
"""Imports of damaged, doubled, cut and mixed variants of one capture and of one trace. Each variant has the numbers of
the whole source, or a reason, or is refused. No variant has other numbers without a reason.
"""

import json
import random
import re
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from analysis.tests import foreign, simulate
from analysis.tests.imports import pcap
from bufferscope.__main__ import main
from wire import wire

pytestmark = pytest.mark.usefixtures("undrawn")
SCENARIO = simulate.Scenario(flows=2, rate_bps=10_000_000, rtt_ns=20_000_000, threshold=12, duration_ns=700_000_000)
LINK = ("RATE=10mbit", "RTT=20ms", "MTU=1500", "BUF=12p", "WARMUP=200ms", "DURATION=400ms", "FLOWS=2")
PORT, REAL_NS, TURN = wire.POSTCARD.const["POSTCARD_UDP_PORT"], 10**18, 1 << 48
SAME, REASON = "the numbers of the whole source", "a reason, or refused"
Datagrams = list[tuple[int, bytes]]
Lines = list[str]


@pytest.fixture(scope="module")
def source() -> tuple[Datagrams, Lines, Lines]:
    """The datagrams of a whole capture, the lines of a whole trace, and the lines of the artifact's postcards."""
    truth = simulate.Simulation(SCENARIO).run()
    stored = simulate.stored_postcards(SCENARIO, truth)
    datagrams = [(REAL_NS + int.from_bytes(card[:8], "little"), card[8:]) for card in stored]
    return datagrams, foreign.trace_lines(truth), foreign.postcard_lines(truth)


Answer = tuple[dict, list[str]]


def imported(output: Path, files: list[Path], words: tuple[str, ...] = ()) -> Answer | None:
    """The numbers of an import, and the reasons against it; None if it is refused."""
    given = {word.partition("=")[0] for word in words}
    link = [word for word in LINK if word.partition("=")[0] not in given]
    if main(["import", f"FROM={','.join(map(str, files))}", f"OUTPUT={output}", *link, *words]) == 1:
        return None
    summary = json.loads((output / "rep-1/summary.json").read_text())
    names = ("arrivals", "drops", "measured_s", "goodput_bps", "goodput_p01_bps", "jain_index", "drained_fraction")
    nested = [("utilization", "mean"), ("utilization", "min"), ("queue_depth_packets", "mean")]
    nested += [("queue_delay_ns", "p99"), ("almost_fairness", "window_p50_packets")]
    found = {name: summary[name] for name in names} | {f"{a} {b}": summary[a][b] for a, b in nested}
    return found | {"flows": [flow["five_tuple"] for flow in summary["flows"]]}, summary["reasons"]


def fault(whole: Answer, answer: Answer | None, want: str) -> str:
    """A line if the answer is not as wanted, else nothing."""
    if answer is None:
        return "refused" * (want == SAME)
    found, reasons = answer
    more = [reason for reason in reasons if reason not in whole[1]]
    differ = {name: (value, whole[0][name]) for name, value in found.items() if value != whole[0][name]}
    if differ:
        return f"{differ}: {more}" * (want == SAME or not more)
    return "no reason" * (want == REASON and not more)


def changed(datagrams: Datagrams, rows, **fields: int | Callable[[dict], int]) -> Datagrams:
    """Some of the postcards with other fields."""
    result = list(datagrams)
    for row in rows:
        ns, card = result[row]
        old = wire.POSTCARD.decode(card)
        result[row] = ns, wire.POSTCARD.encode(**old | {k: v(old) if callable(v) else v for k, v in fields.items()})
    return result


def both(datagrams: Datagrams, **fields) -> Datagrams:
    """Two postcards for each packet, the second with other fields."""
    other = changed(datagrams, range(len(datagrams)), **fields)
    return [datagram for pair in zip(datagrams, other, strict=True) for datagram in pair]


def later(datagrams: Datagrams, ns: int, first: int) -> Datagrams:
    """The capture's clock is set at a datagram."""
    return [(at + ns * (row >= first), card) for row, (at, card) in enumerate(datagrams)]


def without(items: list, rows) -> list:
    return [item for row, item in enumerate(items) if row not in set(rows)]


def capture_variants(d: Datagrams):
    """(name, what is wanted, the files' datagrams, words of the command line)."""
    n, half, chance = len(d), len(d) // 2, random.Random(3)
    forth = [(ns + 10**9 * row, card) for row, (ns, card) in enumerate(d)]
    tick = changed(d, range(half, n), enqueue_switch_ns=lambda f: (f["enqueue_switch_ns"] + 10**10) % TURN)
    anew = changed(d, range(half, n), card_seq=lambda f: (f["card_seq"] - 5000) % (1 << 32),
                   enqueue_switch_ns=lambda f: (f["enqueue_switch_ns"] - 10**9) % TURN)  # fmt: skip
    refused = [row for row, (_, card) in enumerate(d) if card[1] & simulate.CARD["POSTCARD_AT_INGRESS"]]
    drift = [(REAL_NS + (ns - REAL_NS) * 1001 // 1000, card) for ns, card in d]
    yield "twice", SAME, [[x for x in d for _ in range(2)]], ()
    yield "twice, 40 us apart", SAME, [[(ns + late, card) for ns, card in d for late in (0, 40_000)]], ()
    yield "a tenth twice", SAME, [[x for row, x in enumerate(d) for _ in range(1 + (row % 10 == 0))]], ()
    yield "three times", SAME, [[*d, *d, *d]], ()
    yield "two captures of one link", SAME, [d, later(d, 7_000, 0)], ()
    yield "clock forward", SAME, [later(d, 10**10, half)], ()
    yield "clock back", SAME, [later(d, -(10**10), half)], ()
    yield "clock back a little", SAME, [later(d, -50_000_000, half)], ()
    yield "clock set often", SAME, [forth], ()
    yield "one capture time", SAME, [[(REAL_NS, card) for _, card in d]], ()
    yield "fast clock", SAME, [drift], ()
    yield "slow collector", SAME, [[(ns + chance.randrange(10**8), card) for ns, card in d]], ()
    yield "rotated", SAME, [d[:half], d[half:]], ()
    yield "rotated, last first", SAME, [d[half:], d[100:half], d[:100]], ()
    yield "rotated, overlapping", SAME, [d[: half + 50], d[half:]], ()
    yield "rotated, one empty", SAME, [d, []], ()
    yield "rotated, one missing", REASON, [d[:half], d[half + 60 :]], ()
    yield "a tenth missing", REASON, [without(d, range(0, n, 10))], ()
    yield "one missing", REASON, [without(d, [half])], ()
    yield "a block missing", REASON, [without(d, range(half, half + 40))], ()
    yield "drops missing", REASON, [without(d, refused[1:-1])], ()
    yield "all drops missing", REASON, [without(d, refused)], ()
    yield "begins late", REASON, [d[60:]], ()
    yield "begins in the window", REASON, [d[half:]], ()
    yield "ends early", REASON, [d[:half]], ()
    yield "ends a little early", REASON, [d[: round(n * 0.65)]], ()
    yield "another switch", SAME, [both(d[:-1], switch_id=2) + d[-1:]], ()
    yield "another switch with another clock", SAME, [
        both(d[:-1], switch_id=2, enqueue_switch_ns=lambda f: (f["enqueue_switch_ns"] + TURN // 3) % TURN) + d[-1:]
    ], ()  # fmt: skip
    yield "another port", SAME, [both(d[:-1], egress_port=5) + d[-1:]], ()
    yield "another queue", REASON, [both(d[:-1], queue_id=1) + d[-1:]], ()
    yield "half of another switch", REASON, [changed(d, range(0, n, 2), switch_id=2)], ()
    yield "the switch began anew", REASON, [anew], ()
    yield "the switch's clock was set", REASON, [tick], ()
    yield "equal numbers", REASON, [changed(d, range(half, half + 9), card_seq=7)], ()
    yield "wrong depths", REASON, [changed(d, range(half, n), depth_packets=lambda f: f["depth_packets"] + 30)], ()
    yield "another threshold", REASON, [changed(d, range(half, n), threshold=99)], ()
    yield "another policy", REASON, [changed(d, range(half, n), policy=3)], ()
    yield "no depths", REASON, [changed(d, range(n), depth_unit=1, depth_packets=0)], ()
    yield "drops that have no cause", REASON, [changed(d, range(half, half + 9), flags=0x79)], ()
    yield "two in one datagram", REASON, [[*d[:half], (d[half][0], d[half][1] + d[half + 1][1]), *d[half + 2 :]]], ()
    yield "other datagrams", REASON, [[*d, (d[-1][0], b"hello")]], ()
    yield "unknown version", REASON, [changed(d, [half], version=9)], ()
    for words in ("RATE=5mbit", "RATE=20mbit", "RATE=11mbit", "MTU=576", "BUF=50p", "BUF=3p", "MODE=ecn",
                  "DURATION=10s", "WARMUP=5s", "FLOWS=1", "FLOWS=9"):  # fmt: skip
        yield words, REASON, [d], (words,)


def test_captures__in_variants_give_no_wrong_number_without_a_reason(source, tmp_path):
    datagrams, *_ = source
    whole = imported(tmp_path / "whole", [pcap(tmp_path / "whole.pcap", datagrams, PORT)])
    assert whole is not None
    assert len(whole[1]) == 1
    assert None not in [value for name, value in whole[0].items() if "window" not in name]
    wrong = []
    for number, (name, want, parts, words) in enumerate(capture_variants(datagrams)):
        files = [pcap(tmp_path / f"{number}-{part}.pcap", of_part, PORT) for part, of_part in enumerate(parts)]
        if said := fault(whole, imported(tmp_path / str(number), files, words), want):
            wrong.append(f"{name}: {said}")
    for name, cut in (("cut", lambda data: data[: len(data) // 2]), ("a broken frame", _broken)):
        (path := tmp_path / f"{name}.pcap").write_bytes(cut((tmp_path / "whole.pcap").read_bytes()))
        if said := fault(whole, imported(tmp_path / name, [path]), REASON):
            wrong.append(f"{name}: {said}")
    assert wrong == [], "\n".join(wrong)


def _broken(data: bytes) -> bytes:
    """A capture with an impossible length of one frame in the middle."""
    at = 24
    while at < len(data) // 2:
        at += 16 + struct.unpack_from("<I", data, at + 8)[0]
    return data[: at + 8] + b"\xff\xff\xff\x7f" + data[at + 12 :]


TIME = re.compile(r"\d+\.\d+(?=: (?:tcp_|postcard))")


def seconds_of(line: str) -> float:
    return float(match[0]) if (match := TIME.search(line)) else 0.0


def shifted(lines: Lines, ns: int, first: int = 0) -> Lines:
    """The clock is set at a line."""
    set_ = partial(TIME.sub, lambda match: foreign.seconds(round(float(match[0]) * 1e9) + ns)[:-3])
    return lines[:first] + [set_(line) for line in lines[first:]]


def receivers(lines: Lines) -> Lines:
    """The records of the receivers' sockets: they send nothing, so their sequence numbers stand still."""
    ends, sent = re.compile(r"src=(\S+) dest=(\S+)"), re.compile(r"snd_nxt=\S+ snd_una=\S+")
    probes = [line for line in lines if ": tcp_probe: " in line]
    return [sent.sub("snd_nxt=0x77 snd_una=0x77", ends.sub(r"src=\2 dest=\1", line)) for line in probes]


def trace_variants(lines: Lines):
    """(name, what is wanted, the files' lines, words of the command line)."""
    head, n, half = lines[:2], len(lines), len(lines) // 2
    ends = receivers(lines)
    ends_at = next(row for row in range(half, n) if seconds_of(lines[row]) > seconds_of(lines[2]) + 0.59)
    mixed = [x for row, line in enumerate(lines) for x in (line, *ends[row : row + 1])]
    yield "both ends", SAME, [mixed], ()
    yield "both ends, in two files", SAME, [lines, receivers(lines)], ()
    yield "receivers alone", REASON, [receivers(lines)], ()
    yield "twice", SAME, [[line for line in lines for _ in range(2)]], ()
    yield "two overlapping files", SAME, [lines[: half + 99], head + lines[half:]], ()
    yield "lost events", REASON, [[*lines[:half], "CPU:1 [LOST 12 EVENTS]", *lines[half:]]], ()
    yield "lost events without a number", REASON, [[*lines[:half], "CPU:1 [LOST EVENTS]", *lines[half:]]], ()
    yield "overrun", REASON, [["# entries-in-buffer/entries-written: 90/1000   #P:4", *lines]], ()
    yield "begins late", REASON, [head + lines[n // 5 :]], ()
    yield "ends early", REASON, [lines[:half]], ()
    yield "a block missing", REASON, [without(lines, range(half, half + n // 5))], ()
    yield "an unfinished line", REASON, [[*lines, "  iperf3-1 [00"]], ()
    yield "clock back", REASON, [shifted(lines, -(10**8), half)], ()
    yield "clock back far", REASON, [shifted(lines, -(10**11), half)], ()
    yield "clock forward", REASON, [shifted(lines, 2 * 10**8, half)], ()
    yield "clock forward at the end", REASON, [shifted(lines, 10**9, ends_at)], ()
    yield "clock forward far", REASON, [shifted(lines, 10**11, half)], ()
    yield "RTT=40ms", REASON, [lines], ("RTT=40ms",)
    yield "DURATION=10s", REASON, [lines], ("DURATION=10s",)
    yield "FLOWS=3", REASON, [lines], ("FLOWS=3",)


def artifact_variants(lines: Lines, trace: Lines):
    """(name, what is wanted, the files' lines, words of the command line)."""
    n, half = len(lines), len(lines) // 2
    yield "rotated", SAME, [lines[half:], lines[:half], trace], ()
    yield "twice", REASON, [[line for line in lines for _ in range(2)], trace], ()
    yield "a tenth twice", REASON, [[x for row, x in enumerate(lines) for _ in range(1 + (row % 10 == 0))], trace], ()
    yield "a tenth missing", REASON, [without(lines, range(0, n, 10)), trace], ()
    yield "one missing", REASON, [without(lines, [half]), trace], ()
    yield "begins in the window", REASON, [lines[half:], trace], ()
    yield "begins late, without a trace", REASON, [lines[half:]], ()
    yield "ends early", REASON, [lines[:half], trace], ()
    yield "clock back", REASON, [shifted(lines, -(10**8), half), trace], ()
    yield "clock forward", REASON, [shifted(lines, 3 * 10**8, half), trace], ()
    yield "an unfinished line", REASON, [[*lines, "281474.1: postc"], trace], ()
    yield "RATE=5mbit", REASON, [lines, trace], ("RATE=5mbit",)
    yield "MTU=576", REASON, [lines, trace], ("MTU=576",)


def test_text_logs__in_variants_give_no_wrong_number_without_a_reason(source, tmp_path):
    def saved(name: str, text: Lines) -> Path:
        (path := tmp_path / name).write_text("\n".join(text) + "\n" * (not text[-1].endswith(("[00", "postc"))))
        return path

    _, trace, cards = source
    wrong = []
    for kind, parts, variants in (
        ("trace", [trace], trace_variants(trace)), ("artifact", [cards, trace], artifact_variants(cards, trace)),
    ):  # fmt: skip
        files = [saved(f"{kind}-{part}.tr", of_part) for part, of_part in enumerate(parts)]
        whole = imported(tmp_path / kind, files)
        assert whole is not None
        assert len(whole[1]) == 1
        for number, (name, want, of_variant, words) in enumerate(variants):
            files = [saved(f"{kind}-{number}-{part}.tr", of_part) for part, of_part in enumerate(of_variant)]
            if said := fault(whole, imported(tmp_path / f"{kind}-{number}", files, words), want):
                wrong.append(f"{kind}, {name}: {said}")
    assert wrong == [], "\n".join(wrong)


def test_capture_and_trace__of_two_clocks_have_a_reason(source, tmp_path):
    datagrams, lines, _ = source
    cards = pcap(tmp_path / "cards.pcap", datagrams, PORT)
    counts = {}
    for ns in (0, -5_000_000, 5_000_000, 10**12):
        (trace := tmp_path / f"{ns}.tr").write_text("\n".join(shifted(lines, ns)) + "\n")
        answer = imported(tmp_path / str(ns), [cards, trace])
        assert answer is not None
        counts[ns] = len(answer[1])
    assert counts.pop(0) == 1
    assert min(counts.values()) > 1
