# SPDX-License-Identifier: MIT
"""The description of a run inside an exported pcapng file: one JSON object in the comment of the section header
(option 1, pcapng's opt_comment). The object has the link, the buffer and the measurement window, so an import of the
file computes the same numbers as the original run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from analysis.arithmetic.unwrap import SWITCH_TIME_BITS
from analysis.read.documents import read_switch
from analysis.read.switch_clock import is_free
from lib import regular
from lib.errors import InputError
from runs import verdict
from runs.names import POSTCARDS_FILE
from runs.spec_file import load_spec
from wire import wire

MARK = "bufferscope run "  # begins the comment
COMMENT = 1
FIXED_BYTES = 24  # of a section header before its options
MOST_BYTES = 1 << 16
TURN = 1 << SWITCH_TIME_BITS
_SECTION = wire.PCAPNG_PACKET.const["PCAPNG_SECTION"].to_bytes(4, "little")
_ORDER = wire.PCAPNG_PACKET.const["PCAPNG_BYTE_ORDER"].to_bytes(4, "little")


def describe(repetition: Path) -> dict[str, Any]:
    """The facts about a run that an import needs. Times are of the switch's clock, as in postcards. Without a window if
    the offset of this clock is not constant. Empty if the run is not analysed, because its measurement window is
    unknown then. Raises InputError if spec.yaml is damaged.
    """
    spec = load_spec(repetition)
    try:
        summary = verdict.read(repetition)
        window, postcards = summary["measurement_window_mono_ns"], summary["raw_files"][POSTCARDS_FILE]["records"]
    except (OSError, ValueError, KeyError):
        return {}
    groups = spec.long
    start_switch_ns = (window[0] - (read_switch(repetition).clock_offset_ns or 0)) % TURN
    has_start = not is_free(spec)
    known = {
        "rate_bps": None if spec.rate_changes else spec.rate_bps, "rtt_ns": spec.rtt_ns, "mtu_bytes": spec.mtu_bytes,
        "mode": spec.mode, "buffer_packets": spec.buffer_packets,
        "ecn_threshold_packets": spec.ecn_threshold_packets,
        "algorithm": groups[0].cc if len(groups) == 1 else None,
        "num_flows": sum(group.flows for group in groups) or None,
        "window_start_switch_ns": start_switch_ns if has_start else None,
        "window_ns": window[1] - window[0] if has_start else None,
        "postcards": postcards,
    }  # fmt: skip
    return {name: value for name, value in known.items() if value is not None}


def options(description: dict[str, Any]) -> bytes:
    """The options of a section header; nothing without a description."""
    if not description:
        return b""
    text = (MARK + json.dumps(description)).encode()
    head = COMMENT.to_bytes(2, "little") + len(text).to_bytes(2, "little")
    return head + text + bytes(-len(text) % 4) + bytes(4)


def read(path: Path) -> dict[str, Any]:
    """The description in a capture; nothing if it has none. Raises InputError if the description is damaged."""
    with regular.opened(path) as file:
        data = file.read(MOST_BYTES)
    if data[:4] != _SECTION or data[8:12] != _ORDER:
        return {}
    section = data[FIXED_BYTES : max(int.from_bytes(data[4:8], "little") - 4, FIXED_BYTES)]
    at = 0
    while at + 4 <= len(section):
        kind, size = (int.from_bytes(section[at + part : at + part + 2], "little") for part in (0, 2))
        text = section[at + 4 : at + 4 + size]
        if kind == COMMENT and text.startswith(MARK.encode()):
            return _parse(path, text[len(MARK) :])
        if kind == 0:
            break
        at += 4 + size + -size % 4
    return {}


def _parse(path: Path, text: bytes) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise InputError(f"{path}: its description of the run (the file's comment) is damaged; export the run again")
    return document
