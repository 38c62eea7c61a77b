# SPDX-License-Identifier: MIT
"""The flows of a repetition, and the host programs that make them: our program in the sender's namespace, and the
programs of the user.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from experiments.machine import host
from experiments.spec import topology
from hosts.ending import ended_within
from hosts.traffic.user_program import CLIENT
from lib import files
from lib.errors import RunError

MAX_FLOWS = 10_000
FIRST_SERVER_PORT = 5201
FIRST_FINITE_SERVER_PORT = 6001
# The roles reserve all client ports: the client ports overlap the default range of ephemeral ports, from which the
# kernel gives ports to iperf3's control connections.
FIRST_CLIENT_PORT = 30_000
CLIENT_PORT_OFFSETS = 1_000  # each repetition draws the first flow's port from this many ports
LAST_CLIENT_PORT = FIRST_CLIENT_PORT + CLIENT_PORT_OFFSETS + MAX_FLOWS - 2


class Flow(NamedTuple):
    """One flow in the data direction."""

    src_addr: str
    dst_addr: str
    src_port: int
    dst_port: int
    extra_delay_ns: int  # in addition to the delay of the bottleneck's link
    access_bps: int = 0  # rate of an access link of its own; 0: none
    access_link: int = 0  # number of a shared access link, from 1; 0: none


class PlannedProgram(NamedTuple):
    """A user's own program: its host, and its plan (experiments/spec/programs.py)."""

    host: str
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.options["name"])


@dataclass(frozen=True)
class TrafficPlan:
    """`program` is the host program's name ('': none), and `options` are its options (hosts/traffic). `flows` are in
    the order of their numbers. `user` are the user's programs.
    """

    program: str
    flows: tuple[Flow, ...]
    options: Mapping[str, Any]
    user: tuple[PlannedProgram, ...] = ()


def command(module: str, plan: Mapping[str, Any], directory: Path, plan_name: str = "plan.json") -> list[str]:
    """Writes a plan of hosts/traffic to `directory`. Returns the command that carries the plan out."""
    plan_file = directory / plan_name
    files.write_json(plan_file, dict(plan))
    return [sys.executable, "-m", f"hosts.traffic.{module}", str(plan_file), str(directory)]


def start_all(
    plan: TrafficPlan, directory: Path, start_mono_ns: int, user: Mapping[str, Any]
) -> Iterator[TrafficProgram]:
    """Starts the host program, and the user's client with the user and group IDs `user`."""
    start = {"start_mono_ns": start_mono_ns}
    if plan.program:
        words = command(plan.program, {**plan.options, **start}, directory)
        yield TrafficProgram(plan.program, topology.SENDER.name, words, directory)
    for program in plan.user:
        if program.name == CLIENT:
            words = command("user_program", {**program.options, **user, **start}, directory, "logs/client-plan.json")
            yield TrafficProgram(CLIENT, program.host, words, directory)


class TrafficProgram:
    """A running host program. As a context manager it terminates the program at the end."""

    def __init__(self, name: str, where: str, command: list[str], directory: Path) -> None:
        """Starts `command` in the namespace of the host `where`."""
        self.log = directory / f"logs/{name}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                topology.inside(where, *command), cwd=host.CHECKOUT,
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
        """Waits `seconds` at most. Returns whether the program has ended. Raises RunError if it ended with an error."""
        if not ended_within(self.process, seconds):
            return False
        status = self.process.returncode
        if status != 0:
            lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
            raise RunError(*(lines or [f"{self.log.stem} ended with status {status} and said nothing"]))
        return True
