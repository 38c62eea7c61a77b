# SPDX-License-Identifier: MIT
"""Replays the arrivals of a run through another queue of the switch core: the compiled P4 program in virtual time.

Each packet is rebuilt from its postcard. It has its original length, hence its original transmission time, and the
header fields that the postcard carries. The Ethernet header, IP versions and header lengths are filled in; all other
bytes are zero. ECN-capable packets arrive with ECT(0). Access links lie before the queue, so the arrival times include
them. Flow delays lie behind the queue, so the replay needs none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis.exporting import pcapng
from analysis.exporting.packets import packet_headers, packet_kinds
from analysis.read.link_rate import LinkRate
from analysis.read.postcards import PostcardArrivals, queue_keys
from analysis.read.raw import Columns
from analysis.wording.formats import si
from controlplane.policy import EGRESS_ECN, EGRESS_MODES
from lib.errors import InputError
from lib.frames import ETHERNET_BYTES, IPV4_BYTES, UDP_BYTES
from model.experiment import Experiment
from softswitch.library import BuildError, Core, Refused
from wire import wire

CARD = wire.POSTCARD.const
SENDER, BOTTLENECK, COLLECTOR = 1, 2, 3
DESTINATION_MAC, SOURCE_MAC = 0x02BF00000002, 0x02BF00000001
IPV4_TYPE, IPV6_TYPE, OTHER_TYPE = 0x0800, 0x86DD, 0x88B5
UDP_HEADERS_BYTES = ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES
COPY_BYTES = 256
DRAIN_EVERY = 256  # arrivals between takes: outputs occupy the core's packet pool until they are taken
ENTRIES_A_REQUEST = 1000
FOREVER_NS = 1 << 62


@dataclass(frozen=True)
class Setting:
    """A queue, by the parameters of spec.yaml."""

    rate: LinkRate
    mode: str
    buffer_packets: int
    threshold_bytes: int | None  # the buffer, if it is in bytes
    ecn_threshold: int | None  # in the buffer's unit

    @classmethod
    def of(cls, spec: Experiment, rate: LinkRate) -> Setting:
        in_bytes = spec.threshold_bytes
        ecn = spec.ecn_threshold_bytes if in_bytes else spec.ecn_threshold_packets
        return cls(rate, spec.mode, spec.buffer_packets, in_bytes, ecn)

    def policy(self) -> str:
        """The action of table queue_policy (p4src/shared/queue_policy.p4) with its arguments."""
        limit, in_bytes = self.threshold_bytes or self.buffer_packets, int(self.threshold_bytes is not None)
        if self.mode == "ecn":
            return f"ecn {self.ecn_threshold or max(1, limit // 2)} {limit} {in_bytes}"
        if self.mode in EGRESS_MODES:
            return f"egress_threshold {limit} {int(self.mode == EGRESS_ECN)} {in_bytes}"
        return f"tail_drop {limit} {in_bytes}"

    def text(self) -> str:
        limit = f"{self.threshold_bytes} bytes" if self.threshold_bytes else f"{self.buffer_packets} packets"
        ecn = f" (marks from {self.ecn_threshold or 'half of it'})" if self.mode == "ecn" else ""
        changes = ", then its schedule" * (self.rate.schedule is not None)
        return f"{limit}, {self.mode}{ecn}, {si(self.rate.rate_bps, 'b/s')}{changes}"


def arrivals(repetition: Path, recorded: Columns) -> dict[str, np.ndarray]:
    """The packets of the bottleneck's queue, in the order of `recorded`. `recorded` has the queue's columns as the
    analysis loads them. The result has the columns of wire.POSTCARD.columns, and `arrival_ns` on CLOCK_MONOTONIC.
    Raises InputError if no packet arrived.
    """
    if not len(recorded["flags"]):
        raise InputError(f"{repetition}: no packet arrived at the bottleneck's queue; nothing can be replayed")
    loaded, queue = PostcardArrivals(recorded), queue_keys(recorded)[0]
    parts = []
    for rows, _, _ in pcapng.stored(repetition):
        cards = wire.POSTCARD.columns(rows)
        of_queue = queue_keys(cards) == queue
        parts.append({name: values[of_queue] for name, values in cards.items()})
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    whole["arrival_ns"] = loaded.times(whole)
    order = np.argsort(loaded.rows(whole), kind="stable")
    return {name: values[order] for name, values in whole.items()}


def replay(
    packets: dict[str, np.ndarray], setting: Setting, say: Callable[[float], object] = lambda done: None
) -> Columns:
    """The postcards of the replay, in the order of `packets`. `say` is called with the share of packets done. Raises
    InputError if the core cannot be built, if the memory is too small for it, if it refuses the queue or a packet, or
    if its postcards do not match the packets.
    """
    core = _core(setting, packets)
    view = np.zeros(1 << 16, dtype=np.uint8)
    heads, position = _heads(packets)
    sizes, times = packets["packet_bytes"].astype(np.int64).tolist(), packets["arrival_ns"].tolist()
    cards: list[bytes] = []
    longest = max(len(head) for kind in heads.values() for head in kind[1])
    for row, (size, arrival_ns) in enumerate(zip(sizes, times, strict=True)):
        kind, at = position[row]
        head = heads[kind][1][at]
        view[:longest] = 0
        view[: len(head)] = head
        error = core.receive(arrival_ns, SENDER, bytes(view[:size]))
        if error:
            raise InputError(
                f"packet {row} of {size} bytes: the switch core refuses it ({error}); report it with this run"
            )
        if row % DRAIN_EVERY == 0:
            core.advance(arrival_ns - 1)
            _collect(core, cards, arrival_ns - 1)
            say(row / len(sizes))
    core.advance(FOREVER_NS)
    _collect(core, cards, FOREVER_NS)
    return _matched(cards, packets)


def _core(setting: Setting, packets: dict[str, np.ndarray]) -> Core:
    limit = setting.buffer_packets if not setting.threshold_bytes else setting.threshold_bytes // 60 + 1
    deepest = min(limit, len(packets["packet_bytes"]))  # the queue cannot hold more than all arrivals
    pool = min(1 << 24, 2 * deepest + 8 * DRAIN_EVERY + 65536)
    frame = max(int(packets["packet_bytes"].max()) + 1, 256)
    try:
        entries = setting.rate.schedule.entries if setting.rate.schedule else ()
        core = Core(
            "p4", ports=(SENDER, BOTTLENECK, COLLECTOR), packets=pool, frame_bytes=frame, rate_entries=len(entries)
        )
    except (BuildError, OSError) as error:
        first = next((line for line in str(error).splitlines() if "rror" in line), str(error))[:160]
        raise InputError(f"the switch core cannot be built: {first}; allowed: a machine with gcc and make") from None
    except MemoryError:
        raise InputError(f"no memory for a switch that holds {pool} packets of {frame} bytes; free some") from None
    try:
        core.set(
            f"port set {BOTTLENECK} rate {setting.rate.rate_bps} delay 0",
            *_schedule(setting.rate),
            f"mirror set 1 {COLLECTOR} truncate {COPY_BYTES}",
            f"table set forward {DESTINATION_MAC:#x} = send_to {BOTTLENECK}",
            f"table set postcards {BOTTLENECK} = report 1 1",
            f"table set queue_policy {BOTTLENECK} = {setting.policy()}",
            "table default collector send_to_collector 0x02bf00000103 0x02bf00000003 0x0a4e0001 0x0a4e0002 5577 5577",
        )
    except Refused as error:
        raise InputError(f"the switch cannot have this queue ({setting.text()}): {error}") from None
    return core


def _schedule(rate: LinkRate) -> list[str]:
    """The requests for a rate that changes (docs/control-protocol.md)."""
    if rate.schedule is None:
        return []
    kind = "opportunities" if rate.schedule.opportunities else "steps"
    words = [f"{at_ns} {value}" for at_ns, value in rate.schedule.entries]
    parts = [words[at : at + ENTRIES_A_REQUEST] for at in range(0, len(words), ENTRIES_A_REQUEST)]
    requests = [f"schedule {kind} {BOTTLENECK} {' '.join(part)}" for part in parts]
    return [*requests, f"schedule start {BOTTLENECK} {rate.start_ns}"]


def _heads(packets: dict[str, np.ndarray]) -> tuple[dict[int, tuple[np.ndarray, np.ndarray]], list[tuple[int, int]]]:
    """The first bytes of the rebuilt packets. Packets of one kind have headers of one length and share an array.

    Returns for each kind (its rows, their first bytes), and for each row (its kind, its index in the kind's array).
    """
    kinds = packet_kinds(packets)
    unmarked = packets | {"flags": packets["flags"] & ~np.uint64(CARD["POSTCARD_CE_MARKED"])}  # without the run's marks
    heads: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    position: list[tuple[int, int]] = [(0, 0)] * len(kinds)
    for kind in np.unique(kinds).tolist():
        rows = np.flatnonzero(kinds == kind)
        inner, _ = packet_headers(kind, {name: values[rows] for name, values in unmarked.items()})
        ether_type = {0: OTHER_TYPE, 1: IPV4_TYPE, 2: IPV6_TYPE}[kind & 3]
        ethernet = wire.DATAGRAM.encode(ethernet_dst=DESTINATION_MAC, ethernet_src=SOURCE_MAC, ethernet_type=ether_type)
        first = np.frombuffer(ethernet[:ETHERNET_BYTES], dtype=np.uint8)
        heads[kind] = rows, np.hstack([np.broadcast_to(first, (len(rows), ETHERNET_BYTES)), inner])
        for at, row in enumerate(rows.tolist()):
            position[row] = kind, at
    return heads, position


def _collect(core: Core, cards: list[bytes], until_ns: int) -> None:
    cards += [
        o.frame[UDP_HEADERS_BYTES : UDP_HEADERS_BYTES + wire.POSTCARD.length]
        for o in core.take(until_ns)
        if o.port == COLLECTOR
    ]


def _matched(cards: list[bytes], packets: dict[str, np.ndarray]) -> Columns:
    """The core's postcards in order of arrival. Postcards of the same ns are sorted by the depth they report."""
    if len(cards) != len(packets["arrival_ns"]):
        raise InputError(
            f"{len(packets['arrival_ns'])} packets gave {len(cards)} postcards; a fault of the switch core: report it"
        )
    made = wire.POSTCARD.columns(np.frombuffer(b"".join(cards), dtype=np.uint8).reshape(-1, wire.POSTCARD.length))
    mask = (1 << 48) - 1
    order = np.lexsort(
        (made["depth_packets"], (made["enqueue_switch_ns"].astype(np.int64) - packets["arrival_ns"][0]) & mask)
    )
    made = {name: values[order] for name, values in made.items()}
    if not np.array_equal(made["enqueue_switch_ns"].astype(np.int64), packets["arrival_ns"] & mask):
        raise InputError(
            "the replay's postcards do not have the arrival times of its packets; a fault: report it with this run"
        )
    kinds: dict[str, type] = {
        "flags": np.uint8, "policy": np.uint8, "depth_packets": np.uint32, "depth_bytes": np.uint32,
        "threshold": np.uint32, "packet_bytes": np.uint16, "sojourn_ns": np.int64, "depth_unit": np.uint8,
    }  # fmt: skip
    columns: Columns = {name: made[name].astype(kind) for name, kind in kinds.items()}
    return {"enqueue_mono_ns": packets["arrival_ns"].astype(np.int64), **columns}
