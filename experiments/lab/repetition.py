# SPDX-License-Identifier: MIT
"""One repetition, from empty namespaces to closed raw files. Runs inside a cell, which takes away whatever is left."""

from __future__ import annotations

import contextlib
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from controlplane.switch import SwitchError
from experiments import backlog, cost, disk, environment, host, topology
from experiments.cell import RUNTIME
from experiments.configure import POSTCARD_PORT, configure
from experiments.lab.real import Lab, Shown
from experiments.resolve import FIRST_CLIENT_PORT, FIRST_SERVER_PORT, Resolved
from experiments.sample import Sampler
from experiments.switches import SWITCH_DAEMONS, Switches, groups, layout
from experiments.traffic import LAST_CLIENT_PORT, Flow, Traffic, flows
from hosts import daemon
from hosts.traffic import idle_rtt
from lib import syscalls
from lib.errors import RunError
from runs import results

# In this order: the tracer's events and the switch's postcards have ended when what records them does.
# Of the two sinks and of other switches than the soft one, those that were never started have nothing to stop.
DAEMONS = ("tcp_trace", "iperf_servers", "traffic_sink", "collector", *SWITCH_DAEMONS, "softswitch")
STOP_S = 10.0
ABORT_S = 3.0  # for each program when the run has failed anyway
DRAIN_S = 5.0  # beyond the longest way through the switch
# TCP_DELACK_MAX of include/net/tcp.h. A receiver to which the RST of an ended flow never came, because the queue was
# full, sends its last ACK when this timer says so; the sender answers with another RST, a packet like any other.
DELAYED_ACK_S = 0.2
IDLE_RTT_SAMPLES = 20
TRACE_EVENT_BYTES = 256  # in a ring, with what the kernel puts around it
IDLE_RTT_INTERVAL_S = 0.01


def run(spec: Resolved, number: int, directory: Path, lab: Lab) -> None:
    """Runs repetition `number` in `lab` and leaves its raw files in `directory`. Raises RunError."""
    with disk.explained(directory, RUNTIME, Path(tempfile.gettempdir())):
        _run(spec, number, directory, lab)


def _run(spec: Resolved, number: int, directory: Path, lab: Lab) -> None:
    own_flows = flows(spec, number)
    phases: dict[str, float] = {}
    title = f"repetition {number} of {spec.reps}" if spec.reps > 1 else spec.name
    write_spec(spec, number, own_flows, directory)
    with lab.progress(title, spec) as progress, stopped_at_the_end():
        try:
            division = lab.claim_processors()
            progress.phase("making the network")
            with timed(phases, "network"):
                topology.build(spec.mtu_bytes, spec.switch, layout(spec))
            progress.phase("preparing hosts, starting programs")
            with timed(phases, "start"):
                lab.start_programs(variables(spec, directory), directory / "logs/ansible.log")
            lab.settle(division)
            with lab.switches(spec) as switches:
                with timed(phases, "configure"):
                    configure(switches, spec, own_flows)
                    about = {"hosts": environment.hosts(layout(spec).namespaces), "processors": division}
                    about["target_programs"] = environment.target_programs(spec.target)
                    world = lab.describe(switches.about()) | about
                progress.phase("measuring the idle path")
                with timed(phases, "idle_rtt"):
                    lab.align()
                    measure_idle_rtt(directory)
                world["load"] = {"before": environment.load()}
                with timed(phases, "traffic"):
                    if switches.line:
                        world["frames_passed"] = {"before": backlog.passed(layout(spec).namespaces)}
                    before = carry_traffic(switches, spec, number, directory, lab, progress)
                world["load"]["after"] = environment.load()
                progress.phase("draining the switch, closing files")
                with timed(phases, "drain"):
                    drain(switches, spec)
                    lab.align()
                    world["frames_lost_in_backlog"] = backlog.lost(layout(spec).namespaces)
                    if switches.line:
                        world["frames_passed"]["after"] = backlog.passed(layout(spec).namespaces)
                    results.write_json(directory / "switch.json", switches.state() | {"before": before})
            with timed(phases, "stop"):
                stop()
        except SwitchError as error:
            raise RunError(str(error), *stop_all(ABORT_S)) from None
    lab.record(directory, world | {"phases_s": phases})


@contextlib.contextmanager
def timed(phases: dict[str, float], name: str) -> Iterator[None]:
    """Notes how long its body took: the overhead of a run is published with it."""
    begin = time.monotonic()
    yield
    phases[name] = round(time.monotonic() - begin, 3)


@contextlib.contextmanager
def stopped_at_the_end() -> Iterator[None]:
    """However its body ends, the programs are asked to: then raw files end with a whole block."""
    try:
        yield
    except BaseException:
        stop_all(ABORT_S)
        raise


def write_spec(spec: Resolved, number: int, own_flows: list[Flow], directory: Path) -> None:
    content = spec.to_dict() | {
        "repetition": number,
        "extra_delays_ns": [flow.extra_delay_ns for flow in own_flows] if spec.rtt_spread_ns else [],
    }
    (directory / "spec.yaml").write_text(yaml.safe_dump(content, sort_keys=False))


def variables(spec: Resolved, directory: Path) -> dict[str, Any]:
    """What the playbooks are told. The options of the programs that depend on the experiment are here, not in roles."""
    last_server_port = FIRST_SERVER_PORT + len(spec.processes(1)) - 1
    window_rtt_share = (spec.rtt_ns + spec.rtt_spread_ns) / spec.rtt_ns
    window_packets = spec.bdp_packets * window_rtt_share + spec.buffer_packets
    return {
        "run_groups": ":".join(groups(spec)),
        "run_dir": str(directory),
        "logs_dir": str(directory / "logs"),
        "runtime_dir": str(RUNTIME),
        "spec": spec.to_dict(),
        "python": sys.executable,
        "checkout": str(host.CHECKOUT),
        "client_ports": f"{FIRST_CLIENT_PORT}-{LAST_CLIENT_PORT}",
        "postcard_port": POSTCARD_PORT,
        "collector_address": topology.COLLECTOR.ipv4,
        "collector_source": topology.POSTCARD_SOURCE,
        "tune_window_bytes": min(int(window_packets * spec.mtu_bytes) + 1, 256 << 20),
        "switch_frame_bytes": max(spec.mtu_bytes, topology.COLLECTOR_MTU_BYTES) + 18,
        "switch_executor": spec.switch,
        "switch_options": switch_options(spec),
        "collector_options": status_options(spec),
        "tracer_options": [
            *status_options(spec),
            "--ring-mib",
            str(trace_ring_mib(spec)),
            "--port",
            f"{FIRST_SERVER_PORT}-{last_server_port}",
        ],
    }


def trace_ring_mib(spec: Resolved) -> int:
    """Room for four times what the tracer finds when it looks, every 20 ms: at most an event for each packet."""
    events = 4 * spec.rate_bps / (8 * spec.wire_bytes) * 0.02
    needed_mib = events * TRACE_EVENT_BYTES / (1 << 20)
    return min(1024, max(16, 1 << math.ceil(math.log2(max(needed_mib, 1)))))


def status_options(spec: Resolved) -> list[str]:
    """How often collector and tracer say how far they are: each second, in virtual time twice between two looks."""
    every_ms = max(1, int(cost.tick_s(spec) * 500)) if spec.clock == "virtual" else 1000
    return ["--status", "--status-ms", str(every_ms)]


def switch_options(spec: Resolved) -> list[str]:
    options = ["--packets", str(spec.pool_packets), "--drop-user", "nobody"]
    return [*options, "--no-watch"] if spec.clock == "virtual" else options


def measure_idle_rtt(directory: Path) -> None:
    """The path's own round trip, through the same links and queue as the data, into idle_rtt.json."""
    with syscalls.in_network_namespace(topology.netns(topology.SENDER.name)):
        samples = idle_rtt.measure(topology.RECEIVER.ipv4, IDLE_RTT_SAMPLES, IDLE_RTT_INTERVAL_S, timeout_s=15)
    if not samples:
        raise RunError(f"the receiver answers none of {IDLE_RTT_SAMPLES} echo requests through the switch: see logs/")
    content = {
        "samples_ns": samples,
        "min_ns": min(samples),
        "median_ns": int(statistics.median(samples)),
        "sent": IDLE_RTT_SAMPLES,
        "lost": IDLE_RTT_SAMPLES - len(samples),
    }
    results.write_json(directory / "idle_rtt.json", content)


def carry_traffic(
    switches: Switches, spec: Resolved, number: int, directory: Path, lab: Lab, progress: Shown
) -> dict[str, Any]:
    """Starts the flows and watches over them until they end. Returns the switches' counters from before."""
    before = switches.before()
    switches.reset_lateness()
    sampler = Sampler(switches, directory / "logs")
    start_ns = lab.traffic_start_ns(spec)
    with Traffic(spec, number, directory, start_ns) as traffic:
        wait_s = max(lab.tick_s(spec), (start_ns - time.monotonic_ns()) / 1e9)  # there is nothing to look at before
        while not traffic.ended_within(wait_s):
            wait_s = lab.tick_s(spec)
            progress.sample(sampler.take())
            check_programs(directory)
    return before


def check_programs(directory: Path) -> None:
    """Raises RunError if one of the programs has ended by itself, or if the disk is about to be full."""
    ended = [name for name in DAEMONS if (RUNTIME / f"{name}.exit").exists()]
    if ended:
        raise RunError(*stop_all(ABORT_S) or [f"{', '.join(ended)} ended during the traffic: see logs/"])
    free = disk.free_bytes(directory)
    if free < disk.RESERVE_BYTES:
        raise RunError(
            f"{directory}: the disk is full ({free >> 20} MiB left, {disk.RESERVE_BYTES >> 20} MiB are kept to close "
            "files properly): what was recorded so far is readable; make room, or choose another disk with RESULTS="
        )


def drain(switches: Switches, spec: Resolved) -> None:
    """Waits until nothing is under way in the switches: an empty queue, and no frame for as long as a receiver may wait
    with an ACK and twice the longest way.
    """
    quiet_s = DELAYED_ACK_S + 2 * (spec.rtt_ns + spec.rtt_spread_ns) / 1e9
    deadline = time.monotonic() + quiet_s + DRAIN_S
    last_change, last = time.monotonic(), switches.frames_moved()
    while time.monotonic() - last_change < quiet_s or switches.queue_length():
        if time.monotonic() > deadline:
            return  # something still sends; the ledger will show whether that matters
        time.sleep(min(0.05, quiet_s / 4))
        now = switches.frames_moved()
        if now != last:
            last_change, last = time.monotonic(), now


def stop() -> None:
    """Ends the programs in order. Raises RunError with each one's last words if it did not end well."""
    errors = stop_all(STOP_S)
    if errors:
        raise RunError(*errors)


def stop_all(timeout_s: float) -> list[str]:
    """Ends every program that still runs, in order; returns what was wrong with them, once for each."""
    errors = []
    for name in DAEMONS:
        try:
            daemon.stop(name, RUNTIME, timeout_s)
        except (daemon.DaemonError, OSError) as error:
            errors.append(str(error))
        for file in RUNTIME.glob(f"{name}.*"):
            if file.suffix in (".json", ".exit"):
                file.unlink(missing_ok=True)  # said once; another stop has nothing to say
    return errors
