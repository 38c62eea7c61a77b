# SPDX-License-Identifier: MIT
"""Replays the arrivals of a run through another queue of the switch core: the compiled P4 program in virtual time.

Each packet is rebuilt from its postcard. It has its original length, hence its original transmission time, and the
header fields that the postcard carries. The Ethernet header, IP versions and header lengths are filled in; all other
bytes are zero. ECN-capable packets arrive with ECT(0). Access links lie before the queue, so the arrival times include
them. Flow delays lie behind the queue, so the replay needs none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from analysis.arithmetic.unwrap import SWITCH_TIME_BITS
from analysis.exporting.packets import packet_headers, packet_kinds
from analysis.read.columns import ColumnFile, Columns, parts, rows_of, slabs, sort_file
from analysis.read.flows import WORDS
from analysis.read.link_rate import LinkRate
from analysis.read.load import Run
from analysis.read.raw import BY_ARRIVAL
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
SLAB_PACKETS = 1 << 15  # rebuilt at once
PACKET = ("enqueue_mono_ns", "flow", "flags", "packet_bytes", "tcp_seq", "tcp_ack", "tcp_flags")
KINDS = {name: np.dtype(kind) for name, kind in {
    "flags": np.uint8, "policy": np.uint8, "depth_packets": np.uint32, "depth_bytes": np.uint32,
    "threshold": np.uint32, "packet_bytes": np.uint16, "sojourn_ns": np.int64, "depth_unit": np.uint8,
}.items()}  # fmt: skip


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


def replay(run: Run, recorded: Columns, setting: Setting) -> Columns:
    """The postcards of the replay of the packets of a queue: `recorded` has the columns of this queue as the analysis
    loads them. The replay's are in the same order, in a file. Raises InputError if no packet arrived, if the core
    cannot be built, if the memory is too small for it, if it refuses the queue or a packet, or if its postcards do not
    match the packets; OSError, for example if the disk is full.
    """
    packets = len(recorded["flags"])
    if not packets:
        raise InputError(f"{run.directory}: no packet arrived at the bottleneck's queue; nothing can be replayed")
    core = _core(setting, packets, max(int(part["packet_bytes"].max()) for part in parts(recorded, "packet_bytes")))
    words = np.column_stack((run.flows.words, np.zeros(WORDS, dtype=np.uint64)))  # none of flows beyond MAX_FLOWS
    made = ColumnFile(run.directory, {"enqueue_mono_ns": np.dtype(np.int64)} | KINDS)
    cards: list[bytes] = []
    row = arrival_ns = 0
    for part in slabs(packets, SLAB_PACKETS):
        slab = rows_of({name: recorded[name] for name in PACKET}, part)
        frames = _frames(slab, words[:, np.minimum(slab["flow"], len(run.flows))])
        for frame, arrival_ns in zip(frames, slab["enqueue_mono_ns"].tolist(), strict=True):
            if error := core.receive(arrival_ns, SENDER, frame):
                raise InputError(
                    f"packet {row} of {len(frame)} bytes: the switch core refuses it ({error}); report it with this run"
                )
            if row % DRAIN_EVERY == 0:
                core.advance(arrival_ns - 1)
                _collect(core, cards, arrival_ns - 1)
            row += 1
        _store(made, cards, arrival_ns, packets)
        cards = []
    core.advance(FOREVER_NS)
    _collect(core, cards, FOREVER_NS)
    _store(made, cards, arrival_ns, packets)
    result = made.columns()
    sort_file(run.directory, result, *BY_ARRIVAL)
    times_equal = (np.array_equal(result["enqueue_mono_ns"][p], recorded["enqueue_mono_ns"][p]) for p in slabs(packets))
    if made.rows != packets or not all(times_equal):
        raise InputError(
            f"{packets} packets gave {made.rows} postcards, or other arrival times; a fault of the switch core: report "
            "it with this run"
        )
    return result


def _core(setting: Setting, packets: int, longest_bytes: int) -> Core:
    limit = setting.buffer_packets if not setting.threshold_bytes else setting.threshold_bytes // 60 + 1
    deepest = min(limit, packets)  # the queue cannot hold more than all arrivals
    pool = min(1 << 24, 2 * deepest + 8 * DRAIN_EVERY + 65536)
    frame = max(longest_bytes + 1, 256)
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


def _frames(packets: Columns, words: np.ndarray) -> Iterator[bytes]:
    """The rebuilt packets. `words`: the 5-tuple of each, as in Flows.words."""
    src_hi, src_lo, dst_hi, dst_lo, rest = words
    cards = packets | {
        "src_addr_hi": src_hi, "src_addr_lo": src_lo, "dst_addr_hi": dst_hi, "dst_addr_lo": dst_lo,
        "ip_protocol": rest >> np.uint64(32), "src_port": rest >> np.uint64(16) & np.uint64(0xFFFF),
        "dst_port": rest & np.uint64(0xFFFF),
        "flags": packets["flags"] & ~np.uint8(CARD["POSTCARD_CE_MARKED"]),  # without the run's marks
    }  # fmt: skip
    kinds = packet_kinds(cards)
    heads = [b""] * len(kinds)
    for kind in np.unique(kinds).tolist():
        rows = np.flatnonzero(kinds == kind)
        inner, _ = packet_headers(kind, rows_of(cards, rows))
        ether_type = {0: OTHER_TYPE, 1: IPV4_TYPE, 2: IPV6_TYPE}[kind & 3]
        ethernet = wire.DATAGRAM.encode(ethernet_dst=DESTINATION_MAC, ethernet_src=SOURCE_MAC, ethernet_type=ether_type)
        for row, head in zip(rows.tolist(), inner, strict=True):
            heads[row] = ethernet[:ETHERNET_BYTES] + head.tobytes()
    sizes = packets["packet_bytes"].tolist()
    return (head.ljust(size, b"\0")[:size] for head, size in zip(heads, sizes, strict=True))


def _collect(core: Core, cards: list[bytes], until_ns: int) -> None:
    cards += [
        o.frame[UDP_HEADERS_BYTES : UDP_HEADERS_BYTES + wire.POSTCARD.length]
        for o in core.take(until_ns)
        if o.port == COLLECTOR
    ]


def _store(made: ColumnFile, cards: list[bytes], latest_ns: int, most: int) -> None:
    """Appends postcards of packets that arrived within the 78 h before `latest_ns`, at most up to `most` rows."""
    rows = np.frombuffer(b"".join(cards), dtype=np.uint8).reshape(-1, wire.POSTCARD.length)[: most - made.rows + 1]
    fields = wire.POSTCARD.columns(rows)
    waited_ns = (latest_ns - fields["enqueue_switch_ns"].astype(np.int64)) & ((1 << SWITCH_TIME_BITS) - 1)
    columns = {name: fields[name].astype(kind) for name, kind in KINDS.items()}
    made.append(columns | {"enqueue_mono_ns": latest_ns - waited_ns})
