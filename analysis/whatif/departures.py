# SPDX-License-Identifier: MIT
"""A run's arrivals as datagrams that hosts/traffic/open_loop sends again, and their postcards beside those of the run.

Each datagram has the time, the size and the ECN capability of its packet. Its flow has a port of its own, all flows
have the same two hosts, and every datagram is UDP.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from analysis.read.columns import Column, ColumnFile, Columns, parts, rows_of, slabs
from analysis.read.load import Run
from analysis.whatif.queue import CARD, KINDS
from lib.errors import InputError
from lib.frames import ETHERNET_BYTES, IPV4_BYTES, UDP_BYTES, WIRE_EXTRA_BYTES

FILE = "departures.bin"
MOST_FLOWS = 10_000  # MAX_FLOWS of experiments/spec/traffic.py: so many client ports are reserved
PACKET = np.dtype([("due_ns", "<u8"), ("ip_bytes", "<u2"), ("flow", "<u2"), ("ecn", "u1"), ("zero", "u1", 3)])
MOST_IP_BYTES = 9000
LEAST_IP_BYTES = IPV4_BYTES + UDP_BYTES
ECT_0 = 2
MOST_OFF_NS = 100_000  # of a time: a reading of the clock takes 1 ns in the virtual machine, a call that fails 1 us
TIME = np.dtype(np.int64)


class Sent(NamedTuple):
    most_ip_bytes: int
    lasts_ns: int  # from the first arrival to the last departure from a queue without a limit


def sent(recorded: Columns, rate_bps: int) -> Sent:
    """Of all datagrams, on a link of this rate. Raises InputError if one is too long for an experiment."""
    most, first_ns, end_ns = 0, int(recorded["enqueue_mono_ns"][0]), 0
    for part in parts(recorded, "enqueue_mono_ns", "packet_bytes"):
        sizes = _ip_bytes(part["packet_bytes"])
        most = max(most, int(sizes.max()))
        link_ns = -(-(sizes + ETHERNET_BYTES + WIRE_EXTRA_BYTES) * 8 * 10**9 // rate_bps)
        to_end_ns = np.cumsum(link_ns[::-1])[::-1]  # of this packet and those behind it
        end_ns = max(end_ns + int(to_end_ns[0]), int((part["enqueue_mono_ns"] - first_ns + to_end_ns).max()))
    if most > MOST_IP_BYTES:
        raise InputError(f"a packet has {most} bytes; allowed: up to {MOST_IP_BYTES}, the largest MTU of an experiment")
    return Sent(most, end_ns)


def flow_numbers(run: Run) -> int:
    """The datagrams' flows: those of the run, or fewer, which then share."""
    return min(len(run.flows) + 1, MOST_FLOWS)  # one more: packets without addresses


def write(file: Path, run: Run, recorded: Columns) -> None:
    """Writes the arrivals of a queue, from ns 0 on (hosts/traffic/recorded.h). Raises OSError."""
    first_ns, flows = int(recorded["enqueue_mono_ns"][0]), flow_numbers(run)
    with file.open("wb") as out:
        for part in parts(recorded, "enqueue_mono_ns", "packet_bytes", "flow", "flags"):
            packets = np.zeros(len(part["flags"]), PACKET)
            packets["due_ns"] = part["enqueue_mono_ns"] - first_ns
            packets["ip_bytes"] = _ip_bytes(part["packet_bytes"])
            packets["flow"] = part["flow"] % flows
            packets["ecn"] = np.where(part["flags"] & CARD["POSTCARD_ECT"], ECT_0, 0)
            out.write(packets.tobytes())


def _ip_bytes(packet_bytes: np.ndarray) -> np.ndarray:
    return np.maximum(packet_bytes.astype(np.int64) - ETHERNET_BYTES, LEAST_IP_BYTES)


def postcards(again: Run, first_port: int, server_port: int, run: Run, recorded: Columns) -> Columns:
    """The postcards of the datagrams in the run `again`, in the rows of the run's packets `recorded`, and within
    MOST_OFF_NS of their times. `first_port`: the port of flow 0. Raises InputError if they are not one for each packet;
    OSError.
    """
    rest = again.flows.words[-1]
    flow = (rest >> np.uint64(16) & np.uint64(0xFFFF)).astype(np.int64) - first_port
    flow[(rest & np.uint64(0xFFFF)) != server_port] = -1  # what measures the idle RTT
    flow = np.append(flow, -1)  # packets without addresses
    cards, made = again.postcards, ColumnFile(run.directory, KINDS | {"enqueue_mono_ns": TIME, "sent_flow": TIME})
    names = [name for name in KINDS if name in cards]
    for part in parts(cards, *names, "enqueue_mono_ns", "flow", "egress_port"):
        part["sent_flow"] = flow[np.minimum(part["flow"], len(flow) - 1)]
        sent = (part["sent_flow"] >= 0) & (part["egress_port"] == again.documents.switch.bottleneck_port)
        lacks = dict.fromkeys(KINDS.keys() - names, np.zeros(int(sent.sum())))
        made.append(lacks | {name: column[sent] for name, column in part.items()})
    result = made.columns()
    if made.rows != len(recorded["flags"]):
        raise _fault(f"gave {made.rows} postcards of {len(recorded['flags'])} packets")
    later_ns = int(result["enqueue_mono_ns"][0] - recorded["enqueue_mono_ns"][0])
    for rows in slabs(made.rows):
        times = result["enqueue_mono_ns"][rows] - later_ns
        if (np.abs(times - recorded["enqueue_mono_ns"][rows]) > MOST_OFF_NS).any():
            raise _fault("had other times")
        cast(Column, result["enqueue_mono_ns"]).write(rows.start, times)
    _match_equal_times(result, recorded, flow_numbers(run))
    del result["sent_flow"]
    return result


def _match_equal_times(result: Columns, recorded: Columns, flows: int) -> None:
    """Datagrams come in the order of the run's packets. Only those of one ns stand in another: by the depths that they
    found. Gives each its own row. In place. Raises InputError.
    """
    for rows in _stretches(result["enqueue_mono_ns"]):
        flow, packet_bytes = recorded["flow"][rows] % flows, _sent_bytes(recorded["packet_bytes"][rows])
        columns = rows_of(result, rows)
        if _are(columns, flow, packet_bytes):
            continue
        group = np.cumsum(np.diff(columns["enqueue_mono_ns"], prepend=columns["enqueue_mono_ns"][0]) > 0)
        place = np.empty(len(group), dtype=np.int64)
        have = np.lexsort((columns["packet_bytes"], columns["sent_flow"], group))
        place[np.lexsort((packet_bytes, flow, group))] = have
        columns = rows_of(columns, place)
        if not _are(columns, flow, packet_bytes):
            raise _fault("were of other flows")
        for name, column in columns.items():
            cast(Column, result[name]).write(rows.start, column)


def _are(columns: Columns, flow: np.ndarray, packet_bytes: np.ndarray) -> bool:
    return np.array_equal(columns["sent_flow"], flow) and np.array_equal(columns["packet_bytes"], packet_bytes)


def _stretches(times: np.ndarray) -> Iterator[slice]:
    """Slices of all rows, about a slab each, that part no rows of one ns."""
    first = 0
    for slab in slabs(len(times)):
        later = np.flatnonzero(np.diff(times[slab.start : slab.stop + 1]) > 0)
        if len(later):
            last = slab.start + int(later[-1]) + 1
            yield slice(first, last)
            first = last
    if first < len(times):
        yield slice(first, len(times))


def _sent_bytes(packet_bytes: np.ndarray) -> np.ndarray:
    return _ip_bytes(packet_bytes) + ETHERNET_BYTES


def _fault(what: str) -> InputError:
    return InputError(f"the packets, sent again, {what}; a fault of bufferscope: report it with this run")
