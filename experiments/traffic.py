# SPDX-License-Identifier: MIT
"""The flows of a repetition: their plan, and the host program in the sender's namespace that carries it out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from experiments import host, topology
from experiments.resolve import FIRST_CLIENT_PORT, Resolved
from lib.errors import RunError
from runs import results

PROGRAM = {"long": "long_flows", "open-loop": "open_loop"}
LAST_CLIENT_PORT = FIRST_CLIENT_PORT + 2047


class Flow(NamedTuple):
    """One flow, data direction."""

    src_addr: str
    dst_addr: str
    src_port: int
    dst_port: int
    extra_delay_ns: int


def flows(spec: Resolved, repetition: int) -> list[Flow]:
    """Every flow of the repetition, in the order of their numbers."""
    ports = [
        (process.first_client_port + stream, process.server_port)
        for process in spec.processes(repetition)
        for stream in range(process.flows)
    ]
    return [
        Flow(topology.SENDER.ipv4, topology.RECEIVER.ipv4, src_port, dst_port, delay_ns)
        for (src_port, dst_port), delay_ns in zip(ports, spec.extra_delays_ns(repetition), strict=True)
    ]


def plan(spec: Resolved, repetition: int, start_mono_ns: int) -> dict[str, Any]:
    """What the host program, PROGRAM[spec.traffic], is told."""
    return (
        long_plan(spec, repetition, start_mono_ns) if spec.groups else open_loop_plan(spec, repetition, start_mono_ns)
    )


def open_loop_plan(spec: Resolved, repetition: int, start_mono_ns: int) -> dict[str, Any]:
    """What hosts.traffic.open_loop is told."""
    (process,) = spec.processes(repetition)
    assert spec.load is not None  # resolve sets it with this traffic
    return {
        "start_mono_ns": start_mono_ns,
        "duration_ns": spec.traffic_ns,
        "server": topology.RECEIVER.ipv4,
        "server_port": process.server_port,
        "first_client_port": process.first_client_port,
        "flows": process.flows,
        "rate_bps": spec.rate_bps,
        "load_ppm": round(spec.load * 1e6),
        "mtu_bytes": spec.mtu_bytes,
        "seed": traffic_seed(spec, repetition),
        "arrivals": spec.arrivals,
        "sizes": spec.sizes,
    }


def traffic_seed(spec: Resolved, repetition: int) -> int:
    """What the traffic programs draw with: another one for each SEED and repetition."""
    return spec.seed << 16 | repetition


def long_plan(spec: Resolved, repetition: int, start_mono_ns: int) -> dict[str, Any]:
    """What hosts.traffic.long_flows is told."""
    if spec.generator == "epoll":
        own: dict[str, Any] = {
            "duration_ns": spec.warmup_ns + spec.duration_ns,
            "start_spread_ns": spec.start_spread_ns,
            "seed": traffic_seed(spec, repetition),
            "connect_interval_ns": spec.connect_interval_ns,
            # So that the last packets measured get their ACKs while somebody listens to them.
            "drain_ns": spec.longest_rtt_ns,
        }
    else:
        own = {"seconds": spec.traffic_ns // 10**9}
    return {
        "generator": spec.generator,
        "start_mono_ns": start_mono_ns,
        **own,
        "server": topology.RECEIVER.ipv4,
        "groups": [
            {
                "cc": process.cc,
                "flows": process.flows,
                "server_port": process.server_port,
                "first_client_port": process.first_client_port,
            }
            for process in spec.processes(repetition)
        ],
        "ecn": spec.mode == "ecn",
    }


class Traffic:
    """The running host program. Entered as a context, it is ended when the context is."""

    def __init__(self, spec: Resolved, repetition: int, directory: Path, start_mono_ns: int) -> None:
        program = PROGRAM[spec.traffic]
        self.log = directory / f"logs/{program}.log"
        plan_file = directory / "plan.json"
        results.write_json(plan_file, plan(spec, repetition, start_mono_ns))
        command = [sys.executable, "-m", f"hosts.traffic.{program}", str(plan_file), str(directory)]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                topology.inside(topology.SENDER.name, *command), cwd=host.CHECKOUT,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def __enter__(self) -> Traffic:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def ended_within(self, seconds: float) -> bool:
        """Waits that long at most. Raises RunError if the program ended with an error."""
        try:
            status = self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return False
        if status != 0:
            lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
            raise RunError(*(lines or [f"{self.log.stem} ended with status {status} and said nothing"]))
        return True
