# SPDX-License-Identifier: MIT
"""One repetition, from empty namespaces to closed raw files. The cell or virtual machine in which the repetition runs
removes everything afterwards.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from controlplane.switch import SwitchError
from experiments.lab.kernel import Kernel, ProgressDisplay
from experiments.lab.run_state import RunStateReader
from experiments.machine import interface_losses
from experiments.machine.cell import RUNTIME
from experiments.plan.configure import SWITCH_ID, configure
from experiments.plan.repetition_plan import RunPlan
from experiments.plan.switches import SWITCH_DAEMONS, Switches, in_the_lab
from experiments.setup import environment, tcp_memory
from experiments.spec import disk, topology
from experiments.spec.topology import RECEIVER, SENDER
from experiments.spec.traffic import PlannedProgram, command, start_all
from hosts import daemon
from hosts.traffic import idle_rtt, user_program
from lib import files, syscalls
from lib.errors import InputError, RunError
from runs.names import RATE_DIRECTORY, SPEC_FILE

# The order in which daemons are stopped. If nothing failed, the switches have been drained before and stop_sinks has
# ended the sinks, so nothing is left to record. A congestion control is removed last, after its sockets. Stopping a
# daemon that was never started does nothing: a run has at most one of the two sinks, and may have another switch.
RECORDER = "recorder"
SINKS = ("iperf_servers", "traffic_sink")
DAEMONS = (
    "tcp_trace", *SINKS, "collector", RECORDER, *SWITCH_DAEMONS, "softswitch", "congestion_control",
)  # fmt: skip
USER_SERVER = "user_server"  # the server of TRAFFIC=program
STOP_S = 10.0
ABORT_S = 3.0  # for each program, if the run has failed already
DRAIN_S = 5.0  # most time that wait_until_idle waits beyond the quiet time
# TCP_DELACK_MAX of include/net/tcp.h. If the full queue dropped the RST of an ended flow, the receiver sends its last
# ACK when this timer expires. The sender answers with another RST, and the ledger must count this packet, too.
DELAYED_ACK_S = 0.2
IDLE_RTT_SAMPLES = 20
NO_PATH = (
    "does P4 forward to both hosts? give its TABLES, and the ADDRESSES, MACs and PORTS in them (docs/your-program.md)"
)
IDLE_RTT_INTERVAL_S = 0.01


def run(plan: RunPlan, directory: Path, kernel: Kernel) -> None:
    """Runs a repetition in `kernel` and leaves its raw files in `directory`. Raises RunError."""
    with disk.explained(directory, RUNTIME, Path(tempfile.gettempdir())):
        _run(plan, directory, kernel)


def _run(plan: RunPlan, directory: Path, kernel: Kernel) -> None:
    phases: dict[str, float] = {}
    namespaces = plan.network.namespaces
    with kernel.progress() as progress, stopped_at_the_end():
        try:
            division = kernel.claim_processors()
            progress.phase("making the network")
            with timed(phases, "network"):
                topology.build(plan.network)
            progress.phase("preparing hosts, starting programs")
            with timed(phases, "start"):
                kernel.start_programs(directory)
                if plan.recorded_ns is not None:
                    start_recorder(plan.network.switch, directory)
            kernel.settle(division)
            program = directory / plan.setup["p4_json"] if "p4_json" in plan.setup else None
            with in_the_lab(
                plan.target,
                plan.network.switch,
                kernel.control_socket,
                program,
                plan.settings.ports,
                plan.settings.is_watched_by_core,
            ) as switches:
                with timed(phases, "configure"):
                    configure(switches, plan.settings)
                    about = {"hosts": environment.hosts(namespaces), "processors": division}
                    about["target_programs"] = environment.target_programs(plan.target)
                    world = kernel.describe(switches.about()) | about
                progress.phase("measuring the idle path")
                with timed(phases, "idle_rtt"):
                    kernel.align()
                    measure_idle_rtt(directory, NO_PATH if plan.settings.program else "see logs/")
                world["load"] = {"before": environment.load()}
                with timed(phases, "traffic"):
                    if switches.line:
                        world["frames_passed"] = {"before": interface_losses.passed(namespaces)}
                    before = carry_traffic(switches, plan, directory, kernel, progress)
                world["load"]["after"] = environment.load()
                progress.phase("draining the switch, closing files")
                with timed(phases, "drain"):
                    wait_until_idle(switches, plan.durations.round_trip_ns)
                    stop_sinks(switches, plan.durations.round_trip_ns, kernel)
                    time.sleep((plan.recorded_ns or 0) / 1e9)  # then a frame that has not come out was dropped
                    kernel.align()
                    world["frames_lost_in_backlog"] = interface_losses.lost(namespaces)
                    world["tcp_memory_pressures"] = tcp_memory.pressures((SENDER.name, RECEIVER.name))
                    if switches.line:
                        world["frames_passed"]["after"] = interface_losses.passed(namespaces)
                    state = switches.state(plan.settings.parameter_tables)
                    files.write_json(directory / "switch.json", state | {"before": before})
            with timed(phases, "stop"):
                stop()
        except SwitchError as error:
            raise RunError(str(error), *stop_all(ABORT_S)) from None
    kernel.record(directory, world | {"phases_s": phases})


def start_recorder(namespace: str, directory: Path) -> None:
    """Records the frames into and out of the switch (hosts/recorder.py). Raises RunError."""
    interfaces = ["--into", SENDER.switch_interface, "--out-of", RECEIVER.switch_interface]
    words = [sys.executable, "-m", "hosts.recorder", *interfaces, "--directory", str(directory)]
    try:
        daemon.start(RECORDER, topology.inside(namespace, *words), RUNTIME, directory / "logs")
    except daemon.DaemonError as error:
        raise RunError(str(error)) from None


def match_frames(plan: RunPlan, directory: Path) -> None:
    """Makes the postcards of a switch whose frames were recorded. Raises RunError."""
    if plan.recorded_ns is None:
        return
    from analysis.matching import recorded

    ports = plan.settings.ports
    try:
        recorded.make_postcards(directory, recorded.Watched(SWITCH_ID, ports.sender, ports.receiver, plan.recorded_ns))
    except (InputError, OSError) as error:
        raise RunError(f"the packets before and behind the switch cannot be matched: {error}") from None


@contextlib.contextmanager
def timed(phases: dict[str, float], name: str) -> Iterator[None]:
    """Stores the duration of its body in `phases`: a run publishes its overhead."""
    begin = time.monotonic()
    yield
    phases[name] = round(time.monotonic() - begin, 3)


@contextlib.contextmanager
def stopped_at_the_end() -> Iterator[None]:
    """If the body fails, stops the programs in order, so that raw files end with a whole block."""
    try:
        yield
    except BaseException:
        stop_all(ABORT_S)
        raise


def write_spec(plan: RunPlan, directory: Path) -> None:
    import yaml

    from experiments.spec import congestion, own_p4

    (directory / SPEC_FILE).write_text(yaml.safe_dump(dict(plan.stored_spec), sort_keys=False))
    write_files(plan.congestion_sources, directory / congestion.DIRECTORY)
    write_files(plan.rate_trace, directory / RATE_DIRECTORY)
    write_files(plan.p4, directory / own_p4.DIRECTORY)


def write_files(files: Iterable[Mapping[str, str]], directory: Path) -> None:
    """Writes files that the user gave (fields of a model.experiment.Source) into a directory, which is made."""
    for file in files:
        directory.mkdir(exist_ok=True)
        (directory / file["file"]).write_text(file["text"])


def measure_idle_rtt(directory: Path, hint: str = "see logs/") -> None:
    """Measures the RTT of the idle path, through the links and queue of the data, into idle_rtt.json. `hint`: what to
    do if there is no path.
    """
    with syscalls.in_network_namespace(topology.netns(topology.SENDER.name)):
        echoes = idle_rtt.measure(topology.RECEIVER.ipv4, IDLE_RTT_SAMPLES, IDLE_RTT_INTERVAL_S, timeout_s=15)
    if not echoes:
        raise RunError(f"the receiver answers none of {IDLE_RTT_SAMPLES} echo requests through the switch: {hint}")
    files.write_json(directory / "idle_rtt.json", idle_rtt.document(echoes, IDLE_RTT_SAMPLES))


def carry_traffic(
    switches: Switches, run_plan: RunPlan, directory: Path, kernel: Kernel, progress: ProgressDisplay
) -> dict[str, Any]:
    """Starts the flows and monitors the run until they end. Returns the switches' counters from before the traffic."""
    plan = run_plan.traffic
    before = switches.before()
    switches.reset_lateness()
    sampler = RunStateReader(switches, directory / "logs")
    user = kernel.user()._asdict()
    for program in plan.user:
        if program.name == user_program.SERVER:
            progress.phase(f"starting the {program.name}")
            kernel.align()
            start_server(program, user, directory)
    start_ns = kernel.traffic_start_ns()
    if run_plan.settings.rate_schedule:
        switches.scheduled().start_schedule(switches.ports.receiver, start_ns + run_plan.settings.schedule_after_ns)
    with contextlib.ExitStack() as running, with_the_servers_words():
        if plan.user:
            progress.phase("starting the client")
        senders = [running.enter_context(sender) for sender in start_all(plan, directory, start_ns, user)]
        wait_s = max(kernel.tick_s, (start_ns - time.monotonic_ns()) / 1e9)  # nothing to sample before the start
        for sender in senders:
            while not sender.ended_within(wait_s):
                wait_s = kernel.tick_s
                progress.show_state(sampler.take())
                check_programs(directory, (USER_SERVER, *DAEMONS) if plan.user else DAEMONS)
    if plan.user and (errors := stop_program(USER_SERVER, STOP_S)):
        raise RunError(*errors)
    return before


def start_server(program: PlannedProgram, user: dict[str, Any], directory: Path) -> None:
    """Returns when the user's server listens. Raises RunError."""
    words = command("user_program", {**program.options, **user}, directory, "logs/server-plan.json")
    try:
        daemon.start(
            USER_SERVER, topology.inside(program.host, *words), RUNTIME, directory / "logs",
            timeout_s=user_program.LISTEN_S + STOP_S,
        )  # fmt: skip
    except daemon.DaemonError as error:
        raise RunError(str(error)) from None


@contextlib.contextmanager
def with_the_servers_words() -> Iterator[None]:
    """If the traffic fails, the error of the user's server is reported, too: it may be the cause."""
    try:
        yield
    except RunError as error:
        raise RunError(*error.lines, *stop_program(USER_SERVER, ABORT_S)) from None


def check_programs(directory: Path, names: tuple[str, ...]) -> None:
    """Raises RunError if one of the programs has ended by itself, or if the disk is about to be full."""
    # One listing: in virtual time each call that fails, such as stat(2) of a missing file, delays the flows by 1 us.
    files = {path.name for path in RUNTIME.iterdir()}
    ended = [name for name in names if f"{name}.exit" in files]
    if ended:
        raise RunError(*stop_all(ABORT_S) or [f"{', '.join(ended)} ended during the traffic: see logs/"])
    free = disk.free_bytes(directory)
    if free < disk.RESERVE_BYTES:
        raise RunError(
            f"{directory}: the disk is full ({free >> 20} MiB left, {disk.RESERVE_BYTES >> 20} MiB are kept to close "
            "files properly): what was recorded so far is readable; make room, or choose another disk with RESULTS="
        )


def wait_until_idle(switches: Switches, round_trip_ns: int) -> None:
    """Waits until the queue is empty and no frame has passed the switches for two round trips and the longest delay of
    an ACK.
    """
    quiet_s = DELAYED_ACK_S + 2 * round_trip_ns / 1e9
    deadline = time.monotonic() + quiet_s + DRAIN_S
    last_change, last = time.monotonic(), switches.frames_moved()
    while time.monotonic() - last_change < quiet_s or switches.queue_length():
        if time.monotonic() > deadline:
            return  # a host still sends; the ledger shows whether that matters
        time.sleep(min(0.05, quiet_s / 4))
        now = switches.frames_moved()
        if now != last:
            last_change, last = time.monotonic(), now


def stop_sinks(switches: Switches, round_trip_ns: int, kernel: Kernel) -> None:
    """Ends the receiving programs while the switches still count, and silences the hosts: on a busy machine a
    connection may send its FIN again at any later time, and a frame that came after the counters were read would have
    a postcard that the ledger does not expect. If the queue dropped the RST of a flow, the flow's connection is still
    open at the receiver. Our sink resets this connection, iperf3 closes it; the drain waits for these frames. Raises
    RunError.
    """
    if errors := [error for name in SINKS for error in stop_program(name, STOP_S)]:
        raise RunError(*errors)
    kernel.silence_hosts()
    wait_until_idle(switches, round_trip_ns)


def stop() -> None:
    """Ends the programs in order. Raises RunError with the last message of each program that failed."""
    errors = stop_all(STOP_S)
    if errors:
        raise RunError(*errors)


def stop_all(timeout_s: float) -> list[str]:
    """Ends every program that still runs, in order; returns an error line for each program that failed."""
    return [error for name in (USER_SERVER, *DAEMONS) for error in stop_program(name, timeout_s)]


def stop_program(name: str, timeout_s: float) -> list[str]:
    """Ends a program if it still runs; returns an error line if the program failed."""
    errors = []
    try:
        daemon.stop(name, RUNTIME, timeout_s)
    except (daemon.DaemonError, OSError) as error:
        errors.append(str(error))
    for file in RUNTIME.glob(f"{name}.*"):
        if file.suffix in (".json", ".exit"):
            file.unlink(missing_ok=True)  # another stop must not report the error again
    return errors
