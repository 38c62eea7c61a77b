# SPDX-License-Identifier: MIT
"""Runs a user's program as traffic: `python -m hosts.traffic.user_program PLAN.json RESULT_DIR`.

A server starts at once. When it listens on its port, this program prints "ready". At SIGTERM this program ends the
server. A client starts at a planned time, and gets SIGTERM if it still runs at the planned end. Both start from an
argument list, without a shell, as the plan's user and without capabilities. Their output goes to NAME.stdout and
NAME.stderr, each up to a limit. Output beyond the limit is read, counted and discarded, so that the program never
blocks on it. NAME.json says how the program ended. Standard library only.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from hosts import aligned_start
from hosts.traffic import sockets
from hosts.traffic.child import TERMINATE_SECONDS
from hosts.traffic.command import send
from hosts.traffic.outcome import StoppedError, TrafficError, planned_start, refuse_to_overwrite, write_json
from hosts.traffic.plan_reader import PlanError, record

SERVER, CLIENT = "server", "client"
STREAMS = ("stdout", "stderr")
MOST_ID = 2**32 - 2
LISTEN_S = 10.0  # from a server's start until it listens
POLL_S = 0.01
PIECE_BYTES = 1 << 16
LAST_WORDS_BYTES = 4096
EOF_S = 2.0  # for output that is left in a pipe when the program has ended

SUMMARY = (__doc__ or "").split("\n", 1)[0]


@dataclass(frozen=True)
class UserPlan:
    """`start_mono_ns` and `duration_ns` are for a client. `port`: a server must listen on this port. `alone`: no other
    program writes traffic.json, so this program does.
    """

    name: str
    argv: tuple[str, ...]
    directory: Path
    scratch: Path
    uid: int
    gid: int
    groups: tuple[int, ...]
    environment: dict[str, str]
    output_bytes: int
    port: int
    start_mono_ns: int = 0
    duration_ns: int = 0
    alone: bool = False

    def __str__(self) -> str:
        return f"the {self.name} ({' '.join(map(os.path.basename, self.argv[:2]))})"


def parse(content: Any) -> UserPlan:
    """The plan in an object read from JSON. Raises PlanError."""
    plan = record(UserPlan, content)
    # setpriv reads the last ID as "no change": the program would keep this process's rights.
    if plan.name not in (SERVER, CLIENT) or not plan.argv or max(plan.uid, plan.gid) > MOST_ID:
        raise PlanError(f"name {plan.name}, uid {plan.uid}, gid {plan.gid}: no plan of a user's program")
    return plan


class Output:
    """One output stream of the program: its pipe, and the file that has its first `limit` bytes."""

    def __init__(self, pipe: IO[bytes], path: Path, limit: int) -> None:
        self.pipe = pipe
        self.path = path
        self.file = path.open("xb")
        self.limit = limit
        self.bytes = 0

    def take(self) -> bool:
        """Reads a piece from the pipe, and stores it up to the limit. False at the end of the pipe."""
        data = os.read(self.pipe.fileno(), PIECE_BYTES)
        self.file.write(data[: max(0, self.limit - self.bytes)])
        self.file.flush()
        self.bytes += len(data)
        return bool(data)

    def describe(self) -> dict[str, Any]:
        return {"file": self.path.name, "bytes": self.bytes, "discarded_bytes": max(0, self.bytes - self.limit)}


class Running:
    """The user's program. `end` ends the program and everything that it started in its process group."""

    def __init__(self, plan: UserPlan, directory: Path) -> None:
        self.plan = plan
        self.started_mono_ns = time.monotonic_ns()
        plan.scratch.mkdir(mode=0o700, exist_ok=True)
        os.chown(plan.scratch, plan.uid, plan.gid)
        self.process = subprocess.Popen(
            [*_rights(plan), *plan.argv], cwd=plan.directory, env=plan.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        pipes = (self.process.stdout, self.process.stderr)
        self.outputs = [
            Output(pipe, directory / f"{plan.name}.{stream}", plan.output_bytes)
            for pipe, stream in zip(pipes, STREAMS)
            if pipe
        ]
        self.selector = selectors.DefaultSelector()
        for output in self.outputs:
            self.selector.register(output.pipe, selectors.EVENT_READ, output)
        self.pidfd = os.pidfd_open(self.process.pid)
        self.selector.register(self.pidfd, selectors.EVENT_READ)
        self.ended_mono_ns: int | None = None

    def watch(self, until: Callable[[], float]) -> bool:
        """Stores output until the program ends (true) or no time is left (false). `until` returns the seconds left."""
        while (left_s := until()) > 0:
            for key, _ in self.selector.select(left_s):
                if key.data is None:
                    self.ended_mono_ns = time.monotonic_ns()
                    self.process.wait()
                    return True
                if not key.data.take():
                    self.selector.unregister(key.data.pipe)
        return False

    def end(self) -> None:
        """Ends the process group: SIGTERM if the program still runs, then SIGKILL. Stores the rest of the output."""
        if self.ended_mono_ns is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGTERM)
            self.watch(_until(time.monotonic_ns() + int(TERMINATE_SECONDS * 1e9)))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.ended_mono_ns = self.ended_mono_ns or time.monotonic_ns()
        with contextlib.suppress(KeyError):
            self.selector.unregister(self.pidfd)
        deadline = _until(time.monotonic_ns() + int(EOF_S * 1e9))
        while self.selector.get_map() and (left_s := deadline()) > 0:
            for key, _ in self.selector.select(left_s):
                if not key.data.take():
                    self.selector.unregister(key.data.pipe)
        for output in self.outputs:
            output.file.close()

    def last_words(self) -> str:
        """The last line of the program's stderr, else of its stdout."""
        for output in reversed(self.outputs):
            with output.path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - LAST_WORDS_BYTES))
                lines = file.read().decode(errors="replace").split("\n")
            if words := [line.strip() for line in lines if line.strip()]:
                return words[-1]
        return "it said nothing"

    def how(self) -> str:
        status = self.process.returncode
        if status >= 0:
            return f"ended with status {status}"
        with contextlib.suppress(ValueError):
            return f"was killed by {signal.Signals(-status).name}"
        return f"was killed by signal {-status}"


def _rights(plan: UserPlan) -> list[str]:
    """setpriv(1) with its options: the plan's user, no capability, no gain from set-user-ID programs. The kernel kills
    the program when this process ends.
    """
    groups = ["--groups", ",".join(map(str, plan.groups))] if plan.groups else ["--clear-groups"]
    return [
        "setpriv", "--reuid", str(plan.uid), "--regid", str(plan.gid), *groups, "--bounding-set", "-all", "--inh-caps",
        "-all", "--no-new-privs", "--pdeathsig", "KILL", "--",
    ]  # fmt: skip


def _until(mono_ns: int) -> Callable[[], float]:
    return lambda: (mono_ns - time.monotonic_ns()) / 1e9


def serve(plan: UserPlan, running: Running) -> tuple[str, list[str]]:
    """(how the server's time ended, errors). Returns when the server fails, or at SIGTERM or SIGINT. Before the server
    listens on its port, a signal raises StoppedError instead.
    """
    deadline = _until(running.started_mono_ns + int(LISTEN_S * 1e9))
    while plan.port not in sockets.bound_ports():
        look = _until(time.monotonic_ns() + int(POLL_S * 1e9))
        if running.watch(lambda look=look: min(look(), deadline())):  # type: ignore[misc]
            return "itself", [
                f"{plan} {running.how()} before it listened on port {plan.port}, {_after(running)}: "
                f"{running.last_words()}; a server must stay in the foreground"
            ]
        if deadline() <= 0:
            return "stop", [
                f"{plan} has not bound port {plan.port} (TCP or UDP) within {LISTEN_S:g} s: {running.last_words()}; "
                "its command must contain {port} where it takes the port"
            ]
    try:
        print("ready", flush=True)
        if running.watch(lambda: 3600.0):
            if running.process.returncode:
                return "itself", [f"{plan} {running.how()} {_after(running)}: {running.last_words()}"]
            while True:  # a server may end by itself with status 0
                signal.pause()
    except StoppedError:
        return "stop" if running.ended_mono_ns is None else "itself", []
    raise AssertionError("unreachable")


def use(plan: UserPlan, running: Running) -> tuple[str, list[str]]:
    """(how the client's time ended, errors)."""
    try:
        if not running.watch(_until(running.started_mono_ns + plan.duration_ns)):
            return "duration", []
    except StoppedError as stopped:
        return "stop", [f"{plan}: ended by {stopped} before its time"]
    if not running.process.returncode:
        return "itself", []
    return "itself", [f"{plan} {running.how()} {_after(running)}: {running.last_words()}"]


def _after(running: Running) -> str:
    return f"after {((running.ended_mono_ns or time.monotonic_ns()) - running.started_mono_ns) / 1e9:.3f} s"


def run(plan: UserPlan, directory: Path) -> list[str]:
    """Runs the program and writes NAME.json, and traffic.json if `plan.alone`. Returns errors."""
    files = [f"{plan.name}.json", *(["traffic.json"] if plan.alone else [])]
    for name in files:
        refuse_to_overwrite(directory / name)
    start_ns = 0
    if plan.name == CLIENT:
        start_ns = planned_start(plan.start_mono_ns)
        aligned_start.sleep_until(start_ns)
    try:
        running = Running(plan, directory)
    except OSError as error:
        raise TrafficError(f"{plan} cannot be started in {plan.directory}: {error.strerror or error}") from error
    try:
        ended_by, errors = (use if plan.name == CLIENT else serve)(plan, running)
    finally:
        running.end()
    write_json(directory / files[0], describe(plan, running, ended_by, errors))
    if plan.alone:
        end_ns = min(running.ended_mono_ns or 0, start_ns + plan.duration_ns)
        write_json(directory / files[1], {
            "generator": "program", "start_mono_ns": start_ns, "end_mono_ns": end_ns, "flows": [], "groups": [],
            "errors": errors,
        })  # fmt: skip
    return errors


def describe(plan: UserPlan, running: Running, ended_by: str, errors: list[str]) -> dict[str, Any]:
    """The contents of NAME.json. `ended_by`: itself, duration (the client's time was over) or stop (anything else)."""
    status = running.process.returncode
    return {
        "argv": list(plan.argv),
        "started_mono_ns": running.started_mono_ns,
        "ended_mono_ns": running.ended_mono_ns,
        "ended_by": ended_by,
        "exit_status": status if status >= 0 else None,
        "signal": -status if status < 0 else None,
        "output": {output.path.suffix[1:]: output.describe() for output in running.outputs},
        "errors": errors,
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m hosts.traffic.user_program", description=SUMMARY)
    parser.add_argument("plan", type=Path, help="JSON: name, argv, directory, uid, gid, port, ... (hosts/README.md)")
    parser.add_argument("results", type=Path, help="directory for NAME.json and the program's output")
    return send(parser, parse, run, arguments)


if __name__ == "__main__":
    sys.exit(main())
