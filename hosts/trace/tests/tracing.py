# SPDX-License-Identifier: MIT
"""Starts a tracer in a test, runs TCP peers in the traced namespaces, and reads their counters."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hosts.tests.patience import SECONDS, wait_until
from wire.wire import BLOCK, STORED_TCP_RECORD, TCP_RECORD, read_blocks

ROOT = Path(__file__).resolve().parents[3]
TRACER = ROOT / "build/tcp_trace"
GENERATOR = ROOT / "build/tcp_event_generator"
PEER = ROOT / "hosts/trace/tests/tcp_peer.py"
PROBE = TCP_RECORD.const["TCP_EVENT_PROBE"]
RETRANSMIT = TCP_RECORD.const["TCP_EVENT_RETRANSMIT"]
# Stock events do not have the socket's namespace, so tests that run at the same time need different ports.
PORT = 20000 + os.getpid() % 20000
NOBODY = 65534
FIELDS = [name for name, _ in TCP_RECORD.fields]
# Bound on the share of events for which the kernel does not call BPF (NOTES.md: those in softirqs that interrupt one
# management process of the reference machine). The largest share observed on a busy machine was 12 %. tracefs has all
# events.
MOST_UNCALLED = 0.3


class Trace:
    """A running tracer of one side; `stop` gives its summary and records."""

    def __init__(self, pair, side, directory, *words, prefix=()):
        self.output, self.summary = directory / "tcp.bst", directory / "tracer.json"
        files = ["--output", self.output, "--summary", self.summary, "--netns", pair.path(side)]
        command = [*prefix, TRACER, *map(str, [*files, *words])]
        child: Any = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        pair.started.append(child)
        if child.stdout.readline() != "ready\n":
            pytest.fail(child.communicate(timeout=SECONDS)[1])
        self.child = child

    def stop(self, status=0, number=signal.SIGTERM):
        self.child.send_signal(number)
        _, self.errors = self.child.communicate(timeout=SECONDS)
        assert self.child.returncode == status, self.errors
        summary = json.loads(self.summary.read_text())
        assert summary["events"] == summary["stored"] + summary["lost"]
        counted_by_kind = summary["probe_events"] + summary["retransmit_events"]
        if summary["source"] == "bpf":
            assert summary["events"] == counted_by_kind + summary["lost_unseen"]
            assert summary["rescued"] == summary["skipped_runs"]
        else:
            assert summary["events"] == counted_by_kind + summary["lost_unseen"] + summary["lost_in_rings"]
        records = self.records()
        assert len(records) == summary["stored"]
        return summary, records

    def records(self):
        """The records that the file has now, in the file's order."""
        blocks = [np.frombuffer(block.payload, STORED_TCP_RECORD) for block in self.blocks()]
        return np.concatenate(blocks) if blocks else np.empty(0, STORED_TCP_RECORD)

    def blocks(self):
        return list(read_blocks(self.output.read_bytes(), BLOCK.const["BLOCK_TCP"]))


def known(records, name):
    """Whether a record has the field, or for an array, which records have it."""
    return records["unknown_fields"] >> np.uint64(FIELDS.index(name)) & np.uint64(1) == 0


def by_time(records):
    """Sorts records by time. The file is sorted only per processor, because each processor has its own ring."""
    return records[np.argsort(records["mono_ns"], kind="stable")]


def wait_until_closed(pair):
    """Waits until no connection of either side expects a segment. Connections in TIME-WAIT do not."""
    words = ["ss", "-tnH", "state", "connected", "exclude", "time-wait"]
    wait_until(lambda: not any(pair.run(side, *words).stdout for side in ("a", "b")))


def serve(pair, side="b", port=PORT):
    child = pair.start(side, sys.executable, PEER, "serve", port)
    assert child.stdout.readline() == "ready\n"
    return child


def peer(pair, side, *words):
    return json.loads(pair.run(side, sys.executable, PEER, *words).stdout)


def counters(pair, side) -> dict[str, int]:
    """The namespace's counters in /proc/net/snmp and netstat."""
    text = pair.run(side, "cat", "/proc/net/snmp", "/proc/net/netstat").stdout.splitlines()
    values: dict[str, int] = {}
    for names, numbers in zip(text[::2], text[1::2], strict=True):
        values.update(zip(names.split()[1:], map(int, numbers.split()[1:]), strict=True))
    return values


def address(record, side) -> str:
    packed = b"".join(int(record[f"{side}_addr_{half}"]).to_bytes(8, "big") for half in ("hi", "lo"))
    return socket.inet_ntop(socket.AF_INET6, packed)


def limit_queue(pair):
    """Limits skbs to one segment, so that each retransmission is one event. A short queue at "b" drops packets."""
    pair.run("a", "ip", "link", "set", "eth0", "gso_max_segs", "1")
    queue = ["tbf", "rate", "100mbit", "burst", "5k", "limit", "30k"]
    pair.run(
        "b", sys.executable, "-c", f"from hosts.tune import delay; delay.build('eth0', 'receiver-ingress', {queue})"
    )


def check_exchange(acks, exchange, local, remote):
    """Compares the records of the ACKs of `tcp_peer exchange` with the output of tcp_peer."""
    assert len(acks) == 3
    acks = by_time(acks)
    last, info = acks[2], exchange["before"]
    assert address(last, "src") == local
    assert address(last, "dst") == remote
    assert (last["src_port"], last["dst_port"]) == (exchange["names"][1], exchange["names"][3])
    # When the ACK arrives, the socket's state is as before the message, except that the message is in flight.
    expected = {
        "cwnd_packets": info["snd_cwnd"], "ssthresh_packets": info["snd_ssthresh"], "srtt_us": info["rtt"],
        "rtt_min_us": info["min_rtt"], "mss_bytes": info["snd_mss"], "delivered_packets": info["delivered"],
        "pacing_rate_bytes_per_s": info["pacing_rate"], "ca_state": 0, "data_bytes": 0, "packets_out": 1,
        "retrans_out": 0, "sacked_out": 0, "lost_out": 0,
    }  # fmt: skip
    assert {name: last[name] for name in expected if known(last, name)} == {
        name: value for name, value in expected.items() if known(last, name)
    }
    if known(last, "rate_delivered_packets"):
        rate = int(last["rate_delivered_packets"]) * int(last["mss_bytes"]) * 1_000_000 // int(last["rate_interval_us"])
        assert rate == info["delivery_rate"]
    assert (int(last["snd_nxt"]) - int(last["snd_una"])) % 2**32 == 1000
    assert (int(last["snd_una"]) - int(acks[0]["snd_una"])) % 2**32 == 2000
    assert last["snd_wnd_bytes"] > 1000
    assert np.all(np.diff(acks["mono_ns"].astype(np.int64)) > 0)
