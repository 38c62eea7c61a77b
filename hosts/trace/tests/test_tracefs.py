# SPDX-License-Identifier: MIT
"""Tracing from tracefs on this machine's kernel: its counts beside those of BPF and of the namespace, and clean-up."""

import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from hosts.tests.patience import SECONDS, wait_until
from hosts.trace.tests.tracing import (
    FIELDS,
    MOST_UNCALLED,
    PORT,
    PROBE,
    RETRANSMIT,
    ROOT,
    TRACER,
    Trace,
    address,
    counters,
    known,
    limit_queue,
    peer,
    serve,
    wait_until_closed,
)

pytestmark = pytest.mark.software
TRACEFS = ("--source", "tracefs")
PORTS = ("--port", f"{PORT}-{PORT}")


@pytest.fixture(scope="module", autouse=True)
def _built():
    subprocess.run(["make", "-s", "-C", ROOT / "hosts"], check=True)


@pytest.fixture
def instances(tmp_path):
    """The machine's directory of tracefs instances, in a mount that the test makes."""
    mount_point = tmp_path / "tracefs"
    mount_point.mkdir()
    subprocess.run(["mount", "-t", "tracefs", "tracefs", mount_point], check=True)
    yield mount_point / "instances"
    subprocess.run(["umount", mount_point], check=True)


def instance_of(instances, trace):
    matches = list(instances.glob(f"bufferscope-{trace.child.pid}-*"))
    assert len(matches) == 1
    return matches[0]


def remover_of(trace) -> int:
    children = Path(f"/proc/{trace.child.pid}/task/{trace.child.pid}/children").read_text().split()
    assert len(children) == 1
    return int(children[0])


def test_tracefs__and_bpf_have_what_the_namespace_counts(pair, tmp_path):
    limit_queue(pair)
    serve(pair)
    traces = {}
    for source in ("bpf", "tracefs"):
        (tmp_path / source).mkdir()
        traces[source] = Trace(pair, "a", tmp_path / source, "--source", source, *PORTS)
    before = counters(pair, "a")
    for to in ("10.77.0.2", "fd77::2"):
        peer(pair, "a", "send", to, PORT, 3_000_000)
    wait_until_closed(pair)
    grown = {name: count - before[name] for name, count in counters(pair, "a").items()}
    (_, bpf), (summary, tracefs) = traces["bpf"].stop(), traces["tracefs"].stop()
    assert summary["tracepoints"] == ["tcp:tcp_probe", "tcp:tcp_retransmit_skb"]
    assert summary["lost"] == 0
    # RetransSegs also counts retransmissions that failed (retransmit_failures).
    assert 0 <= grown["RetransSegs"] - summary["retransmit_events"] <= summary["retransmit_failures"]
    assert summary["retransmit_events"] > 10
    # probe_events has all segments received, except those of two handshakes and after a FIN
    assert 0 < grown["InSegs"] - grown["TCPBacklogCoalesce"] - summary["probe_events"] <= 12
    assert summary["kernel_segments_received"] == grown["InSegs"] - grown["TCPBacklogCoalesce"]
    assert summary["kernel_segments_resent"] == grown["RetransSegs"]
    assert len({address(record, "dst") for record in tracefs}) == 2

    assert (1 - MOST_UNCALLED) * len(tracefs) < len(bpf) <= len(tracefs)
    probes = tracefs[tracefs["event"] == PROBE]
    for name in ("socket_cookie", "cwnd_packets", "snd_una", "snd_nxt", "srtt_us", "data_bytes"):
        assert known(probes, name).all()
    assert known(probes, "ssthresh_packets").mean() > 0.5
    assert not known(tracefs, "packets_out").any()
    for name in FIELDS:
        assert not tracefs[name][~known(tracefs, name)].any(), name
    assert "packets_out" in summary["unknown_fields"]
    assert "cwnd_packets" in summary["retransmit_unknown_fields"]

    retransmits, acks = (bpf[bpf["event"] == event] for event in (RETRANSMIT, PROBE))
    assert np.all(retransmits["data_bytes"] > 0)
    assert set(acks["ca_state"]) >= {0, 3}
    in_flight = sum(acks[name].astype(np.int64) for name in ("packets_out", "retrans_out"))
    in_flight -= sum(acks[name].astype(np.int64) for name in ("sacked_out", "lost_out"))
    assert 0 <= in_flight.min() < 5 < in_flight.max()


def test_tracefs__no_instance_stays_whatever_ends_the_tracer(pair, tmp_path, instances):
    for name in ("stopped", "killed", "left", "running", "next"):
        (tmp_path / name).mkdir()
    stopped, killed = (Trace(pair, "a", tmp_path / name, *TRACEFS) for name in ("stopped", "killed"))
    instance, of_killed = instance_of(instances, stopped), instance_of(instances, killed)
    assert "[mono]" in (instance / "trace_clock").read_text()
    stopped.stop()
    assert not instance.exists()
    killed.child.kill()
    killed.child.wait()
    wait_until(lambda: not of_killed.exists())

    # The next start removes the instance of a tracer that was killed with its remover.
    left, running = (Trace(pair, "a", tmp_path / name, *TRACEFS) for name in ("left", "running"))
    of_left, used = instance_of(instances, left), instance_of(instances, running)
    os.kill(remover_of(left), signal.SIGKILL)
    left.child.kill()
    left.child.wait()
    following = Trace(pair, "a", tmp_path / "next", *TRACEFS)
    assert not of_left.exists()
    assert used.exists()
    running.stop()
    following.stop()
    assert of_left.name in following.errors

    words = ["--output", running.output, "--summary", tmp_path / "t.json", "--netns", pair.path("a"), *TRACEFS]
    with subprocess.Popen([TRACER, *words], stderr=subprocess.DEVNULL) as refused:  # its output exists
        assert refused.wait(SECONDS) == 1
    assert list(instances.glob(f"bufferscope-{refused.pid}-*")) == []


def test_auto__takes_tracefs_where_there_is_no_btf(pair, tmp_path):
    for hide, source in (("mount -t tmpfs none /sys/kernel/btf && ", "tracefs"), ("", "bpf")):
        (tmp_path / source).mkdir()
        prefix = ["unshare", "--mount", "sh", "-c", f'{hide}exec "$@"', "sh"]
        assert Trace(pair, "a", tmp_path / source, *PORTS, prefix=prefix).stop()[0]["source"] == source
