# SPDX-License-Identifier: MIT
"""Tracing from tracefs on this machine's kernel: comparison with BPF on the same traffic, losses, and clean-up."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

from hosts.tests.patience import SECONDS, wait_until
from hosts.trace.tests.tracing import (
    GENERATOR,
    MOST_UNCALLED,
    NOBODY,
    PORT,
    PROBE,
    RETRANSMIT,
    ROOT,
    TRACER,
    Trace,
    address,
    by_time,
    counters,
    limit_queue,
    peer,
    serve,
    wait_until_closed,
)
from wire.wire import TCP_RECORD

pytestmark = pytest.mark.software
TRACEFS = ("--source", "tracefs")
PORTS = ("--port", f"{PORT}-{PORT}")
FIELDS = [name for name, _ in TCP_RECORD.fields]


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


def known(records, name):
    return records["unknown_fields"] >> np.uint64(FIELDS.index(name)) & np.uint64(1) == 0


def in_order(records, event, cpu):
    return by_time(records[(records["event"] == event) & (records["cpu"] == cpu)])


def same(left, right):
    """Whether two records of one event agree in all fields that both know."""
    both = ~(int(left["unknown_fields"]) | int(right["unknown_fields"]))
    names = [name for i, name in enumerate(FIELDS) if both >> i & 1 and name not in ("mono_ns", "unknown_fields")]
    return all(left[name] == right[name] for name in names)


def matching_pairs(few, many):
    """Pairs each record of `few` with one of `many` that agrees. Both are in order. A record of `few` without a
    partner fails the test.

    An event that interrupts another event between the calls of the two tracers comes first in one trace and second in
    the other. So the last 8 records that were skipped are compared again.
    """
    skipped: list[np.void] = []
    rest, pairs = iter(many), []
    for record in few:
        index = next((at for at, other in enumerate(skipped) if same(record, other)), None)
        while index is None:
            other = next(rest, None)
            assert other is not None, record
            skipped = [*skipped[-7:], other]
            index = len(skipped) - 1 if same(record, other) else None
        pairs.append((record, skipped.pop(index)))
    return pairs


def test_tracefs__sees_what_bpf_sees_and_what_the_namespace_counts(pair, tmp_path):
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

    apart_ns, pairs = [], 0
    for cpu in np.unique(tracefs["cpu"]):
        for event in (PROBE, RETRANSMIT):
            matches = matching_pairs(in_order(bpf, event, cpu), in_order(tracefs, event, cpu))
            apart_ns += [abs(int(left["mono_ns"]) - int(right["mono_ns"])) for left, right in matches]
            pairs += len(matches)
    assert pairs == len(bpf)
    assert len(bpf) > (1 - MOST_UNCALLED) * len(tracefs)
    assert np.median(apart_ns) < 50_000  # a wrong clock or unit would differ by far more

    probes = tracefs[tracefs["event"] == PROBE]
    for name in ("socket_cookie", "cwnd_packets", "snd_una", "snd_nxt", "srtt_us", "data_bytes"):
        assert known(probes, name).all()
    assert known(probes, "ssthresh_packets").mean() > 0.5
    assert not known(tracefs, "packets_out").any()
    for name in FIELDS:
        assert not tracefs[name][~known(tracefs, name)].any(), name
    assert "packets_out" in summary["unknown_fields"]
    assert "cwnd_packets" in summary["retransmit_unknown_fields"]


def test_tracefs__loses_nothing_of_many_events(pair, tmp_path):
    trace = Trace(pair, "a", tmp_path, *TRACEFS, "--status")
    sent = json.loads(pair.run("a", GENERATOR, "--seconds", 1, "--connections", 50, "--rate", 50_000).stdout)
    wait_until_closed(pair)
    summary, records = trace.stop()
    assert summary["lost"] == summary["damaged_events"] == summary["damaged_pages"] == 0
    over_loopback = records[records["src_addr_lo"] == records["dst_addr_lo"]]
    assert len(over_loopback) >= sent["sends"] > 10_000


def test_tracefs__full_rings_are_counted(pair, tmp_path):
    trace = Trace(pair, "a", tmp_path, *TRACEFS, "--ring-mib", 1)
    os.kill(trace.child.pid, signal.SIGSTOP)
    pair.run("a", GENERATOR, "--seconds", 1, "--connections", 8, "--rate", 100_000)
    os.kill(trace.child.pid, signal.SIGCONT)
    summary, _ = trace.stop(status=2)
    assert summary["lost_in_rings"] > 0
    assert sum(summary["lost_per_cpu"]) == summary["lost_in_rings"] == summary["lost"]
    lost = f"{summary['lost']} of {summary['events']} events found no room in the rings: give a larger --ring-mib"
    assert lost in trace.errors
    assert trace.blocks()[-1].header["lost_records"] > 0


def test_tracefs__other_ports_and_addresses_are_left_out(pair, tmp_path):
    serve(pair, "b", PORT)
    serve(pair, "b", PORT + 1)
    serve(pair, "a", PORT)
    trace = Trace(pair, "a", tmp_path, *TRACEFS, *PORTS)
    peer(pair, "a", "exchange", "10.77.0.2", PORT)
    peer(pair, "a", "exchange", "10.77.0.2", PORT + 1)
    peer(pair, "b", "exchange", "10.77.0.1", PORT)
    summary, records = trace.stop()
    assert {(address(record, "src"), record["dst_port"]) for record in records} == {("::ffff:10.77.0.1", PORT)}
    assert len(records) == 3
    assert summary["other_sockets"] >= 3


def test_tracefs__no_instance_stays_after_the_end(pair, tmp_path, instances):
    trace = Trace(pair, "a", tmp_path, *TRACEFS)
    instance = instance_of(instances, trace)
    assert "[mono]" in (instance / "trace_clock").read_text()
    trace.stop()
    assert not instance.exists()


def test_tracefs__no_instance_stays_after_an_error(pair, tmp_path, instances):
    (tmp_path / "t.bst").write_bytes(b"earlier result")
    words = ["--output", tmp_path / "t.bst", "--summary", tmp_path / "t.json", "--netns", pair.path("a"), *TRACEFS]
    with subprocess.Popen([TRACER, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        _, errors = child.communicate(timeout=SECONDS)
    assert child.returncode == 1
    assert "File exists; a result is never overwritten" in errors
    assert list(instances.glob(f"bufferscope-{child.pid}-*")) == []


def test_tracefs__no_instance_stays_after_sigkill(pair, tmp_path, instances):
    trace = Trace(pair, "a", tmp_path, *TRACEFS)
    instance = instance_of(instances, trace)
    trace.child.kill()
    trace.child.wait()
    wait_until(lambda: not instance.exists())


def test_tracefs__next_start_removes_the_instance_of_a_killed_tracer_and_remover(pair, tmp_path, instances):
    for name in ("killed", "running", "next"):
        (tmp_path / name).mkdir()
    killed = Trace(pair, "a", tmp_path / "killed", *TRACEFS)
    running = Trace(pair, "a", tmp_path / "running", *TRACEFS)
    left, used = instance_of(instances, killed), instance_of(instances, running)
    os.kill(remover_of(killed), signal.SIGKILL)
    killed.child.kill()
    killed.child.wait()
    following = Trace(pair, "a", tmp_path / "next", *TRACEFS)
    assert not left.exists()
    assert used.exists()
    running.stop()
    following.stop()
    assert left.name in following.errors


def test_tracefs__a_dropped_user_keeps_reading_and_the_instance_is_removed(pair, tmp_path, instances):
    with tempfile.TemporaryDirectory() as directory:
        os.chown(directory, NOBODY, NOBODY)
        serve(pair)
        trace = Trace(pair, "a", Path(directory), *TRACEFS, *PORTS, "--drop-user", "nobody")
        instance = instance_of(instances, trace)
        assert f"Uid:\t{NOBODY}\t{NOBODY}" in Path(f"/proc/{trace.child.pid}/status").read_text()
        peer(pair, "a", "exchange", "10.77.0.2", PORT)
        _, records = trace.stop()
        assert len(records) == 3
        assert not instance.exists()


def test_tracefs__without_privileges_says_what_it_needs(tmp_path):
    with tempfile.TemporaryDirectory() as everybody:  # the checkout may be below /root
        Path(everybody).chmod(0o755)
        words = ["--output", tmp_path / "o", "--summary", tmp_path / "s", "--netns", "/proc/self/ns/net", *TRACEFS]
        tracer = shutil.copy(TRACER, everybody)
        done = subprocess.run([tracer, *words], capture_output=True, text=True, check=False, user=NOBODY)
    assert done.returncode == 1
    assert done.stderr == "tcp_trace: opening tracefs: not permitted: run as root\n"


@pytest.mark.parametrize(("hidden", "source"), [(True, "tracefs"), (False, "bpf")])
def test_auto__takes_tracefs_where_there_is_no_btf(pair, tmp_path, hidden, source):
    hide = "mount -t tmpfs none /sys/kernel/btf && " if hidden else ""
    prefix = ["unshare", "--mount", "sh", "-c", f'{hide}exec "$@"', "sh"]
    trace = Trace(pair, "a", tmp_path, *PORTS, prefix=prefix)
    assert trace.stop()[0]["source"] == source
