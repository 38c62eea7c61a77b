# SPDX-License-Identifier: MIT
"""The tracer, with BPF and with tracefs: its records against the kernel's own values, its losses, errors and files."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from hosts.tests.patience import wait_until
from hosts.tests.processes import privileges_of, refused
from hosts.trace.tests.tracing import (
    GENERATOR,
    NOBODY,
    PORT,
    PROBE,
    ROOT,
    TRACER,
    Trace,
    address,
    by_time,
    check_exchange,
    peer,
    serve,
    wait_until_closed,
)
from wire.wire import BLOCK, STORED_TCP_RECORD

pytestmark = pytest.mark.software
RECORDS_A_BLOCK = BLOCK.const["BLOCK_MAX_PAYLOAD_BYTES"] // STORED_TCP_RECORD.itemsize
BOTH = pytest.mark.parametrize("source", ["bpf", "tracefs"])
ADDRESSES = (
    ("10.77.0.2", "::ffff:10.77.0.1", "::ffff:10.77.0.2"),
    ("fd77::2", "fd77::1", "fd77::2"),
    ("::ffff:10.77.0.2", "::ffff:10.77.0.1", "::ffff:10.77.0.2"),
)


@pytest.fixture(scope="module", autouse=True)
def _built():
    subprocess.run(["make", "-s", "-C", ROOT / "hosts"], check=True)


@BOTH
def test_record__has_the_kernels_values_of_the_socket_and_the_receivers_segments(pair, tmp_path, source):
    serve(pair)
    for side in "ab":
        (tmp_path / side).mkdir()
    sender, receiver = (Trace(pair, side, tmp_path / side, "--source", source) for side in "ab")
    begin_ns = time.monotonic_ns()
    exchanges = [peer(pair, "a", "exchange", to, PORT) for to, *_ in ADDRESSES]
    wait_until(lambda: len(sender.records()) == 9, seconds=30)  # partial blocks are written while the tracer runs
    assert not sender.summary.exists()
    _, records = sender.stop(number=signal.SIGINT)
    for (_, local, remote), exchange in zip(ADDRESSES, exchanges, strict=True):
        acks = records[(records["event"] == PROBE) & (records["socket_cookie"] == exchange["cookie"])]
        check_exchange(acks, exchange, local, remote)
    assert begin_ns < records["mono_ns"].min() < records["mono_ns"].max() < time.monotonic_ns()

    _, received = receiver.stop()
    data = by_time(received[received["data_bytes"] > 0])
    assert list(data["data_bytes"]) == [1000] * 9
    if source == "bpf":
        assert not records["unknown_fields"].any()
        assert set(records["netns_inode"]) == {Path(pair.path("a")).stat().st_ino}
        first = data[data["dst_addr_lo"] == data["dst_addr_lo"][0]][:3]
        assert list(np.diff(first["event_seq"].astype(np.int64)) % 2**32) == [1000, 1000]


@BOTH
def test_record__in_a_time_namespace_has_the_clock_of_the_programs_there(pair, tmp_path, source):
    serve(pair)
    ahead_s = 100_000
    enter = f"""
import os, sys
from lib import syscalls
syscalls.unshare(0x80)  # CLONE_NEWTIME
with open("/proc/self/timens_offsets", "w") as offsets:
    offsets.write("monotonic {ahead_s} 0")
os.execv(sys.argv[1], sys.argv[1:])
"""
    trace = Trace(pair, "a", tmp_path, "--source", source, prefix=(sys.executable, "-c", enter))
    peer(pair, "a", "exchange", "10.77.0.2", PORT)
    _, records = trace.stop()
    assert abs(time.monotonic_ns() / 1e9 + ahead_s - int(records["mono_ns"].max()) / 1e9) < 600


@BOTH
def test_trace__other_namespaces_and_ports_are_left_out(pair, tmp_path, source):
    serve(pair, "b", PORT)
    serve(pair, "b", PORT + 1)
    serve(pair, "a", PORT)
    trace = Trace(pair, "a", tmp_path, "--source", source, "--port", f"{PORT}-{PORT}")
    peer(pair, "a", "exchange", "10.77.0.2", PORT)
    peer(pair, "a", "exchange", "10.77.0.2", PORT + 1)
    peer(pair, "b", "exchange", "10.77.0.1", PORT)
    summary, records = trace.stop()
    assert {(address(record, "src"), record["dst_port"]) for record in records} == {("::ffff:10.77.0.1", PORT)}
    assert len(records) == 3
    assert summary["other_sockets"] >= 3


@BOTH
def test_trace__loses_nothing_of_many_connections(pair, tmp_path, source):
    trace = Trace(pair, "a", tmp_path, "--source", source, "--status")
    sent = json.loads(pair.run("a", GENERATOR, "--seconds", 1, "--connections", 100, "--rate", 50_000).stdout)
    wait_until_closed(pair)
    summary, _ = trace.stop()
    assert [summary.get(name, 0) for name in ("lost", "damaged_events", "damaged_pages")] == [0, 0, 0]
    assert summary["probe_events"] >= sent["sends"] > 10_000


@BOTH
def test_trace__full_rings_are_counted(pair, tmp_path, source):
    trace = Trace(pair, "a", tmp_path, "--source", source, "--ring-mib", 1)
    os.kill(trace.child.pid, signal.SIGSTOP)
    pair.run("a", GENERATOR, "--seconds", 1, "--connections", 8, "--rate", 200_000)
    os.kill(trace.child.pid, signal.SIGCONT)
    summary, _ = trace.stop(status=2)
    assert sum(summary["lost_per_cpu"]) == summary["lost_in_rings"] == summary["lost"] > 0
    assert f"{summary['lost']} of {summary['events']} events found no room" in trace.errors
    assert "--ring-mib" in trace.errors
    assert trace.blocks()[-1].header["lost_records"] > 0


def test_trace__full_disk_costs_whole_blocks_and_is_counted(pair, tmp_path):
    """A limit of the file's size takes the place of a full disk, and is raised later."""

    def generate():
        pair.run("a", GENERATOR, "--seconds", 1, "--connections", 8, "--rate", 50_000)

    trace = Trace(pair, "a", tmp_path)
    generate()
    resource.prlimit(trace.child.pid, resource.RLIMIT_FSIZE, (trace.output.stat().st_size + 500_000, 1 << 40))
    generate()
    resource.prlimit(trace.child.pid, resource.RLIMIT_FSIZE, (1 << 40, 1 << 40))
    generate()
    summary, _ = trace.stop(status=2)
    assert summary["write_errors"] > 0
    assert summary["lost"] == summary["lost_unwritten"] > 0
    assert f"to {trace.output}: File too large; these records are lost" in trace.errors
    blocks = trace.blocks()
    assert sum(BLOCK.length + len(block.payload) for block in blocks) == trace.output.stat().st_size, "a block is torn"
    starts = [block.header["first_record"] for block in blocks]
    gaps = [later - start - block.header["record_count"] for start, later, block in zip(starts, starts[1:], blocks)]
    assert (sum(gaps), min(gaps)) == (summary["lost_unwritten"], 0)
    assert max(block.header["record_count"] for block in blocks) == RECORDS_A_BLOCK


def loaded_programs() -> set[int]:
    bpftool = shutil.which("bpftool", path="/usr/sbin:/usr/bin:/sbin") or "bpftool"
    shown = subprocess.run([bpftool, "-j", "prog", "show"], capture_output=True, check=True)
    return {program["id"] for program in json.loads(shown.stdout)}


def programs_of(pid: int) -> set[int]:
    """Ids of the BPF programs that a process has open."""
    texts = [path.read_text() for path in Path(f"/proc/{pid}/fdinfo").iterdir()]
    words = [line.split() for text in texts for line in text.splitlines()]
    return {int(line[1]) for line in words if line and line[0] == "prog_id:"}


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


@pytest.mark.parametrize("owner", [0, NOBODY])
@BOTH
def test_trace__keeps_no_capability_and_becomes_the_owner_of_its_directory(pair, source, owner):
    with tempfile.TemporaryDirectory() as directory:
        os.chown(directory, owner, owner)
        serve(pair)
        trace = Trace(pair, "a", Path(directory), "--source", source, "--port", f"{PORT}-{PORT}")
        assert privileges_of(trace.child.pid) == ({owner}, 0)
        peer(pair, "a", "exchange", "10.77.0.2", PORT)
        assert len(trace.stop()[1]) == 3


def failure(directory, *words, tracer=TRACER, **options) -> str:
    """The one line of a tracer that cannot start."""
    files = ["--output", directory / "t.bst", "--summary", directory / "t.json"]
    return refused(tracer, *files, *words, **options)


def test_trace__an_error_is_one_line_and_leaves_no_file(tmp_path):
    for words, named in (
        (["--btf", "/nonexistent"], "CONFIG_DEBUG_INFO_BTF=y"),
        (["--btf", "/etc/hostname"], "this is not BTF"),
        (["--btf", ROOT / "build/obj/hosts/tcp_trace.bpf.o"], "tracepoint tcp:tcp_probe"),
        (["--netns", "/run/netns/hosts-none"], "network namespace /run/netns/hosts-none"),
        (["--netns", "/etc/hostname"], "network namespace /etc/hostname"),
        (["--port", "70000"], "--port"),
        (["--source", "ftrace"], "--source"),
        (["--source", "tracefs", "--btf", "/etc/hostname"], "--btf"),
        (["--ring-mib", "3"], "--ring-mib"),
        (["rubbish"], "rubbish"),
    ):
        assert named in failure(tmp_path, "--netns", "/proc/self/ns/net", *words), words
    assert "--netns" in failure(tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "t.bst").write_bytes(b"earlier result")
    assert "a result is never overwritten" in failure(tmp_path, "--netns", "/proc/self/ns/net")
    assert (tmp_path / "t.bst").read_bytes() == b"earlier result"
    assert [path.name for path in tmp_path.iterdir()] == ["t.bst"]


@BOTH
def test_trace__without_privileges_says_what_it_needs(tmp_path, source):
    with tempfile.TemporaryDirectory() as everybody:  # the checkout may be below /root
        Path(everybody).chmod(0o755)
        tracer, words = shutil.copy(TRACER, everybody), ["--netns", "/proc/self/ns/net", "--source", source]
        assert "not permitted: run as root" in failure(tmp_path, *words, tracer=tracer, user=NOBODY)
