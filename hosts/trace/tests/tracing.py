# SPDX-License-Identifier: MIT
"""A tracer that runs in a test, and the peers and counters of the namespaces that it traces."""

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
# The stock events tell no namespace: of tests that run at once on one machine each has a port of its own.
PORT = 20000 + os.getpid() % 20000
NOBODY = 65534
# Of all events, those for which a kernel does not call BPF where softirqs interrupt another program of BPF (NOTES.md):
# 12 % on a machine with much to do. tracefs has them all.
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
        of_known_kind = summary["probe_events"] + summary["retransmit_events"]
        if summary["source"] == "bpf":
            assert summary["events"] == of_known_kind + summary["lost_unseen"]
            assert summary["rescued"] == summary["skipped_runs"]
        else:
            assert summary["events"] == of_known_kind + summary["lost_unseen"] + summary["lost_in_rings"]
        records = self.records()
        assert len(records) == summary["stored"]
        return summary, records

    def records(self):
        """Of the file as it is now, in its order."""
        blocks = [np.frombuffer(b.payload, STORED_TCP_RECORD) for b in self.blocks()]
        return np.concatenate(blocks) if blocks else np.empty(0, STORED_TCP_RECORD)

    def blocks(self):
        return list(read_blocks(self.output.read_bytes(), BLOCK.const["BLOCK_TCP"]))


def by_time(records):
    """There is one ring a processor: the file has only the records of each processor in the order of their times."""
    return records[np.argsort(records["mono_ns"], kind="stable")]


def wait_until_closed(pair):
    """Until no connection of either side has a segment to come; those in TIME-WAIT have not."""
    words = ["ss", "-tnH", "state", "connected", "exclude", "time-wait"]
    wait_until(lambda: not any(pair.run(side, *words).stdout for side in ("a", "b")))


def serve(pair, side="b", port=PORT):
    child = pair.start(side, sys.executable, PEER, "serve", port)
    assert child.stdout.readline() == "ready\n"
    return child


def peer(pair, side, *words):
    return json.loads(pair.run(side, sys.executable, PEER, *words).stdout)


def counters(pair, side) -> dict[str, int]:
    """The namespace's own, from /proc/net/snmp and netstat."""
    text = pair.run(side, "cat", "/proc/net/snmp", "/proc/net/netstat").stdout.splitlines()
    found: dict[str, int] = {}
    for names, numbers in zip(text[::2], text[1::2], strict=True):
        found.update(zip(names.split()[1:], map(int, numbers.split()[1:]), strict=True))
    return found


def address(record, side) -> str:
    packed = b"".join(int(record[f"{side}_addr_{half}"]).to_bytes(8, "big") for half in ("hi", "lo"))
    return socket.inet_ntop(socket.AF_INET6, packed)


def limit_queue(pair):
    """One segment an skb, so that each one sent again is one event; a short queue in front of "b" drops."""
    pair.run("a", "ip", "link", "set", "eth0", "gso_max_segs", "1")
    queue = ["tbf", "rate", "100mbit", "burst", "5k", "limit", "30k"]
    pair.run(
        "b", sys.executable, "-c", f"from hosts.tune import delay; delay.build('eth0', 'receiver-ingress', {queue})"
    )


def check_exchange(acks, said, local, remote):
    """The records of the ACKs of `tcp_peer exchange` against what the socket said of itself."""
    assert len(acks) == 3
    acks = by_time(acks)
    last, info = acks[2], said["before"]
    assert address(last, "src") == local
    assert address(last, "dst") == remote
    assert (last["src_port"], last["dst_port"]) == (said["names"][1], said["names"][3])
    # what it was before the message is what the ACK of the message found, but for the message itself
    assert last["cwnd_packets"] == info["snd_cwnd"]
    assert last["ssthresh_packets"] == info["snd_ssthresh"]
    assert last["srtt_us"] == info["rtt"]
    assert last["rtt_min_us"] == info["min_rtt"]
    assert last["mss_bytes"] == info["snd_mss"]
    assert last["delivered_packets"] == info["delivered"]
    assert last["pacing_rate_bytes_per_s"] == info["pacing_rate"]
    assert last["ca_state"] == info["ca_state"] == 0
    rate = int(last["rate_delivered_packets"]) * int(last["mss_bytes"]) * 1_000_000 // int(last["rate_interval_us"])
    assert rate == info["delivery_rate"]
    assert (last["packets_out"], last["retrans_out"], last["sacked_out"], last["lost_out"]) == (1, 0, 0, 0)
    assert (int(last["snd_nxt"]) - int(last["snd_una"])) % 2**32 == 1000
    assert (int(last["snd_una"]) - int(acks[0]["snd_una"])) % 2**32 == 2000
    assert last["data_bytes"] == 0
    assert last["snd_wnd_bytes"] > 1000
    assert last["unknown_fields"] == 0
    assert np.all(np.diff(acks["mono_ns"].astype(np.int64)) > 0)
