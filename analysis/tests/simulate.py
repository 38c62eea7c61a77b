# SPDX-License-Identifier: MIT
"""A small packet-by-packet simulation of TCP flows at one queue, recorded as a repetition's directory.

Window growth, fast retransmit and timeouts are simple versions of TCP's. Every packet, ACK, window and queue length is
known, so tests can compute each metric again from `Truth` by direct loops.
"""

from __future__ import annotations

import heapq
import ipaddress
import json
import random
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from runs import record
from runs.names import ENVIRONMENT
from wire import wire

CARD, EVENT, BLOCK = wire.POSTCARD.const, wire.TCP_RECORD.const, wire.BLOCK.const
MSS, HEADERS_IPV4 = 1448, 66
START_NS = (1 << 48) - 300_000_000  # the switch's 48-bit clock wraps while the simulation runs
REALTIME_MINUS_MONO_NS = 1_700_000_000_000_000_000


@dataclass
class Flow:
    """One sender and its receiver."""

    index: int
    first_seq: int
    una: int = 0  # una, nxt and the sets contain segment numbers, from 0
    nxt: int = 0
    cwnd: float = 10.0
    ssthresh: float = 1e9
    sacked: set[int] = field(default_factory=set)
    lost: set[int] = field(default_factory=set)
    resent: set[int] = field(default_factory=set)
    recover: int = -1  # recovery ends when una is past this
    last_ack_ns: int = 0
    received: set[int] = field(default_factory=set)
    expected: int = 0

    @property
    def in_flight(self) -> int:
        return (self.nxt - self.una) - len(self.sacked) - len(self.lost - self.resent)

    def seq(self, segment: int) -> int:
        return (self.first_seq + 1 + segment * MSS) % (1 << 32)


@dataclass
class Truth:
    """The ground truth of a simulation."""

    cards: list[dict[str, int]] = field(default_factory=list)  # one per packet, in order of arrival
    records: list[dict[str, int]] = field(default_factory=list)
    arrival_flow: list[int] = field(default_factory=list)
    arrival_segment: list[int] = field(default_factory=list)  # -1: SYN
    ack_ns: dict[tuple[int, int], int] = field(default_factory=dict)  # when an ACK first covered (flow, segment)


@dataclass
class Scenario:
    """The experiment to simulate."""

    flows: int = 2
    rate_bps: int = 50_000_000
    rtt_ns: int = 10_000_000
    threshold: int = 20
    threshold_bytes: int | None = None
    duration_ns: int = 1_200_000_000
    warmup_ns: int = 200_000_000
    ipv6: bool = False
    swap_every: int = 0  # one packet in `swap_every` comes 400 us late, behind later packets; 0: none
    max_cwnd: float = 1e9
    ccs: tuple[str, ...] = ("reno",)
    mode: str = "tail-drop"
    ecn_threshold: int | None = None
    clock: str = "real"
    switch: str = "process"
    seed: int = 1

    @property
    def frame_bytes(self) -> int:
        return MSS + HEADERS_IPV4 + (20 if self.ipv6 else 0)

    def addresses(self) -> tuple[str, str]:
        return ("fd77::1", "fd77::2") if self.ipv6 else ("10.77.0.1", "10.77.0.2")


class Simulation:
    """Events in time order: a segment reaches the queue, an ACK reaches the sender, a timer runs out."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.truth = scenario, Truth()
        self.random = random.Random(scenario.seed)
        self.events: list[tuple[int, int, str, tuple[int, ...]]] = []
        self.serial = 0
        self.link_free_ns = self.link_carry = 0  # unit of the carry: 1 / rate_bps ns
        self.departures: list[int] = []  # of packets in the queue
        self.queued_bytes: list[int] = []
        self.card_seq = {True: 0, False: (1 << 32) - 50}
        self.flows = [Flow(i, (1 << 32) - 40_000 * (i + 1)) for i in range(scenario.flows)]
        self.sent = 0

    def at(self, ns: int, kind: str, *what: int) -> None:
        self.serial += 1
        heapq.heappush(self.events, (ns, self.serial, kind, what))

    def run(self) -> Truth:
        end = START_NS + self.scenario.warmup_ns + self.scenario.duration_ns
        for flow in self.flows:
            begin = START_NS + 1_000_000 * flow.index + self.random.randrange(1_000_000)
            self.at(begin, "arrive", flow.index, -1, 0)
            self.at(begin + self.scenario.rtt_ns, "start", flow.index)
        while self.events and self.events[0][0] < end:
            ns, _, kind, what = heapq.heappop(self.events)
            getattr(self, kind)(ns, *what)
        return self.truth

    # The sender

    def start(self, ns: int, index: int) -> None:
        self.send(ns, self.flows[index])
        self.at(ns + 1, "timer", index)

    def send(self, ns: int, flow: Flow) -> None:
        while flow.in_flight < int(min(flow.cwnd, self.scenario.max_cwnd)):
            hole = min(flow.lost - flow.resent, default=None)
            if hole is None:
                segment, flow.nxt = flow.nxt, flow.nxt + 1
            else:
                segment = hole
                flow.resent.add(segment)
                self.record(ns + 2_000, flow, EVENT["TCP_EVENT_RETRANSMIT"], segment)
            self.sent += 1
            late = self.scenario.swap_every and self.sent % self.scenario.swap_every == 0
            self.at(ns + self.random.randrange(1, 1_000) + (400_000 if late else 0), "arrive", flow.index, segment, 1)

    def ack(self, ns: int, index: int, expected: int, segment: int) -> None:
        flow = self.flows[index]
        self.record(ns, flow, EVENT["TCP_EVENT_PROBE"], 0)
        flow.last_ack_ns = ns
        for covered in range(flow.una, expected):
            self.truth.ack_ns[index, covered] = ns
        flow.una = max(flow.una, expected)
        if segment >= flow.una:
            flow.sacked.add(segment)
        for scoreboard in (flow.sacked, flow.lost, flow.resent):
            scoreboard -= {s for s in scoreboard if s < flow.una}
        flow.lost -= flow.sacked
        highest = max(flow.sacked, default=-1)
        holes = {s for s in range(flow.una, highest - 2) if s not in flow.sacked and s not in flow.lost}
        flow.lost |= holes
        if flow.lost and flow.recover < flow.una:
            flow.recover = flow.nxt - 1
            flow.ssthresh = max(flow.cwnd / 2, 2)
            flow.cwnd = flow.ssthresh
        elif not flow.lost:
            flow.cwnd += 1 if flow.cwnd < flow.ssthresh else 1 / flow.cwnd
        self.send(ns, flow)

    def timer(self, ns: int, index: int) -> None:
        flow = self.flows[index]
        if ns - max(flow.last_ack_ns, START_NS) > 12 * self.scenario.rtt_ns and flow.nxt > flow.una:
            flow.lost = set(range(flow.una, flow.nxt)) - flow.sacked
            flow.resent.clear()
            flow.cwnd, flow.ssthresh, flow.recover = 1.0, max(flow.cwnd / 2, 2), flow.nxt - 1
            flow.last_ack_ns = ns
            self.send(ns, flow)
        self.at(ns + self.scenario.rtt_ns, "timer", index)

    def record(self, ns: int, flow: Flow, event: int, segment: int) -> None:
        self.truth.records.append(
            {
                "mono_ns": ns, "event": event, "flow": flow.index, "snd_una": flow.seq(flow.una),
                "snd_nxt": flow.seq(flow.nxt),
                "event_seq": flow.seq(segment) if event == EVENT["TCP_EVENT_RETRANSMIT"] else 0,
                "cwnd_packets": int(flow.cwnd), "ssthresh_packets": int(min(flow.ssthresh, 0x7FFFFFFF)),
                "packets_out": flow.nxt - flow.una, "sacked_out": len(flow.sacked), "lost_out": len(flow.lost),
                "retrans_out": len(flow.resent & flow.lost), "srtt_us": self.scenario.rtt_ns // 1000 + 5,
                "rtt_min_us": self.scenario.rtt_ns // 1000, "mss_bytes": MSS,
                "data_bytes": MSS if event == EVENT["TCP_EVENT_RETRANSMIT"] else 0, "ca_state": 3 if flow.lost else 0,
            }
        )  # fmt: skip

    # The queue and the receiver

    def arrive(self, ns: int, index: int, segment: int, _: int) -> None:
        flow, scenario = self.flows[index], self.scenario
        while self.departures and self.departures[0] <= ns:
            self.departures.pop(0)
            self.queued_bytes.pop(0)
        frame_bytes = scenario.frame_bytes if segment >= 0 else HEADERS_IPV4 + 8 + (20 if scenario.ipv6 else 0)
        depth, depth_bytes = len(self.departures), sum(self.queued_bytes)
        limit = scenario.threshold_bytes
        refused = depth_bytes >= limit if limit else depth >= scenario.threshold
        flags = CARD["POSTCARD_HAS_IP"] | CARD["POSTCARD_HAS_PORTS"] | CARD["POSTCARD_HAS_TCP"]
        flags |= CARD["POSTCARD_BYTE_THRESHOLD"] if limit else 0
        if scenario.mode == "ecn":
            flags |= CARD["POSTCARD_ECT"]
            if not refused and depth >= (scenario.ecn_threshold or 0):
                flags |= CARD["POSTCARD_CE_MARKED"]
        sojourn_ns = 0
        if refused:
            flags |= CARD["POSTCARD_DROPPED"] | CARD["POSTCARD_AT_INGRESS"]
        else:
            wire_bits = 8 * (max(frame_bytes, 60) + 24)
            if self.link_free_ns < ns:
                self.link_free_ns, self.link_carry = ns, 0
            took_ns, self.link_carry = divmod(wire_bits * 10**9 + self.link_carry, scenario.rate_bps)
            self.link_free_ns += took_ns
            sojourn_ns = self.link_free_ns - ns
            self.departures.append(ns + sojourn_ns)
            self.queued_bytes.append(frame_bytes)
            if segment >= 0:
                self.at(ns + sojourn_ns + scenario.rtt_ns // 2, "deliver", index, segment)
        self.truth.arrival_flow.append(index)
        self.truth.arrival_segment.append(segment)
        self.truth.cards.append(
            {
                "enqueue_ns": ns, "sojourn_ns": sojourn_ns, "flags": flags, "depth_packets": depth,
                "depth_bytes": depth_bytes,
                "packet_bytes": frame_bytes, "card_seq": self.card_seq[refused],
                "tcp_seq": flow.seq(segment) if segment >= 0 else flow.first_seq,
                "tcp_flags": 0x10 if segment >= 0 else 0x02,
            }
        )  # fmt: skip
        self.card_seq[refused] = (self.card_seq[refused] + 1) % (1 << 32)

    def deliver(self, ns: int, index: int, segment: int) -> None:
        flow = self.flows[index]
        flow.received.add(segment)
        while flow.expected in flow.received:
            flow.received.remove(flow.expected)
            flow.expected += 1
        self.at(ns + self.scenario.rtt_ns // 2, "ack", index, flow.expected, segment)


# The directory --------------------------------------------------------------------------------------------------------


def address(text: str) -> int:
    """The address as a postcard has it: IPv4 as IPv4-mapped."""
    parsed = ipaddress.ip_address(text)
    return 0xFFFF << 32 | int(parsed) if parsed.version == 4 else int(parsed)


def postcard_bytes(scenario: Scenario, card: dict[str, int], flow: int) -> bytes:
    """A stored postcard: receive stamp, then the postcard. It is received 30 us after departure."""
    src, dst = scenario.addresses()
    rx_ns = card["enqueue_ns"] + card["sojourn_ns"] + 30_000
    return struct.pack("<Q", rx_ns) + wire.POSTCARD.encode(
        version=CARD["POSTCARD_VERSION"], flags=card["flags"], switch_id=1, ingress_port=1, egress_port=2,
        policy=wire.POLICY["POLICY_" + scenario.mode.replace("-", "_").upper()], card_seq=card["card_seq"],
        enqueue_switch_ns=card["enqueue_ns"] % (1 << 48), sojourn_ns=card["sojourn_ns"],
        depth_packets=card["depth_packets"], depth_bytes=card["depth_bytes"],
        threshold=scenario.ecn_threshold or scenario.threshold_bytes or scenario.threshold,
        packet_bytes=card["packet_bytes"], ip_protocol=card.get("ip_protocol", 6),
        tcp_flags=card["tcp_flags"], src_addr=address(src), dst_addr=address(dst), src_port=30_000 + flow,
        dst_port=5201, tcp_seq=card["tcp_seq"],
    )  # fmt: skip


def record_bytes(scenario: Scenario, record: dict[str, int]) -> bytes:
    """A stored TCP record."""
    src, dst = (address(text) for text in scenario.addresses())
    low = (1 << 64) - 1
    values = {key: value for key, value in record.items() if key != "flow"}
    return wire.TCP_RECORD.encode(
        **values, src_port=30_000 + record["flow"], dst_port=5201, src_addr_hi=src >> 64, src_addr_lo=src & low,
        dst_addr_hi=dst >> 64, dst_addr_lo=dst & low, socket_cookie=record["flow"] + 1,
    )  # fmt: skip


def blocks(kind: int, version: int, records: list[bytes], per_block: int = 500) -> bytes:
    """Records as the blocks of a raw file."""
    data, header = b"", {"realtime_minus_mono_ns": REALTIME_MINUS_MONO_NS}
    for at in range(0, len(records), per_block):
        payload = b"".join(records[at : at + per_block])
        data += wire.encode_block(kind, version, len(records[0]), payload, first_record=at, **header)
    return data


def stored_postcards(scenario: Scenario, truth: Truth) -> list[bytes]:
    """The stored postcards, in the order in which the collector receives them: by departure."""
    order = sorted(range(len(truth.cards)), key=lambda i: truth.cards[i]["enqueue_ns"] + truth.cards[i]["sojourn_ns"])
    return [postcard_bytes(scenario, truth.cards[i], truth.arrival_flow[i]) for i in order]


def write_postcards(directory: Path, cards: list[bytes]) -> None:
    """Writes stored postcards."""
    data = blocks(BLOCK["BLOCK_POSTCARDS"], CARD["POSTCARD_VERSION"], cards) if cards else b""
    (directory / "postcards.bsp").write_bytes(data)


def read_postcards(directory: Path) -> list[bytes]:
    """Stored postcards."""
    size, found = wire.STORED_POSTCARD.itemsize, list[bytes]()
    for block in wire.read_blocks((directory / "postcards.bsp").read_bytes(), BLOCK["BLOCK_POSTCARDS"]):
        found += [bytes(block.payload[at : at + size]) for at in range(0, len(block.payload), size)]
    return found


def write_trace(directory: Path, records: list[bytes]) -> None:
    """Writes stored TCP records."""
    data = blocks(BLOCK["BLOCK_TCP"], EVENT["TCP_RECORD_VERSION"], records) if records else b""
    (directory / "tcp.bst").write_bytes(data)


def documents(scenario: Scenario, truth: Truth) -> dict[str, Any]:
    """The JSON files of a run in which nothing went wrong."""
    documents_by_name = _documents(scenario, truth)
    if scenario.clock == "virtual":
        _make_virtual(scenario, documents_by_name)
    return documents_by_name


def _make_virtual(scenario: Scenario, documents_by_name: dict[str, Any]) -> None:
    """Changes the documents to those of a run in virtual time. A process's worst frame is 9,983 ns late, just
    within the limit of 10 us; a driver is never late.
    """
    late_ns = {"driver": 0, "process": 9_983}[scenario.switch]
    switch, echo_ns = documents_by_name["switch"], scenario.rtt_ns + 84 * 8 * 10**9 // scenario.rate_bps
    documents_by_name["environment"]["virtual_machine"] = {"kernel": {"version": "6.12.1"}, "seed": 1}
    switch["program"]["executor"] = scenario.switch
    frames = {"1": 900, "2": 1000, "3": 1000}
    switch["lateness"] = {port: [[0, count - 1], [late_ns, 1]] for port, count in frames.items()}
    switch["stats"] |= {
        "gap_error_over_10pct.2": 0, "gap_error_max_ns.2": 1 if scenario.switch == "driver" else 12_000,
        "real_span_ns.2": 1_000_000_000 + late_ns, "loop_gap_max_ns": 0,
    }  # fmt: skip
    documents_by_name["idle_rtt"] = {"samples_ns": [echo_ns + 2], "min_ns": echo_ns + 2, "median_ns": echo_ns + 2}


def _documents(scenario: Scenario, truth: Truth) -> dict[str, Any]:
    cards, records = len(truth.cards), len(truth.records)
    marks = sum(bool(card["flags"] & CARD["POSTCARD_CE_MARKED"]) for card in truth.cards)
    src, dst = scenario.addresses()
    spans = {"real_span_ns.2": 1_000_000_500, "virtual_span_ns.2": 1_000_000_000}
    ports = {
        f"port.{port}.{name}": 0
        for port in (1, 2, 3)
        for name in ("rx_ring_drops", "tx_errors", "queue_drops", "oversize", "rx_truncated", "rx_checksum_missing")
    }
    stats = ports | spans | {
        "port.1.rx_frames": cards, "pool_exhausted": 0, "clone_drops": 0, "arrivals_clamped": 0, "clock_steps": 0,
        "realtime_step_max_ns": 0, "gap_error_max_ns.2": 300_000,
        "gap_frames.2": 1000, "gap_error_over_10pct.2": 20, "loop_gap_max_ns": 400_000, "departures.2": 1000,
    }  # fmt: skip
    flows = [
        {
            "id": i, "cc": scenario.ccs[i * len(scenario.ccs) // scenario.flows], "src_addr": src, "dst_addr": dst,
            "src_port": 30_000 + i, "dst_port": 5201,
        }
        for i in range(scenario.flows)
    ]  # fmt: skip
    return {
        "environment": {
            "git_commit": "0" * 40, "kernel": {"release": "6.1.0"}, "p4_digest": "ab" * 32,
            "frames_lost_in_backlog": {"sender/eth0": 0, "switch/to_sender": 0},
        },
        "collector": {
            "received": cards, "stored": cards, "short": 0, "bad_version": 0, "trailing": 0, "gaps": 0, "missing": 0,
            "duplicates": 0, "reordered": 0, "kernel_drops": 0, "write_errors": 0, "unstamped": 0,
            "host_drops": {"interface": 0, "backlog": 0},
        },
        "tracer": {
            "events": records, "stored": records, "lost": 0, "write_errors": 0, "bpf_ns_per_event": 250.0,
            "kernel_segments_received": records, "kernel_segments_resent": 0,
            "bpf_runs": records, "user_ns_per_event": 90.0,
        },
        "switch": {
            "bottleneck_port": 2,
            "settings": {
                "1": {"rate": 0, "delay": scenario.rtt_ns - scenario.rtt_ns // 2},
                "2": {"rate": scenario.rate_bps, "delay": scenario.rtt_ns // 2},
                "3": {"rate": 0, "delay": 0},
            },
            "program": {"name": "bufferscope", "digest": "ab" * 32},
            "stats": stats,
            "counters": {
                "arrivals": {"2": {"packets": cards, "bytes": 0}},
                "arrival_marks": {"2": {"packets": marks, "bytes": 0}},
                "postcards_made": {"3": {"packets": cards, "bytes": 0}},
            },
            "lateness": {"2": [[10_000, 900], [20_000, 90], [100_000, 9], [400_000, 1]]},
        },
        "traffic": {
            "start_mono_ns": START_NS, "end_mono_ns": START_NS + scenario.warmup_ns + scenario.duration_ns,
            "groups": [{"cc": cc, "exit_status": 0, "bits_per_second_received": 4.0e7} for cc in scenario.ccs],
            "flows": flows, "errors": [],
        },
        "idle_rtt": {
            "samples_ns": [scenario.rtt_ns + 40_000], "min_ns": scenario.rtt_ns + 40_000,
            "median_ns": scenario.rtt_ns + 60_000,
        },
    }  # fmt: skip


def spec(scenario: Scenario) -> dict[str, Any]:
    """spec.yaml."""
    mtu = scenario.frame_bytes - 14
    bdp = scenario.rate_bps * scenario.rtt_ns / (8e9 * (mtu + 38))
    shares = [
        sum(i * len(scenario.ccs) // scenario.flows == g for i in range(scenario.flows))
        for g in range(len(scenario.ccs))
    ]
    return {
        "spec_version": 1, "name": "simulated", "target": "soft", "clock": scenario.clock, "switch": scenario.switch,
        "generator": "iperf3", "delay": "switch", "mode": scenario.mode,
        "groups": [
            {"cc": cc, "flows": n, "rtt_ns": scenario.rtt_ns, "rtt_spread_ns": 0}
            for cc, n in zip(scenario.ccs, shares, strict=True)
        ],
        "rate_bps": scenario.rate_bps, "rtt_ns": scenario.rtt_ns, "mtu_bytes": mtu, "wire_bytes": mtu + 38,
        "bdp_packets": round(bdp), "buffer_given": f"{scenario.threshold}p", "buffer_packets": scenario.threshold,
        "threshold_bytes": scenario.threshold_bytes, "ecn_threshold_packets": scenario.ecn_threshold,
        "ecn_threshold_bytes": None, "duration_ns": scenario.duration_ns,
        "warmup_ns": scenario.warmup_ns, "seed": scenario.seed, "reps": 1,
    }  # fmt: skip


def record_digests(directory: Path) -> None:
    """Completes a repetition as the runner does: writes the digests of the raw files, and then environment.json."""
    path = directory / ENVIRONMENT
    data = json.dumps(json.loads(path.read_text()) | {record.MARK: True}).encode()
    path.unlink()
    record.write_raw(directory, {ENVIRONMENT: data})
    path.write_bytes(data)


def write_run(directory: Path, scenario: Scenario, truth: Truth | None = None) -> Truth:
    """Writes a repetition's directory, from a new simulation unless `truth` is given. Returns the ground truth."""
    truth = truth or Simulation(scenario).run()
    directory.mkdir(parents=True, exist_ok=True)
    write_postcards(directory, stored_postcards(scenario, truth))
    in_order = sorted(truth.records, key=lambda record: record["mono_ns"])
    write_trace(directory, [record_bytes(scenario, record) for record in in_order])
    for name, document in documents(scenario, truth).items():
        (directory / f"{name}.json").write_text(json.dumps(document))
    (directory / "spec.yaml").write_text(yaml.safe_dump(spec(scenario)))
    return truth
