# SPDX-License-Identifier: MIT
"""The flows of a repetition, and the host program in the sender's namespace that makes them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from experiments import host, topology
from experiments.spec import MAX_FLOWS
from lib.errors import RunError
from runs import results

FIRST_SERVER_PORT = 5201
FIRST_FINITE_SERVER_PORT = 6001
# The roles reserve all of them: iperf3's control connections come from ephemeral ports, whose default range these
# overlap.
FIRST_CLIENT_PORT = 30_000
CLIENT_PORT_OFFSETS = 1_000  # of the first flow's port, drawn for each repetition
LAST_CLIENT_PORT = FIRST_CLIENT_PORT + CLIENT_PORT_OFFSETS + MAX_FLOWS - 2


class Flow(NamedTuple):
    """One flow, data direction."""

    src_addr: str
    dst_addr: str
    src_port: int
    dst_port: int
    extra_delay_ns: int


@dataclass(frozen=True)
class TrafficPlan:
    """The host program's name, the flows in the order of their numbers, and the program's options (hosts/traffic)."""

    program: str
    flows: tuple[Flow, ...]
    options: Mapping[str, Any]


class TrafficProgram:
    """The running host program. Entered as a context, it is ended when the context is."""

    def __init__(self, plan: TrafficPlan, directory: Path, start_mono_ns: int) -> None:
        self.log = directory / f"logs/{plan.program}.log"
        plan_file = directory / "plan.json"
        results.write_json(plan_file, {**plan.options, "start_mono_ns": start_mono_ns})
        command = [sys.executable, "-m", f"hosts.traffic.{plan.program}", str(plan_file), str(directory)]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                topology.inside(topology.SENDER.name, *command), cwd=host.CHECKOUT,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def __enter__(self) -> TrafficProgram:
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
        """Waits `seconds` at most. Raises RunError if the program ended with an error."""
        try:
            status = self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return False
        if status != 0:
            lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
            raise RunError(*(lines or [f"{self.log.stem} ended with status {status} and said nothing"]))
        return True
