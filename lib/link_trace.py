# SPDX-License-Identifier: MIT
"""Traces of a link's rate, as files. Two formats:

CSV: lines `seconds,bits per second`, perhaps after a line `time_s,rate_bps`; the rate holds from this time on, and the
first time is the start. Mahimahi: lines with a whole number of ms since the start, one for each opportunity to send
1500 bytes of IP packets; the list repeats after its last line.
"""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

from lib import regular, units
from lib.frames import wire_bytes_of_ip
from lib.link_dynamics import OPPORTUNITY_BYTES, RateSchedule

MOST_FILE_BYTES = 64 << 20
HEADER = "time_s,rate_bps"
FORMATS = f"lines of {HEADER}, or of ms as in Mahimahi's traces"
MS, SECOND = 10**6, 10**9  # ns
_DECIMAL = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})?(?:[eE][+-]?[0-9]{1,2})?")
_WHOLE = re.compile(r"[0-9]{1,15}")


def read(path: Path) -> str:
    """The text of a trace. Raises ValueError; the message continues a sentence that begins with the file."""
    try:
        return regular.read_bytes(path, MOST_FILE_BYTES).decode("ascii")
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"is not text; allowed: {FORMATS}") from None


def parse(text: str) -> RateSchedule:
    """A trace in either format. Raises ValueError as read does."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if lines and lines[0][1].replace(" ", "") == HEADER:
        del lines[0]
    if not lines:
        raise ValueError(f"is empty; allowed: {FORMATS}")
    return _csv(lines) if "," in lines[0][1] else _mahimahi(lines)


def _csv(lines: list[tuple[int, str]]) -> RateSchedule:
    entries: list[tuple[int, int]] = []
    first = Fraction(0)
    for number, line in lines:
        words = [word.strip() for word in line.split(",")]
        if len(words) != 2 or not all(map(_DECIMAL.fullmatch, words)):
            raise ValueError(f"line {number}, {line[:40]!r}, is not a time and a rate; allowed: as in 0.25,200000000")
        seconds, rate_bps = map(Fraction, words)
        first = seconds if not entries else first
        at_ns = units.nearest((seconds - first) * SECOND)
        if entries and at_ns <= entries[-1][0]:
            raise ValueError(f"line {number}, {line[:40]!r}, is not later than the line before; allowed: rising times")
        entries.append((at_ns, units.nearest(rate_bps)))
    return RateSchedule(tuple(entries))


def _mahimahi(lines: list[tuple[int, str]]) -> RateSchedule:
    """An opportunity at 0 is one at the last time, where the list repeats: at the start itself no packet is there."""
    counts: Counter[int] = Counter()
    last_ms = 0
    for number, line in lines:
        if not _WHOLE.fullmatch(line):
            raise ValueError(f"line {number}, {line[:40]!r}, is not a whole number of ms; allowed: as in 125")
        if int(line) < last_ms:
            raise ValueError(f"line {number}, {line[:40]!r}, is before {last_ms} ms; allowed: times that do not fall")
        last_ms = int(line)
        counts[last_ms] += 1
    if not last_ms:
        raise ValueError("has only times of 0 ms; allowed: a last time above 0, after which the list repeats")
    counts[last_ms] += counts.pop(0, 0)
    return RateSchedule(tuple((ms * MS, count) for ms, count in counts.items()), opportunities=True)


def csv_text(schedule: RateSchedule) -> str:
    """The file of a schedule of steps."""
    lines = (f"{at_ns // SECOND}.{at_ns % SECOND:09},{rate_bps}\n" for at_ns, rate_bps in schedule.entries)
    return f"{HEADER}\n{''.join(lines)}"


def mahimahi_text(schedule: RateSchedule, duration_ns: int) -> str:
    """Opportunities with the mean rate of a schedule of steps: each as soon as its 1538 wire bytes could be sent."""
    bits = 8 * wire_bytes_of_ip(OPPORTUNITY_BYTES)
    lines, sent = [], 0
    for ms in range(1, duration_ns // MS + 1):
        possible = schedule.bits_possible(0, ms * MS) // bits
        lines += [f"{ms}\n"] * (possible - sent)
        sent = possible
    return "".join(lines)
