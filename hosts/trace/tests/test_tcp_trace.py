# SPDX-License-Identifier: MIT
"""The tracer: its records against the kernel's own counters of the same traffic, its losses, errors and clean-up."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
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
    check_exchange,
    counters,
    limit_queue,
    peer,
    serve,
    wait_until_closed,
)


@pytest.fixture(scope="module", autouse=True)
def _built():
    subprocess.run(["make", "-s", "-C", ROOT / "hosts"], check=True)


@pytest.mark.software
@pytest.mark.parametrize(
    ("to", "local", "remote"),
    [
        ("10.77.0.2", "::ffff:10.77.0.1", "::ffff:10.77.0.2"),
        ("fd77::2", "fd77::1", "fd77::2"),
        ("::ffff:10.77.0.2", "::ffff:10.77.0.1", "::ffff:10.77.0.2"),
    ],
)
def test_record__has_the_kernels_values_of_the_socket(pair, tmp_path, to, local, remote):
    serve(pair)
    trace = Trace(pair, "a", tmp_path)
    exchange = peer(pair, "a", "exchange", to, PORT)
    _, records = trace.stop()

    acks = records[(records["event"] == PROBE) & (records["socket_cookie"] == exchange["cookie"])]
    check_exchange(acks, exchange, local, remote)
    assert set(acks["netns_inode"]) == {Path(pair.path("a")).stat().st_ino}
    assert abs(time.monotonic_ns() - int(acks["mono_ns"].max())) < 600e9


@pytest.mark.software
def test_record__of_a_receiver_has_sequence_and_length_of_the_segment(pair, tmp_path):
    serve(pair)
    trace = Trace(pair, "b", tmp_path)
    peer(pair, "a", "exchange", "10.77.0.2", PORT)
    _, records = trace.stop()
    data = by_time(records[records["data_bytes"] > 0])
    assert list(data["data_bytes"]) == [1000, 1000, 1000]
    assert list(np.diff(data["event_seq"].astype(np.int64)) % 2**32) == [1000, 1000]


@pytest.mark.software
def test_trace__counts_what_the_namespace_counts_when_segments_are_lost(pair, tmp_path):
    limit_queue(pair)
    serve(pair)
    before = counters(pair, "a")
    trace = Trace(pair, "a", tmp_path)
    peer(pair, "a", "send", "10.77.0.2", PORT, 10_000_000)
    wait_until_closed(pair)
    summary, records = trace.stop()
    after = counters(pair, "a")
    grown = {name: after[name] - before[name] for name in after}

    assert grown["RetransSegs"] > 0, "nothing was lost: the test is void"
    # RetransSegs also counts retransmissions that then failed (retransmit_failures). For some events the kernel does
    # not call BPF (MOST_UNCALLED).
    uncalled = MOST_UNCALLED * grown["InSegs"]
    assert 0 <= grown["RetransSegs"] - summary["retransmit_events"] <= summary["retransmit_failures"] + uncalled
    retransmits = records[records["event"] == RETRANSMIT]
    assert len(retransmits) == summary["retransmit_events"] > 0
    assert np.all(retransmits["data_bytes"] > 0)
    # probe_events has all segments received, except those of the handshake and after a FIN, and uncalled ones
    assert 0 < grown["InSegs"] - grown["TCPBacklogCoalesce"] - summary["probe_events"] <= 6 + uncalled
    acks = records[records["event"] == PROBE]
    assert set(acks["ca_state"]) >= {0, 3}
    in_flight = sum(acks[name].astype(np.int64) for name in ("packets_out", "retrans_out"))
    in_flight -= sum(acks[name].astype(np.int64) for name in ("sacked_out", "lost_out"))
    assert in_flight.min() >= 0
    assert in_flight.max() > 5
    ordered = by_time(acks)["delivered_packets"].astype(np.int64)
    assert np.all(np.diff(ordered) >= 0)
    assert summary["bpf_ns_per_event"] > 0
    assert summary["first_mono_ns"] == records["mono_ns"].min()
    assert summary["last_mono_ns"] == records["mono_ns"].max()


@pytest.mark.software
def test_trace__other_namespaces_and_ports_are_left_out(pair, tmp_path):
    serve(pair, "b", PORT)
    serve(pair, "b", PORT + 1)
    serve(pair, "a", PORT)
    trace = Trace(pair, "a", tmp_path, "--port", f"{PORT}-{PORT}")
    peer(pair, "a", "exchange", "10.77.0.2", PORT)
    peer(pair, "a", "exchange", "10.77.0.2", PORT + 1)
    peer(pair, "b", "exchange", "10.77.0.1", PORT)
    peer(pair, "b", "exchange", "127.0.0.1", PORT)
    summary, records = trace.stop()
    assert set(records["dst_port"]) == {PORT}
    assert {address(record, "dst") for record in records} == {"::ffff:10.77.0.2"}
    assert len(records) == 3
    assert summary["other_sockets"] > 10


@pytest.mark.software
def test_trace__loses_nothing_of_many_connections(pair, tmp_path):
    before = counters(pair, "a")
    trace = Trace(pair, "a", tmp_path, "--status")
    sent = json.loads(pair.run("a", GENERATOR, "--seconds", 1, "--connections", 200, "--rate", 100_000).stdout)
    wait_until_closed(pair)
    summary, _ = trace.stop()
    after = counters(pair, "a")
    received = after["InSegs"] - before["InSegs"] - after["TCPBacklogCoalesce"] + before["TCPBacklogCoalesce"]
    assert summary["lost"] == 0
    assert sent["sends"] > 10_000
    assert summary["probe_events"] >= sent["sends"]
    # a handshake is 3 segments, closing 2 to 4
    assert 0 <= received - summary["probe_events"] <= 200 * 7 + MOST_UNCALLED * received


@pytest.mark.software
def test_trace__full_rings_are_counted(pair, tmp_path):
    trace = Trace(pair, "a", tmp_path, "--ring-mib", 1)
    os.kill(trace.child.pid, signal.SIGSTOP)
    pair.run("a", GENERATOR, "--seconds", 1, "--connections", 8, "--rate", 200_000)
    os.kill(trace.child.pid, signal.SIGCONT)
    summary, _ = trace.stop(status=2)
    assert summary["lost_in_rings"] > 0
    assert sum(summary["lost_per_cpu"]) == summary["lost_in_rings"] == summary["lost"]
    lost = f"{summary['lost']} of {summary['events']} events found no room in the rings: give a larger --ring-mib"
    assert lost in trace.errors
    assert trace.blocks()[-1].header["lost_records"] > 0


@pytest.mark.software
def test_trace__full_disk_keeps_whole_blocks_and_says_so(pair, tmp_path):
    trace = Trace(pair, "a", tmp_path, prefix=["prlimit", "--fsize=2000000"])
    pair.run("a", GENERATOR, "--seconds", 1, "--connections", 8, "--rate", 100_000)
    summary, _ = trace.stop(status=2)
    assert summary["write_errors"] > 0
    assert summary["lost"] == summary["lost_unwritten"] > 0
    assert summary["stored"] > 0
    assert f"to {trace.output}: File too large; these records are lost" in trace.errors


@pytest.mark.software
def test_trace__writes_a_partial_block_while_it_runs_and_ends_on_sigint(pair, tmp_path):
    serve(pair)
    trace = Trace(pair, "a", tmp_path)
    peer(pair, "a", "exchange", "10.77.0.2", PORT)
    wait_until(lambda: len(trace.records()) == 3, seconds=30)
    assert not trace.summary.exists()
    trace.stop(number=signal.SIGINT)


def loaded_programs() -> set[int]:
    bpftool = shutil.which("bpftool", path="/usr/sbin:/usr/bin:/sbin") or "bpftool"
    shown = subprocess.run([bpftool, "-j", "prog", "show"], capture_output=True, check=True)
    return {program["id"] for program in json.loads(shown.stdout)}


def programs_of(pid: int) -> set[int]:
    """Ids of the BPF programs that a process has open."""
    texts = [path.read_text() for path in Path(f"/proc/{pid}/fdinfo").iterdir()]
    words = [line.split() for text in texts for line in text.splitlines()]
    return {int(line[1]) for line in words if line and line[0] == "prog_id:"}


@pytest.mark.software
def test_trace__killed_leaves_no_program_and_a_readable_file(pair, tmp_path):
    serve(pair)
    trace = Trace(pair, "a", tmp_path)
    programs = programs_of(trace.child.pid)
    assert len(programs) == 4
    assert programs <= loaded_programs()
    peer(pair, "a", "exchange", "10.77.0.2", PORT)
    wait_until(lambda: len(trace.records()) == 3, seconds=30)
    trace.child.kill()
    trace.child.wait()
    wait_until(lambda: not programs & loaded_programs())  # freed after a grace period
    assert len(trace.records()) == 3


@pytest.mark.software
def test_trace__dropped_user_writes_both_files(pair, tmp_path):
    directory = Path("/tmp") / tmp_path.name.join(("hosts-", f"-{os.getpid()}"))
    directory.mkdir()
    os.chown(directory, NOBODY, NOBODY)
    try:
        serve(pair)
        trace = Trace(pair, "a", directory, "--drop-user", "nobody")
        status = Path(f"/proc/{trace.child.pid}/status").read_text()
        assert f"Uid:\t{NOBODY}\t{NOBODY}\t{NOBODY}\t{NOBODY}" in status
        assert "CapEff:\t0000000000000000" in status
        peer(pair, "a", "exchange", "10.77.0.2", PORT)
        summary, records = trace.stop()
        assert len(records) == 3
        assert summary["bpf_runs"] > 0
    finally:
        shutil.rmtree(directory)


def run_tracer(directory, *words, tracer=TRACER, **options):
    files = ["--output", directory / "t.bst", "--summary", directory / "t.json"]
    return subprocess.run(
        [tracer, *files, *words], capture_output=True, text=True, timeout=SECONDS, check=False, **options
    )


@pytest.mark.software
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--btf", "/nonexistent"],
            "/nonexistent: No such file or directory: boot a kernel built with CONFIG_DEBUG_INFO_BTF=y",
        ),
        (["--btf", "/etc/hostname"], "this is not BTF"),
        (["--btf", ROOT / "build/obj/hosts/tcp_trace.bpf.o"], "looking for tracepoint tcp:tcp_probe"),
        (["--netns", "/run/netns/hosts-none"], "opening network namespace /run/netns/hosts-none: No such file"),
        (["--netns", "/etc/hostname"], "opening network namespace /etc/hostname: it is not one"),
        (["--netns", "/proc/self/ns/mnt"], "opening network namespace /proc/self/ns/mnt: it is not one"),
        (["--port", "70000"], "--port '70000': give a whole number from 0 to 65535"),
        (["--port", "20-10"], "--port '10': give a whole number from 20 to 65535"),
        (["--source", "ftrace"], "--source 'ftrace': give auto, bpf or tracefs"),
        (
            ["--source", "tracefs", "--btf", "/etc/hostname"],
            "--btf is not for --source tracefs: leave one of them out",
        ),
        (["--ring-mib", "3"], "--ring-mib '3': give a power of two"),
        (["--drop-user", "no-such-user"], "--drop-user no-such-user: there is no such user"),
        (["rubbish"], "rubbish: not an option (tcp_trace --help lists them)"),
    ],
)
def test_trace__an_error_is_one_line_and_leaves_no_file(tmp_path, words, message):
    done = run_tracer(tmp_path, "--netns", "/proc/self/ns/net", *words)
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.software
def test_trace__without_privileges_says_what_it_needs(tmp_path):
    with tempfile.TemporaryDirectory() as everybody:  # the checkout may be below /root
        Path(everybody).chmod(0o755)
        done = run_tracer(tmp_path, "--netns", "/proc/self/ns/net", tracer=shutil.copy(TRACER, everybody), user=NOBODY)
    assert done.returncode == 1
    assert done.stderr.startswith("tcp_trace: loading the BPF programs: not permitted: run as root")
    assert done.stderr.count("\n") == 1


@pytest.mark.software
def test_trace__existing_result_stays(tmp_path):
    (tmp_path / "t.bst").write_bytes(b"earlier result")
    done = run_tracer(tmp_path, "--netns", "/proc/self/ns/net")
    assert done.returncode == 1
    assert "File exists; a result is never overwritten" in done.stderr
    assert (tmp_path / "t.bst").read_bytes() == b"earlier result"
    assert [path.name for path in tmp_path.iterdir()] == ["t.bst"]


def test_trace__missing_option_is_named(tmp_path):
    done = run_tracer(tmp_path)
    assert done.returncode == 1
    assert "--netns PATH is missing" in done.stderr


def test_trace__help_names_every_option():
    done = subprocess.run([TRACER, "--help"], capture_output=True, text=True, check=True)
    for option in (
        "output",
        "summary",
        "netns",
        "port",
        "ring-mib",
        "drop-user",
        "source",
        "btf",
        "status",
        "status-ms",
        "read-ms",
        "verbose",
    ):
        assert f"--{option}" in done.stdout
