# SPDX-License-Identifier: MIT
"""The ledger: counts of packets and of records at every station from switch and hosts to the tables, and every loss
counter.

A run is also not valid if a document lacks one of its counters, because a loss could then stay unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import cast

import numpy as np

from analysis.join.retransmits import segments_of
from analysis.read import link_loss
from analysis.read.columns import Column, ColumnFile, parts, slabs, sort_file
from analysis.read.documents import LINE_PORT, SENDER_PORT, Sent, total, total_of
from analysis.read.load import Run
from analysis.read.raw import Columns
from analysis.read.target_limits import rules
from model.experiment import SOFT
from runs.verdict import Area
from wire import wire

CARD = wire.POSTCARD.const
EVENT = wire.TCP_RECORD.const
MAX_CLOCK_STEP_NS = 1_000_000  # twice the largest slew (500 ppm) in the second between two blocks
SEGMENTS_WITHOUT_EVENT = 10  # per flow: handshake, FINs, a share of the generator's control connection
MAX_HIDDEN_EVENTS = 0.01  # fraction of all segments
Entries = dict[str, int | None]


def _numbering(directory: Path, postcards: Columns) -> tuple[int, int]:
    """(missing, duplicate) numbers of a run's postcards. Postcards of one port that were made at ingress have numbers
    of their own, as have those that were made at egress. A gap is a lost postcard.
    """
    numbers: dict[int, tuple[int, int, int]] = {}  # of each kind: how many, the lowest, the highest
    for kind, seq in _numbers(postcards):
        count, low, high = numbers.get(kind, (0, int(seq[0]), int(seq[0])))
        numbers[kind] = count + len(seq), min(low, int(seq.min())), max(high, int(seq.max()))
    file = ColumnFile(directory, {"seq": np.dtype(np.int64)})
    file.rows = len(postcards["card_seq"])
    columns, rows, above, places = file.columns(), 0, 0, dict[int, list[int]]()
    for kind, (count, low, high) in numbers.items():  # each begins one above the one before: no gap
        places[kind], rows, above = [rows, above - low], rows + count, above + high - low + 1
    for kind, seq in _numbers(postcards):
        cast(Column, columns["seq"]).write(places[kind][0], seq + places[kind][1])
        places[kind][0] += len(seq)
    sort_file(directory, columns, "seq")
    missing = duplicates = 0
    for part in slabs(file.rows - 1):
        steps = np.diff(columns["seq"][part.start : part.stop + 1])
        missing += int(steps.sum() - np.count_nonzero(steps))
        duplicates += int(np.count_nonzero(steps == 0))
    return missing, duplicates


def _numbers(postcards: Columns) -> Iterator[tuple[int, np.ndarray]]:
    """(kind, the unwrapped numbers of its postcards) slab by slab, each kind of a slab in turn."""
    last: dict[int, int] = {}
    for cards in parts(postcards, "switch_id", "egress_port", "flags", "card_seq"):
        kinds = cards["switch_id"].astype(np.uint64) << np.uint64(32)
        kinds |= cards["egress_port"].astype(np.uint64) << np.uint64(8)
        kinds |= cards["flags"] & np.uint8(CARD["POSTCARD_AT_INGRESS"])
        for kind in np.unique(kinds).tolist():
            numbers = cards["card_seq"][kinds == kind]
            before = last.get(kind, int(numbers[0]))
            steps = np.diff(numbers, prepend=np.uint32(before & 0xFFFF_FFFF)).view(np.int32)
            seq = before + np.cumsum(steps, dtype=np.int64)
            last[kind] = int(seq[-1])
            yield kind, seq


def ledger(run: Run) -> Entries:
    """Counts from the switch to the tables over the whole run, and every loss counter. None: not recorded. Stations
    that the source of a run does not have are left out.
    """
    said = run.documents
    links, collector, tracer = said.switch.links, said.collector, said.tracer
    # Neither a simulation nor an import has rings, sockets, a network driver, a tracer's program.
    has_hosts = not (run.experiment.is_simulated or run.experiment.imported)
    has_soft_switch = has_hosts and rules(run).drops_tell and not _lacks_soft_switch(run)
    # The kernel's segment counters also include finite flows (not traced), handshakes of programs, and other
    # connections of a testbed's machines.
    has_other_segments = run.flow_records is not None or run.experiment.program or run.experiment.machines
    has_numbers = "card_seq" not in run.experiment.unknown_columns
    missing, duplicates = _numbering(run.directory, run.postcards) if has_numbers else (None, None)
    entries: Entries = {
        **_switch_entries(run),
        **_collector_entries(run),
        "postcards_rows": run.raw["postcards"].records,
        "tcp_events": tracer.events,
        "tcp_events_stored": tracer.stored,
        "tcp_events_rows": run.raw["tcp"].records,
        "tcp_events_lost": tracer.lost,
    }
    if has_hosts and not has_other_segments:
        entries["tcp_events_hidden"] = _hidden_events(run)
    if has_hosts and not said.switch.runs_between_experiments:  # only between namespaces of one machine
        entries["backlog_drops"] = total_of(said.environment.frames_lost_in_backlog)
    if has_soft_switch:
        entries |= {name: links.sum_stats(suffix) for name, suffix in _OF_SOFT_PORTS.items()}
        entries |= {name: links.stats.get(name) for name in ("clone_drops", "pool_exhausted", "arrivals_clamped")}
    if run.experiment.taps:
        of_program = run.experiment.p4.ports if run.experiment.p4 else None
        ports = (of_program[0] if of_program else SENDER_PORT, said.switch.bottleneck_port)
        passed = total(links.stats.get(f"port.{port}.{name}") for port in ports for name in ("rx_frames", "departed"))
        lost, recorded = (links.stats.get(f"taps_{name}") for name in ("lost", "frames"))
        entries |= {"tap_passed": passed, "tap_recorded": recorded, "tap_lost": lost}
    if has_soft_switch and run.experiment.is_watched_by_core:
        entries |= _of_watched_by_core(run, entries)
    if has_hosts:
        entries |= {
            "collector_kernel_drops": collector.kernel_drops,
            "collector_host_drops": total_of(collector.host_drops),
            "collector_unstamped": collector.unstamped,
            "collector_write_errors": collector.write_errors,
            "tracer_write_errors": tracer.write_errors,
            "postcards_malformed": total((collector.short, collector.bad_version, collector.trailing)),
        }
    if run.experiment.is_recorded:  # no collector runs
        entries = {name: count for name, count in entries.items() if name not in _COUNTERS["collector"]}
    # Not in older runs: datagrams that did not come from the switch and were not stored (reported, but no fault), and
    # how often the hosts' TCP ran short of memory.
    if collector.stranger_datagrams is not None:
        entries["stranger_datagrams"] = collector.stranger_datagrams
    if said.environment.tcp_memory_pressures is not None:
        entries["tcp_memory_pressures"] = total_of(said.environment.tcp_memory_pressures)
    return entries | _sink_entries(run, has_hosts) | _finite_entries(run) | _path_entries(run) | _loss_entries(run) | {
        "postcards_missing": missing,
        "postcards_duplicate": duplicates,
    }  # fmt: skip


def _collector_entries(run: Run) -> Entries:
    """The collector's counts of postcards; or the frames recorded before and behind the switch, and their matches."""
    said = run.documents
    if not run.experiment.is_recorded:
        return {"postcards_received": said.collector.received, "postcards_stored": said.collector.stored}
    recorder, matching = said.recorder, said.matching
    return {
        "frames_passed_into": recorder.into_passed,
        "frames_recorded_into": recorder.into,
        "postcards_matched": matching.postcards,
        "frames_passed_out_of": recorder.out_of_passed,
        "frames_recorded_out_of": recorder.out_of,
        "frames_matched": total((matching.pairs, matching.only_behind)),
        "frames_only_behind": matching.only_behind,
        "frames_changed": matching.changed,
        "frames_ambiguous": matching.ambiguous,
        "frames_undecided": matching.undecided,
        "recorder_drops": total((recorder.into_drops, recorder.out_of_drops)),
    }


def _of_watched_by_core(run: Run, entries: Entries) -> Entries:
    """What may happen by a whole program of the user's or a qdisc, and is no fault: the queue refuses packets (drops
    elsewhere are faults), and a program may clone, recirculate and copy packets to nowhere.
    """
    links, port = run.documents.switch.links, run.documents.switch.bottleneck_port
    all_drops, limit = entries["queue_drops"], links.stats.get(f"port.{port}.queue_drops")
    names = ("clone_drops", "priority_drops", "recirculation_drops", "multicast_drops", "port_unknown_drops")
    by_program = {f"program_{name}": links.stats.get(name) for name in names}
    others = None if all_drops is None or limit is None else all_drops - limit
    return {"queue_drops": others, "limit_drops": limit, "clone_drops": 0, **by_program}


_OF_SOFT_PORTS = {
    "ring_drops": "rx_ring_drops", "tx_errors": "tx_errors", "queue_drops": "queue_drops", "oversize": "oversize",
    "truncated": "rx_truncated", "checksums_missing": "rx_checksum_missing",
}  # fmt: skip


def _lacks_soft_switch(run: Run) -> bool:
    """Whether the soft switch is neither the switch nor a delay line: netem delays behind another switch."""
    return bool(run.experiment.machines) and run.experiment.delay == "tc" and run.experiment.target != SOFT


def _switch_entries(run: Run) -> Entries:
    """The switch's counts of packets and postcards; for a switch with its own traffic manager, also its drops."""
    switch = run.documents.switch
    if run.experiment.is_recorded:
        return {}
    if not switch.runs_between_experiments:
        return {"switch_packets": switch.packets("arrivals"), "postcards_sent": switch.packets("postcards_made")}
    before, port = switch.before, switch.bottleneck_port

    def of_port(name: str) -> int | None:
        ends = (state.counter(name) for state in (before, switch))
        return _difference(*(None if ports is None or port is None else ports.get(str(port), 0) for ports in ends))

    def stats(matches: Callable[[str], bool]) -> int | None:
        names = [name for name in switch.stats if matches(name)]
        if port is None or not names:
            return None
        return total(_difference(before.stats.get(name), switch.stats[name]) for name in names)

    made = (state.packets("postcards_made") for state in (before, switch))
    entries = {"switch_packets": of_port("arrivals"), "postcards_sent": _difference(*made)}
    if rules(run).drops_tell:
        return entries
    drops = f"port.{port}.queue_drops"
    refused = 0
    for cards in parts(run.postcards, "egress_port", "flags"):
        at_ingress = (cards["flags"] & CARD["POSTCARD_AT_INGRESS"]) != 0
        refused += int(np.count_nonzero(at_ingress & (cards["egress_port"] == (-1 if port is None else port))))
    return entries | {
        "refused_packets": stats(lambda name: name == drops),
        "refused_packets_deflected": of_port("arrival_drops"),
        "refused_packets_rows": refused,
        "mirror_drops": stats(lambda name: name.endswith(".mirror_drops")),
        "other_queue_drops": stats(lambda name: name.endswith(".queue_drops") and name != drops),
    }


def _hidden_events(run: Run) -> int | None:
    """Segments that the sender's kernel received or retransmitted without a TCP event. A tracer cannot count events
    that the kernel did not raise, so their number follows from the kernel's segment counters.

    The sender's namespace has only the traffic's sockets. Handshakes raise no events, nor do segments in flight when
    their connection closes: an allowance for both is subtracted.
    """
    tracer = run.documents.tracer
    segments, events = total((tracer.kernel_segments_received, tracer.kernel_segments_resent)), tracer.events
    if segments is None or events is None:
        return None
    spec = run.experiment
    if spec.offloads and spec.offloads.nic_rate_bps:  # one event covers all segments of a super-segment
        for tcp in parts(run.tcp, "event", "mss_bytes", "data_bytes"):
            again = np.flatnonzero(tcp["event"] == EVENT["TCP_EVENT_RETRANSMIT"])
            events += int(segments_of(tcp, again).sum()) - len(again)
    without_event = SEGMENTS_WITHOUT_EVENT * len(run.traffic) + spec.bdp_packets + spec.buffer_packets
    return max(0, segments - events - int(without_event))


def _sink_entries(run: Run, has_hosts: bool) -> Entries:
    """Counts of our own sink; empty with another receiver."""
    if run.goodput is None:
        return {}
    sink = run.documents.traffic_sink
    faults = {"goodput_write_errors": sink.write_errors, "connections_refused": sink.connections_refused}
    rows = {"goodput_records": sink.records_stored, "goodput_rows": run.raw["goodput"].records}
    return rows | (faults if has_hosts else {})


def _finite_entries(run: Run) -> Entries:
    """Counts of finite flows; empty without any. Every long flow has a record, too."""
    if run.flow_records is None:
        return {}
    counts = run.documents.traffic.finite or Sent()
    long_flows = sum(entry.is_tcp and not entry.program for entry in run.traffic)
    return {
        "flows_begun": total((counts.begun, long_flows)),
        "flow_records": counts.records_stored,
        "flow_records_unwritten": counts.records_unwritten,
        "flow_rows": run.raw["flows"].records,
        "flows_refused": counts.refused,
        "flows_reset": counts.reset,
    }


def _loss_entries(run: Run) -> Entries:
    """Packets that the link lost behind the queue, on purpose: by the switch's count, and by the postcards of a switch
    whose draws can be repeated. Empty without LOSS.
    """
    if run.experiment.loss is None:
        return {}
    switch, lost = run.documents.switch, None
    if link_loss.NAME in run.postcards:
        lost = sum(int(np.count_nonzero(cards[link_loss.NAME])) for cards in parts(run.postcards, link_loss.NAME))
    rows = {} if switch.line else {"link_lost_rows": lost}
    return {"link_lost": switch.links.stats.get(f"port.{switch.link_port}.lost"), **rows}


def _path_entries(run: Run) -> Entries:
    """Frames at every station in both directions since the start of the traffic, for a target that does not count its
    losses. If a delay line follows the target, the delay line is a station, too. Empty for the soft switch, which
    counts its losses. Also empty for a switch that runs between experiments, unless a delay line follows.
    """
    switch, environment = run.documents.switch, run.documents.environment
    before, line = switch.before, switch.line
    if line is None and (switch.runs_between_experiments or not _lacks_soft_switch(run)):
        return {}

    def counted(name: str) -> int | None:
        return _difference(before.packets(name), switch.packets(name))

    def kernel(interface: str) -> tuple[int | None, int | None]:
        ends = (environment.frames_before, environment.frames_after)
        first, last = ((end or {}).get(interface, {}) for end in ends)
        sent, received = (_difference(first.get(way), last.get(way)) for way in ("sent", "received"))
        return sent, received

    at_lines: Entries = {}
    for name, port in {"frames_at_line": 1, "replies_at_line": 2}.items() if line else ():
        ends = (state.stats.get(f"port.{port}.rx_frames") if state else None for state in (before.line, line))
        at_lines[name] = _difference(*ends)
    arrivals, dropped = counted("arrivals"), total(map(counted, ("arrival_drops", "departure_drops")))
    host = f"{run.experiment.target}_switch"
    at_switch: Entries = {
        "frames_at_switch": total((arrivals, counted("unknown_hosts"))),
        "frames_admitted": _difference(dropped, arrivals),
    }
    postcards: Entries = {
        "postcards_at_switch": counted("postcards_made"),
        "postcards_on_the_wire": kernel("collector/eth0")[1],
    }
    if run.experiment.is_recorded:
        postcards, at_switch = (
            {},
            {
                "frames_into_switch": kernel(f"{host}/to_sender")[1],
                "frames_out_of_switch": kernel(f"{host}/to_receiver")[0],
            },
        )
    (sent, replies_delivered), (replies_sent, delivered) = kernel("sender/eth0"), kernel("receiver/eth0")
    return at_lines | {
        "frames_sent": sent,
        **at_switch,
        **(
            {"frames_delivered": delivered}
            if run.experiment.loss is None
            else {"frames_delivered_or_lost": total((delivered, _lost_in_traffic(run)))}
        ),
        "replies_sent": replies_sent,
        # A program of the user's may send the sender other frames than the receiver's.
        "frames_to_sender" if run.experiment.is_recorded else "replies_delivered": replies_delivered,
        **postcards,
    }


def _lost_in_traffic(run: Run) -> int | None:
    """Packets that the delay line lost since the start of the traffic."""
    switch, name = run.documents.switch, f"port.{LINE_PORT}.lost"
    return _difference(*(state.stats.get(name) if state else None for state in (switch.before.line, switch.line)))


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


# Neighbours in a chain must have equal counts. An entry is a counter, and the words that follow its count in a message.
_CHAINS: tuple[tuple[tuple[str, str], ...], ...] = (
    (
        ("switch_packets", "packets came to watched queues"),
        ("postcards_sent", "postcards were made by the switch"),
        ("postcards_received", "were received by the collector"),
        ("postcards_stored", "were stored by the collector"),
        ("postcards_rows", "could be read from postcards.bsp"),
    ),
    (
        ("frames_passed_into", "frames came to the switch's interface"),
        ("frames_recorded_into", "were recorded there"),
        ("postcards_matched", "have a postcard"),
        ("postcards_rows", "could be read from postcards.bsp"),
    ),
    (
        ("frames_passed_out_of", "frames left the switch's interface"),
        ("frames_recorded_out_of", "were recorded there"),
        ("frames_matched", "were matched with those before the switch"),
    ),
    (("frames_sent", "frames left the sender"), ("frames_into_switch", "came to the switch's interface")),
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
        ("frames_out_of_switch", "frames left the switch's interface"),
        ("frames_at_line", "came to the delay line behind it"),
        ("frames_delivered", "came to the receiver"),
        ("frames_delivered_or_lost", "came to the receiver or were lost by the delay line"),
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
    (
        ("link_lost", "packets were lost by the link behind the queue"),
        ("link_lost_rows", "postcards are of lost packets"),
    ),
    (("tap_passed", "frames came to the tapped ports, and left them"), ("tap_recorded", "were recorded there")),
    (("datagrams_sent", "datagrams were sent"), ("datagrams_queued", "came to the queue")),
    (("datagrams_departed", "datagrams left the queue"), ("datagrams_received", "were received")),
)
# Counters by the document that has them. A counter with words must be zero: its meaning, and the remedy.
_COUNTERS = {
    "environment": {
        "backlog_drops": "frames were lost by the kernel between hosts and switch: lower RATE, or raise "
        "net.core.netdev_max_backlog",
        "tcp_memory_pressures": "times the hosts' TCP ran short of memory and shrank socket buffers: run fewer flows "
        "at once, or raise net.ipv4.tcp_mem",
        "frames_sent": "", "frames_delivered": "", "replies_sent": "", "replies_delivered": "",
        "postcards_on_the_wire": "", "frames_delivered_or_lost": "", "frames_into_switch": "",
        "frames_to_sender": "", "frames_out_of_switch": "",
    },
    "switch": {
        "switch_packets": "", "postcards_sent": "", "frames_at_switch": "", "frames_admitted": "",
        "frames_at_line": "", "replies_at_line": "", "postcards_at_switch": "", "refused_packets": "",
        "refused_packets_deflected": "", "link_lost": "", "link_lost_rows": "",
        "ring_drops": "frames were dropped by the kernel before the switch read its rings: lower RATE, or leave the "
        "switch more CPU time",
        "tx_errors": "frames could not be handed to the kernel: see logs/, lower RATE",
        "queue_drops": "admitted packets were dropped by the switch's own queue: raise its queue limit",
        "mirror_drops": "mirrored copies were dropped by the switch: lower RATE, or speed the collector's port up",
        "other_queue_drops": "packets were dropped by queues of other ports, such as the collector's: speed these "
        "ports up",
        "oversize": "frames were too long for the switch: offloads are on somewhere, or raise --frame-bytes",
        "truncated": "frames were longer than a slot of the switch's rings: offloads are on somewhere, or MTU is too "
        "large",
        "checksums_missing": "frames came without checksums: turn the senders' checksum offload off",
        "clone_drops": "postcards were not made because the switch had no memory for them: raise --packets",
        "pool_exhausted": "packets were dropped because the switch had no memory for them: raise --packets",
        "arrivals_clamped": "", "tap_passed": "", "tap_recorded": "",
        "tap_lost": "frames could not be written to the captures of TAPS=1: is the disk full?",
    },
    "recorder": {
        "frames_recorded_into": "", "frames_recorded_out_of": "", "frames_passed_into": "", "frames_passed_out_of": "",
        "recorder_drops": "frames were dropped by the kernel before the recorder read its rings: lower RATE",
    },
    "matching": {
        "postcards_matched": "", "frames_matched": "", "frames_changed": "", "frames_ambiguous": "",
        "frames_only_behind": "frames came out of the switch that never went in: its program made or changed them, and "
        "no depth counts them",
        "frames_undecided": "frames may have left the switch after the end of the recording: they count as dropped",
    },
    "collector": {
        "postcards_received": "", "postcards_stored": "",
        "collector_kernel_drops": "postcards were dropped in the collector's socket: lower RATE, or raise its buffer",
        "collector_host_drops": "datagrams were dropped by the collector's host: lower RATE",
        "collector_unstamped": "postcards came without the kernel's time stamp: their receive times are late",
        "collector_write_errors": "writes of the collector failed: see logs/, is the disk full?",
        "postcards_malformed": "datagrams to the collector were not postcards: something else sends to its port",
    },
    "tracer": {
        "tcp_events": "", "tcp_events_stored": "", "tcp_events_hidden": "",
        "tcp_events_lost": "TCP events were not stored by the tracer: tracer.json says where they were lost",
        "tracer_write_errors": "writes of the tracer failed: see logs/, is the disk full?",
    },
    "traffic_sink": {
        "goodput_records": "",
        "goodput_write_errors": "writes of the traffic sink failed: see logs/, is the disk full?",
        "connections_refused": "connections could not be taken by the traffic sink: see logs/",
        "datagrams_received": "",
        "datagrams_sink_drops": "datagrams found no room in the sink's socket: lower RATE",
    },
    "traffic": {
        "flows_begun": "", "flow_records": "",
        "flow_records_unwritten": "flow records could not be written: see logs/, is the disk full?",
        "flows_refused": "finite flows were refused by the receiver: see flows.parquet and logs/",
        "flows_reset": "finite flows were reset or timed out: see flows.parquet and logs/",
        "datagrams_sent": "",
        "datagrams_unsent": "datagrams found no room in the sending host: lower LOAD",
    },
    "postcards": {
        "postcards_missing": "postcard numbers are missing: postcards were lost on the way",
        "postcards_duplicate": "postcards have the number of another: they came twice, or the switch began anew",
    },
}  # fmt: skip


def ledger_reasons(run: Run, entries: Entries) -> list[str]:
    """One line for each pair of neighbours with unequal counts, loss counter that is not 0, document that lacks
    counters, and fault of a raw file; one line for too many hidden events.
    """
    reasons = [
        f"{Area.LEDGER}: {here} {clause}, {there} {next_clause} ({there - here:+d}); see logs/ and run again"
        for chain in _CHAINS
        # Stations that the path lacks are skipped.
        for (name, clause), (next_name, next_clause) in pairwise(step for step in chain if step[0] in entries)
        if (here := entries[name]) is not None and (there := entries[next_name]) is not None and here != there
    ]
    for document, counters in _COUNTERS.items():
        faults = {name: text for name, text in counters.items() if text and entries.get(name)}
        reasons += [f"{Area.LEDGER}: {entries[name]} {text}" for name, text in faults.items()]
        reasons += run.documents.unsaid(
            document, [name for name in counters if name in entries and entries[name] is None]
        )
    hidden, events = entries.get("tcp_events_hidden") or 0, entries.get("tcp_events") or 0
    if hidden > MAX_HIDDEN_EVENTS * (hidden + events):
        reasons.append(
            f"{Area.LEDGER}: {hidden} segments ({hidden / (hidden + events):.1%}) have no trace event; allowed are "
            f"{MAX_HIDDEN_EVENTS:.0%}: run again on a quieter machine, or with CLOCK=virtual"
        )
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
