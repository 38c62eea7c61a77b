# SPDX-License-Identifier: MIT
"""The ledger: counts of packets and of records at every station from switch and hosts to the tables, and every loss
counter.

A run is also not valid if a document lacks one of its counters, because a loss could then stay unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from analysis.flows import PROTOCOL_NUMBERS
from analysis.load import Run
from analysis.retransmits import segments_of
from analysis.targets import rules
from analysis.unwrap import group_starts, spans, unwrap32
from model.experiment import SOFT
from runs.verdict import Area
from wire import wire

CARD = wire.POSTCARD.const
EVENT = wire.TCP_RECORD.const
MAX_CLOCK_STEP_NS = 1_000_000  # twice the largest slew (500 ppm) in the second between two blocks
SEGMENTS_WITHOUT_EVENT = 10  # per flow: handshake, FINs, a share of the generator's control connection
MAX_HIDDEN_EVENTS = 0.01  # fraction of all segments
# Counters of stations that a simulation does not have, nor the source of an imported run: rings, sockets, a network
# driver, a tracer's program.
NOT_SIMULATED = frozenset((
    "tcp_events_hidden", "backlog_drops", "ring_drops", "tx_errors", "queue_drops", "oversize", "truncated",
    "checksums_missing", "clone_drops", "pool_exhausted", "arrivals_clamped", "collector_kernel_drops",
    "collector_host_drops", "collector_unstamped", "collector_write_errors", "tracer_write_errors",
    "postcards_malformed", "goodput_write_errors", "connections_refused",
))  # fmt: skip
# Statistics of our soft switch, which other switches do not have.
OF_SOFT_SWITCH = frozenset((
    "ring_drops", "tx_errors", "queue_drops", "oversize", "truncated", "checksums_missing", "clone_drops",
    "pool_exhausted", "arrivals_clamped",
))  # fmt: skip
ENDS = ("before", "after")  # counters are read before and after the traffic
MAX_NUMBER = 1 << 64  # counters have at most 64 bits
Entries = dict[str, int | None]


def number(document: dict[str, Any], *path: str) -> int | float | None:
    """The number at a path of keys; None if it cannot be a count or a time: no number, negative, NaN, 2^64 or more."""
    value: Any = document
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return value if 0 <= value < MAX_NUMBER else None


def total(values: Iterable[float | None]) -> int | None:
    """The sum; None if any value is unknown."""
    terms = list(values)
    known = [value for value in terms if value is not None]
    return int(sum(known)) if len(known) == len(terms) else None


def _counter(switch: dict[str, Any], name: str) -> dict[str, Any] | None:
    """A P4 counter by port, found by the last part of its name."""
    counters = switch.get("counters")
    for full_name, ports in counters.items() if isinstance(counters, dict) else ():
        if full_name.rpartition(".")[2] == name and isinstance(ports, dict):
            return ports
    return None


def counter_packets(switch: dict[str, Any], name: str) -> int | None:
    """A P4 counter summed over its ports; None if it is absent or unusable at any port."""
    ports = _counter(switch, name)
    return None if ports is None else total(number(ports, port, "packets") for port in ports)


def ports_with_packets(switch: dict[str, Any], name: str) -> set[str]:
    """The ports at which a P4 counter is not zero."""
    ports = _counter(switch, name) or {}
    return {port for port in ports if number(ports, port, "packets")}


def sum_stats(switch: dict[str, Any], suffix: str) -> int | None:
    """The switch's statistics port.N.<suffix> summed over the ports; None if there are none, or one is unusable."""
    stats = switch.get("stats")
    return _sum(
        {
            name: value
            for name, value in (stats.items() if isinstance(stats, dict) else ())
            if name.startswith("port.") and name.endswith(f".{suffix}")
        }
    )


def _sum(values: Any) -> int | None:
    """The sum of an object's counters; None if there are none, or one is unusable."""
    return total(number(values, name) for name in values) if isinstance(values, dict) and values else None


@dataclass(frozen=True)
class Stream:
    """The postcards of one port that were made at ingress, or at egress. Each stream has its own sequence numbers."""

    switch_id: int
    egress_port: int
    at_ingress: bool
    received: int
    missing: int
    duplicates: int


def streams(postcards: dict[str, np.ndarray]) -> list[Stream]:
    """The streams of a run's postcards. A gap in a stream's numbers is a lost postcard."""
    key = postcards["switch_id"].astype(np.uint64) << np.uint64(32)
    key |= postcards["egress_port"].astype(np.uint64) << np.uint64(8)
    key |= postcards["flags"] & np.uint8(CARD["POSTCARD_AT_INGRESS"])
    order = np.argsort(key, kind="stable")
    starts = group_starts(key[order])
    seq = unwrap32(postcards["card_seq"][order], starts)
    result = []
    for start, end in spans(starts, len(seq)):
        numbers, first = np.sort(seq[start:end]), order[start]
        distinct = 1 + int(np.count_nonzero(np.diff(numbers)))
        result.append(
            Stream(
                switch_id=int(postcards["switch_id"][first]),
                egress_port=int(postcards["egress_port"][first]),
                at_ingress=bool(postcards["flags"][first] & CARD["POSTCARD_AT_INGRESS"]),
                received=len(numbers),
                missing=int(numbers[-1] - numbers[0]) + 1 - distinct,
                duplicates=len(numbers) - distinct,
            )
        )
    return result


def ledger(run: Run, cards: list[Stream]) -> Entries:
    """Counts from the switch to the tables over the whole run, and every loss counter. None: not recorded."""
    switch, collector, tracer = (run.documents[name] for name in ("switch", "collector", "tracer"))
    line = switch.get("line")
    links = line if isinstance(line, dict) else switch  # the document with our soft switch's statistics
    entries: dict[str, Any] = {
        **_switch_entries(run),
        "postcards_received": number(collector, "received"),
        "postcards_stored": number(collector, "stored"),
        "postcards_rows": run.raw["postcards"].records,
        "tcp_events": number(tracer, "events"),
        "tcp_events_stored": number(tracer, "stored"),
        "tcp_events_rows": run.raw["tcp"].records,
        "tcp_events_lost": number(tracer, "lost"),
        "tcp_events_hidden": _hidden_events(run),
        "backlog_drops": _sum(run.documents["environment"].get("frames_lost_in_backlog")),
        "ring_drops": sum_stats(links, "rx_ring_drops"),
        "tx_errors": sum_stats(links, "tx_errors"),
        "queue_drops": sum_stats(links, "queue_drops"),
        "oversize": sum_stats(links, "oversize"),
        "truncated": sum_stats(links, "rx_truncated"),
        "checksums_missing": sum_stats(links, "rx_checksum_missing"),
        "clone_drops": number(links, "stats", "clone_drops"),
        "pool_exhausted": number(links, "stats", "pool_exhausted"),
        "arrivals_clamped": number(links, "stats", "arrivals_clamped"),
        "collector_kernel_drops": number(collector, "kernel_drops"),
        "collector_host_drops": _sum(collector.get("host_drops")),
        "collector_unstamped": number(collector, "unstamped"),
        "collector_write_errors": number(collector, "write_errors"),
        "tracer_write_errors": number(tracer, "write_errors"),
        "postcards_malformed": total(number(collector, name) for name in ("short", "bad_version", "trailing")),
        **_stranger_entries(collector),
        **_memory_entries(run),
        **_sink_entries(run),
        **_finite_entries(run),
        **_path_entries(run),
        "postcards_missing": sum(stream.missing for stream in cards),
        "postcards_duplicate": sum(stream.duplicates for stream in cards),
    }
    absent = NOT_SIMULATED if run.experiment.is_simulated or run.experiment.imported else frozenset()
    if "card_seq" in run.experiment.unknown_columns:
        entries |= dict.fromkeys(("postcards_missing", "postcards_duplicate"))
    if is_shared(switch):
        absent |= {"backlog_drops"}  # such drops occur only between namespaces of one machine
    if not rules(run).drops_tell or _lacks_soft_switch(run):
        absent |= OF_SOFT_SWITCH
    if run.flow_records is not None or run.experiment.program or run.experiment.machines:
        # The kernel's segment counters also include finite flows (not traced), handshakes of programs, and other
        # connections of a testbed's machines.
        absent |= {"tcp_events_hidden"}
    return {name: None if value is None else int(value) for name, value in entries.items() if name not in absent}


def _lacks_soft_switch(run: Run) -> bool:
    """Whether the soft switch is neither the switch nor a delay line: netem delays behind another switch."""
    return bool(run.experiment.machines) and run.experiment.delay == "tc" and run.experiment.target != SOFT


def is_shared(switch: dict[str, Any]) -> bool:
    """Whether the switch also runs between experiments, so that only differences of its counters are the run's."""
    return switch.get("runs_between_experiments") is True


def _switch_entries(run: Run) -> dict[str, Any]:
    """The switch's counts of packets and postcards; for a switch with its own traffic manager, also its drops."""
    switch = run.documents["switch"]
    if not is_shared(switch):
        return {
            "switch_packets": counter_packets(switch, "arrivals"),
            "postcards_sent": counter_packets(switch, "postcards_made"),
        }
    before: dict[str, Any] = earlier if isinstance(earlier := switch.get("before"), dict) else {}
    at = switch.get("bottleneck_port")
    port = at if isinstance(at, int) and not isinstance(at, bool) else None

    def of_port(name: str) -> int | None:
        ends = (_counter(state, name) for state in (before, switch))
        if port is None:
            return None
        return _difference(*(None if ports is None else number(ports, str(port), "packets") or 0 for ports in ends))

    def stats(matches: Callable[[str], bool]) -> int | None:
        names = [name for name in _stats(switch) if matches(name)]
        if port is None or not names:
            return None
        return total(_difference(number(_stats(before), name), number(_stats(switch), name)) for name in names)

    made = [counter_packets(state, "postcards_made") for state in (before, switch)]
    entries = {"switch_packets": of_port("arrivals"), "postcards_sent": _difference(*made)}
    if rules(run).drops_tell:
        return entries
    drops = f"port.{port}.queue_drops"
    of_queue = run.postcards["egress_port"] == (-1 if port is None else port)
    refused = of_queue & ((run.postcards["flags"] & CARD["POSTCARD_AT_INGRESS"]) != 0)
    return entries | {
        "refused_packets": stats(lambda name: name == drops),
        "refused_packets_deflected": of_port("arrival_drops"),
        "refused_packets_rows": int(np.count_nonzero(refused)),
        "mirror_drops": stats(lambda name: name.endswith(".mirror_drops")),
        "other_queue_drops": stats(lambda name: name.endswith(".queue_drops") and name != drops),
    }


def _stats(state: dict[str, Any]) -> dict[str, Any]:
    stats = state.get("stats")
    return stats if isinstance(stats, dict) else {}


def _stranger_entries(collector: dict[str, Any]) -> dict[str, Any]:
    """Datagrams that did not come from the switch and were not stored: reported, but no fault. A run recorded before
    the collector checked senders has no such entry.
    """
    name = "stranger_datagrams"
    return {name: number(collector, name)} if name in collector else {}


def _memory_entries(run: Run) -> dict[str, Any]:
    """How often the hosts' TCP ran short of memory. A run recorded before this was counted has no such entry."""
    name = "tcp_memory_pressures"
    counted = run.documents["environment"].get(name)
    return {} if counted is None else {name: _sum(counted)}


def _hidden_events(run: Run) -> int | None:
    """Segments that the sender's kernel received or retransmitted without a TCP event. A tracer cannot count events
    that the kernel did not raise, so their number follows from the kernel's segment counters.

    The sender's namespace has only the traffic's sockets. Handshakes raise no events, nor do segments in flight when
    their connection closes: an allowance for both is subtracted.
    """
    tracer = run.documents["tracer"]
    counts = [number(tracer, name) for name in ("kernel_segments_received", "kernel_segments_resent", "events")]
    if None in counts:
        return None
    received, resent, events = (int(count or 0) for count in counts)
    spec = run.experiment
    if spec.offloads and spec.offloads.nic_rate_bps:  # one event covers all segments of a super-segment
        again = np.flatnonzero(run.tcp["event"] == EVENT["TCP_EVENT_RETRANSMIT"])
        events += int(segments_of(run.tcp, again).sum()) - len(again)
    without_event = SEGMENTS_WITHOUT_EVENT * len(run.traffic) + spec.bdp_packets + spec.buffer_packets
    return max(0, received + resent - events - int(without_event))


def _sink_entries(run: Run) -> dict[str, Any]:
    """Counts of our own sink; empty with another receiver."""
    if run.goodput is None:
        return {}
    sink = run.documents["traffic_sink"]
    return {
        "goodput_records": number(sink, "records_stored"),
        "goodput_rows": run.raw["goodput"].records,
        "goodput_write_errors": number(sink, "write_errors"),
        "connections_refused": number(sink, "connections_refused"),
    }


def _finite_entries(run: Run) -> dict[str, Any]:
    """Counts of finite flows; empty without any. Every long flow has a record, too."""
    if run.flow_records is None:
        return {}
    traffic = run.documents["traffic"]
    counts = {
        name: number(traffic, "transfers", "counts", name)
        for name in ("begun", "refused", "reset", "records_stored", "records_unwritten")
    }
    begun = counts["begun"]
    long_flows = sum(
        entry["tuple"].protocol == PROTOCOL_NUMBERS["tcp"] and not entry.get("program") for entry in run.traffic
    )
    return {
        "flows_begun": None if begun is None else begun + long_flows,
        "flow_records": counts["records_stored"],
        "flow_records_unwritten": counts["records_unwritten"],
        "flow_rows": run.raw["flows"].records,
        "flows_refused": counts["refused"],
        "flows_reset": counts["reset"],
    }


def _path_entries(run: Run) -> dict[str, Any]:
    """Frames at every station in both directions since the start of the traffic, for a target that does not count its
    losses. If a delay line follows the target, the delay line is a station, too. Empty for the soft switch, which
    counts its losses. Also empty for a switch that runs between experiments, unless a delay line follows.
    """
    switch = run.documents["switch"]
    earlier, line = switch.get("before"), switch.get("line")
    line = line if isinstance(line, dict) else None
    if line is None and (is_shared(switch) or not _lacks_soft_switch(run)):
        return {}
    before: dict[str, Any] = earlier if isinstance(earlier, dict) else {}
    passed = run.documents["environment"].get("frames_passed")

    def counted(name: str) -> int | None:
        return _difference(counter_packets(before, name), counter_packets(switch, name))

    def kernel(interface: str, way: str) -> int | None:
        ends = [number(passed, when, interface, way) if isinstance(passed, dict) else None for when in ENDS]
        return _difference(*ends)

    def at_line(port: int) -> int | None:
        name = f"port.{port}.rx_frames"
        return _difference(number(before, "line", "stats", name), number(line or {}, "stats", name))

    arrivals, dropped = counted("arrivals"), total(map(counted, ("arrival_drops", "departure_drops")))
    at_lines = {} if line is None else {"frames_at_line": at_line(1), "replies_at_line": at_line(2)}
    return at_lines | {
        "frames_sent": kernel("sender/eth0", "sent"),
        "frames_at_switch": total((arrivals, counted("unknown_hosts"))),
        "frames_admitted": _difference(dropped, arrivals),
        "frames_delivered": kernel("receiver/eth0", "received"),
        "replies_sent": kernel("receiver/eth0", "sent"),
        "replies_delivered": kernel("sender/eth0", "received"),
        "postcards_at_switch": counted("postcards_made"),
        "postcards_on_the_wire": kernel("collector/eth0", "received"),
    }


def _difference(before: float | None, after: float | None) -> int | None:
    return None if before is None or after is None else int(after - before)


Chain = tuple[tuple[str, str], ...]
# Neighbours in a chain must have equal counts. An entry is a counter, and the words that follow its count in a message.
_CHAINS: tuple[Chain, ...] = (
    (
        ("switch_packets", "packets came to watched queues"),
        ("postcards_sent", "postcards were made by the switch"),
        ("postcards_received", "were received by the collector"),
        ("postcards_stored", "were stored by the collector"),
        ("postcards_rows", "could be read from postcards.bsp"),
    ),
    (
        ("refused_packets", "packets were refused by the switch's traffic manager"),
        ("refused_packets_deflected", "were deflected to egress"),
        ("refused_packets_rows", "have a postcard that could be read"),
    ),
    (
        ("tcp_events", "TCP events happened"),
        ("tcp_events_stored", "were stored by the tracer"),
        ("tcp_events_rows", "could be read from tcp.bst"),
    ),
    (("goodput_records", "goodput records were stored"), ("goodput_rows", "could be read from goodput.bsg")),
    (
        ("flows_begun", "flows began"),
        ("flow_records", "flow records were stored"),
        ("flow_rows", "could be read from flows.bsf"),
    ),
    (
        ("frames_sent", "frames left the sender"),
        ("frames_at_switch", "were counted by the switch's program"),
    ),
    (
        ("frames_admitted", "frames were admitted and not dropped by the switch's program"),
        ("frames_at_line", "came to the delay line behind it"),
        ("frames_delivered", "came to the receiver"),
    ),
    (
        ("replies_sent", "frames left the receiver"),
        ("replies_at_line", "came to the delay line"),
        ("replies_delivered", "came to the sender"),
    ),
    (
        ("postcards_at_switch", "postcards were made by the switch"),
        ("postcards_on_the_wire", "frames came to the collector"),
    ),
)
# Counters that must be zero: the meaning of each, and the remedy.
_ZERO = {
    "backlog_drops": "frames were lost by the kernel between hosts and switch: lower RATE, or raise "
    "net.core.netdev_max_backlog",
    "ring_drops": "frames were dropped by the kernel before the switch read its rings: lower RATE, or leave the "
    "switch more CPU time",
    "tx_errors": "frames could not be handed to the kernel: see logs/, lower RATE",
    "queue_drops": "admitted packets were dropped by the switch's own queue: raise its queue limit",
    "mirror_drops": "mirrored copies were dropped by the switch: lower RATE, or speed the collector's port up",
    "other_queue_drops": "packets were dropped by queues of other ports, such as the collector's: speed these ports up",
    "oversize": "frames were too long for the switch: offloads are on somewhere, or raise --frame-bytes",
    "truncated": "frames were longer than a slot of the switch's rings: offloads are on somewhere, or MTU is too large",
    "checksums_missing": "frames came without checksums: turn the senders' checksum offload off",
    "clone_drops": "postcards were not made because the switch had no memory for them: raise --packets",
    "pool_exhausted": "packets were dropped because the switch had no memory for them: raise --packets",
    "collector_kernel_drops": "postcards were dropped in the collector's socket: lower RATE, or raise its buffer",
    "collector_host_drops": "datagrams were dropped by the collector's host: lower RATE",
    "collector_unstamped": "postcards came without the kernel's time stamp: their receive times are late",
    "collector_write_errors": "writes of the collector failed: see logs/, is the disk full?",
    "tracer_write_errors": "writes of the tracer failed: see logs/, is the disk full?",
    "goodput_write_errors": "writes of the traffic sink failed: see logs/, is the disk full?",
    "connections_refused": "connections could not be taken by the traffic sink: see logs/",
    "flow_records_unwritten": "flow records could not be written: see logs/, is the disk full?",
    "flows_refused": "finite flows were refused by the receiver: see flows.parquet and logs/",
    "flows_reset": "finite flows were reset or timed out: see flows.parquet and logs/",
    "tcp_memory_pressures": "times the hosts' TCP ran short of memory and shrank socket buffers: run fewer flows "
    "at once, or raise net.ipv4.tcp_mem",
    "tcp_events_lost": "TCP events were not stored by the tracer: tracer.json says where they were lost",
    "postcards_malformed": "datagrams to the collector were not postcards: something else sends to its port",
    "postcards_missing": "postcard numbers are missing: postcards were lost on the way",
    "postcards_duplicate": "postcards have the number of another: they came twice, or the switch began anew",
}
_SOURCES = {
    "environment": (
        "backlog_drops", "frames_sent", "frames_delivered", "replies_sent", "replies_delivered",
        "postcards_on_the_wire",
    ),
    "switch": (
        "switch_packets", "postcards_sent", "ring_drops", "tx_errors", "queue_drops", "oversize", "truncated",
        "checksums_missing", "clone_drops", "pool_exhausted", "arrivals_clamped", "frames_at_switch", "frames_admitted",
        "frames_at_line", "replies_at_line", "postcards_at_switch", "refused_packets", "refused_packets_deflected",
        "mirror_drops", "other_queue_drops",
    ),
    "collector": (
        "postcards_received", "postcards_stored", "collector_kernel_drops", "collector_host_drops",
        "collector_unstamped", "collector_write_errors", "postcards_malformed",
    ),
    "tracer": ("tcp_events", "tcp_events_stored", "tcp_events_lost", "tcp_events_hidden", "tracer_write_errors"),
    "traffic_sink": ("goodput_records", "goodput_write_errors", "connections_refused"),
    "traffic": (
        "flows_begun", "flow_records", "flow_records_unwritten", "flows_refused", "flows_reset",
    ),
}  # fmt: skip


def chain_reasons(chain: Chain, entries: Entries) -> list[str]:
    """One line for each pair of neighbours with unequal counts. Stations that the path lacks are skipped."""
    return [
        f"{Area.LEDGER}: {here} {clause}, {there} {next_clause} ({there - here:+d}); see logs/ and run again"
        for (name, clause), (next_name, next_clause) in pairwise(step for step in chain if step[0] in entries)
        if (here := entries.get(name)) is not None and (there := entries.get(next_name)) is not None and here != there
    ]


def ledger_reasons(run: Run, entries: Entries) -> list[str]:
    """One line for each pair of neighbours with unequal counts, loss counter that is not 0, document that lacks
    counters, and fault of a raw file; one line for too many hidden events.
    """
    reasons = [reason for chain in _CHAINS for reason in chain_reasons(chain, entries)]
    reasons += [f"{Area.LEDGER}: {entries[name]} {text}" for name, text in _ZERO.items() if entries.get(name)]
    hidden, events = entries.get("tcp_events_hidden") or 0, entries.get("tcp_events") or 0
    if hidden > MAX_HIDDEN_EVENTS * (hidden + events):
        reasons.append(
            f"{Area.LEDGER}: {hidden} segments ({hidden / (hidden + events):.1%}) have no trace event; allowed are "
            f"{MAX_HIDDEN_EVENTS:.0%}: run again on a quieter machine, or with CLOCK=virtual"
        )
    for document, names in _SOURCES.items():
        unknown = [name for name in names if name in entries and entries[name] is None]
        if unknown and document not in run.unread:
            reasons.append(f"{document}.json: does not say {', '.join(unknown)}; it is of another version or damaged")
    for raw in run.raw.values():
        damage = raw.damage()
        if damage:
            reasons.append(damage)
        if raw.missing_records:
            reasons.append(
                f"{raw.name}: {raw.missing_records} records between its blocks are missing; the file was changed"
            )
        if raw.lost_records:
            reasons.append(f"{raw.name}: {raw.lost_records} records were lost before they were stored; see logs/")
        if raw.bad_records:
            reasons.append(f"{raw.name}: {raw.bad_records} records are of an unknown version and are not used")
        if raw.clock_step_max_ns > MAX_CLOCK_STEP_NS:
            reasons.append(
                f"{raw.name}: CLOCK_REALTIME stepped by {raw.clock_step_max_ns / 1e6:.3f} ms, so receive times are "
                "off; stop whatever sets the clock, then run again"
            )
    return reasons
