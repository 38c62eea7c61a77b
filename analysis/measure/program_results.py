# SPDX-License-Identifier: MIT
"""Runs with programs of the user's own: the summary's `program`, the numbers of each flow, and the reasons against
such a run.

A program may encrypt its sequence numbers and acknowledgements, as QUIC does. So these runs also have numbers of each
flow that need neither: bits on the wire, packets, drops, and the queue's depth at the arrivals of the flow's packets.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.measure.metrics import Columns, Window, cards_in
from analysis.read.columns import parts, rows_of
from analysis.read.documents import UserProgram
from analysis.read.load import PROGRAM_DOCUMENTS, Run
from analysis.read.postcards import dropped, wire_bytes


def packets(run: Run, queue: Columns) -> dict[str, int | None]:
    """The ledger's entries over the whole run: packets of the programs at the queue, and packets of neither a program
    nor a planned flow (echo requests, for example).
    """
    if run.experiment.program is None:
        return {}
    counts = np.zeros(len(run.flows) + 1, dtype=np.int64)
    for cards in parts(queue, "flow"):
        counts += np.bincount(cards["flow"], minlength=len(counts))
    of_programs = int(counts[[entry.number for entry in run.traffic if entry.program]].sum())
    planned = {entry.number for entry in run.traffic if not entry.program and entry.number >= 0}
    if run.flow_records is not None:
        planned |= {flow for flow in run.flow_records["flow"].tolist() if flow >= 0}
    of_plan = int(counts[sorted(planned)].sum())
    return {"program_packets": of_programs, "other_packets": int(counts.sum()) - of_programs - of_plan}


def add_to_rows(run: Run, queue: Columns, window: Window, rows: list[dict[str, Any]]) -> None:
    """Adds to each row of flow_rows the numbers that need no sequence numbers. Bits are of packets that arrived in the
    window and left the queue.
    """
    if run.experiment.program is None:
        return
    size = len(run.flows) + 1
    counts, bits, depths = np.zeros((3, size))
    for cards in cards_in(queue, window, "flow", "flags", "packet_bytes", "depth_packets"):
        left = rows_of(cards, ~dropped(cards))
        counts += np.bincount(cards["flow"], minlength=size)
        bits += 8 * np.bincount(left["flow"], weights=wire_bytes(left["packet_bytes"]), minlength=size)
        depths += np.bincount(cards["flow"], weights=cards["depth_packets"], minlength=size)
    seconds = window.length_ns / 1e9
    for row, entry in zip(rows, run.traffic, strict=True):
        at = entry.number
        row["program"] = entry.program
        row["wire_bps"] = float(bits[at]) / seconds if at >= 0 and seconds else 0.0
        row["depth_packets_mean"] = float(depths[at] / counts[at]) if at >= 0 and counts[at] else None


def summarize(run: Run, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The summary's `program`; nothing for a run without programs."""
    if run.experiment.program is None:
        return {}
    mine = [entry for entry in run.traffic if entry.program]
    rates = [row["wire_bps"] for row in rows if row["program"]]
    return {
        "program": {
            **{name: _of_program(getattr(run.documents, name)) for name in PROGRAM_DOCUMENTS},
            "tcp_flows": sum(entry.is_tcp for entry in mine),
            "udp_flows": sum(not entry.is_tcp for entry in mine),
            "wire_bps": float(sum(rates)),
        }
    }


def _of_program(document: UserProgram) -> dict[str, Any]:
    started, ended, streams = document.started_mono_ns, document.ended_mono_ns, document.output.values()
    return {
        "argv": document.argv,
        "ended_by": document.ended_by,
        "exit_status": document.exit_status,
        "ran_s": None if started is None or ended is None else (ended - started) / 1e9,
        "output_bytes": sum(stream.bytes or 0 for stream in streams),
        "output_discarded_bytes": sum(stream.discarded_bytes or 0 for stream in streams),
    }


def reasons(run: Run, window: Window) -> list[str]:
    """One line for each fault: a program failed, the client ended before the measurement, or no packet of the programs
    came to the queue.
    """
    if run.experiment.program is None:
        return []
    result = []
    for name in PROGRAM_DOCUMENTS:
        errors: list[str] = getattr(run.documents, name).errors
        result += [f"traffic: {' '.join(errors[0].split())}; see {name}.stderr"] if errors else []
    if window.length_ns <= 0 and run.experiment.traffic == "program":
        result.append(
            f"traffic: the client ended within the warm-up of {run.experiment.warmup_ns / 1e9:g} s, so nothing was "
            "measured; lower WARMUP"
        )
    if not any(entry.program for entry in run.traffic):
        result.append("traffic: no packet of the programs came to the queue; see SERVER_AT and client.stdout")
    return result
