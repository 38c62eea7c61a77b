# SPDX-License-Identifier: MIT
"""Holds a testbed host for one run: `python -m hosts.lease --run-dir D --state-dir S`.

Prints `ready`, then reads standard input. Any byte is a heartbeat of the runner. The byte END says that the runner
starts nothing more on this host. At the end of the input, or after SILENCE_S without a byte, the lease stops the run's
programs on this host, restores the host's settings and removes D. So a run leaves nothing on a host, even if its runner
was killed or is unreachable. Without END the lease continues to clean up for LINGER_S, because a task that the runner
had sent may start late. Last, the lease prints {"problems": [...]}.
--neighbour adds a permanent neighbour entry for another host until the end of the lease: the switch forwards no
broadcasts, so ARP gets no answer. Standard library only (Python 3.9 or later).
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from hosts import daemon
from hosts.tune.commands import TuneError, run

SILENCE_S = 20.0
LINGER_S = 10.0
END = b"."
STOP_S = 10.0
TERM_S = 2.0  # from SIGTERM to SIGKILL, for programs that hosts.daemon does not stop
LOCK = "lease.lock"
RUN = re.compile("[0-9a-f]{16}")  # the name of a run's directory
RUNTIME = "runtime"  # in the run's directory: the files of hosts.daemon
UNDO = {"tune-*.json": "hosts.tune.tune", "tc-delay-*.json": "hosts.tune.delay"}  # files in the state directory
CLOSED = ("fin-wait-1", "fin-wait-2", "closing", "close-wait", "last-ack", "time-wait")
EXIT_REFUSED = 1


class Neighbour(NamedTuple):
    """Another host in the experiment's network."""

    interface: str
    address: str
    mac: str

    def learn(self) -> list[str]:
        """Makes the entry permanent. Returns the `ip neigh` words that restore the former state. Raises TuneError."""
        known = json.loads(run("ip", "-j", "neigh", "show", self.address, "dev", self.interface) or "[]")
        run("ip", "neigh", "replace", self.address, "lladdr", self.mac, "nud", "permanent", "dev", self.interface)
        former = [entry["lladdr"] for entry in known if "PERMANENT" in entry.get("state", [])]
        if former:
            return ["replace", self.address, "lladdr", former[0], "nud", "permanent", "dev", self.interface]
        return ["del", self.address, "dev", self.interface]

    def forget_closed(self) -> None:
        """Ends connections to this neighbour that no program has open. Such connections occupy their ports for a minute
        or two, and the next run with the same seed needs these ports. Does nothing while a program holds a half-closed
        connection to the neighbour, or if the kernel cannot end connections (CONFIG_INET_DIAG_DESTROY).
        """
        these = ["--tcp", *(word for state in CLOSED for word in ("state", state)), "dst", self.address]
        with contextlib.suppress(TuneError):
            owned = [
                line for line in run("ss", "--no-header", "--extended", *these).splitlines() if " ino:0 " not in line
            ]
            if not owned:
                run("ss", "--kill", *these)


def neighbour(text: str) -> Neighbour:
    """For argparse: INTERFACE,ADDRESS,MAC."""
    words = text.split(",")
    if len(words) != 3 or not all(words):
        raise argparse.ArgumentTypeError(f"{text!r} is not INTERFACE,ADDRESS,MAC")
    return Neighbour(*words)


def held(state_dir: Path) -> int | None:
    """A file descriptor that holds the host's lock; None if another run holds the lock."""
    state_dir.mkdir(parents=True, exist_ok=True)
    lock = os.open(state_dir / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def wait(signs: int, silence_s: float = SILENCE_S) -> bool:
    """Waits for the end of the input; returns whether END came before it. `silence_s` without a byte: returns False."""
    ended = False
    while select.select([signs], [], [], silence_s)[0]:
        came = os.read(signs, 4096)
        if not came:
            return ended
        ended |= END in came
    return False


def others(*directories: Path) -> list[int]:
    """Other processes that have a path in these directories as an argument, or write a log there (even a deleted log).
    After daemon.stop, only processes are left that hosts.daemon did not start, or whose pid files are gone.
    """
    pids = []
    inside = tuple(os.fsencode(directory) + b"/" for directory in directories)
    for process in Path("/proc").glob("[0-9]*"):
        paths: list[bytes] = []
        with contextlib.suppress(OSError):  # the process has ended, or is another user's
            paths += (process / "cmdline").read_bytes().split(b"\0")
            paths += [os.fsencode((process / "fd" / number).readlink()) for number in ("1", "2")]
        if int(process.name) != os.getpid() and any(path.startswith(inside) for path in paths):
            pids.append(int(process.name))
    return pids


def end_others(*directories: Path) -> None:
    """Sends SIGTERM to the processes of `others`, and SIGKILL to those that run TERM_S later."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in others(*directories):
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        deadline = time.monotonic() + TERM_S
        while others(*directories) and time.monotonic() < deadline:
            time.sleep(0.05)


def stop_all(run_dir: Path, state_dir: Path) -> list[str]:
    """Ends every process of a run. Tries twice, because a task of a killed runner may start another process."""
    runtime, still = run_dir / RUNTIME, []
    for _ in range(2):
        for file in sorted(runtime.glob("*.pid")):
            with contextlib.suppress(daemon.DaemonError, OSError, ValueError):  # the exit status does not matter here
                daemon.stop(file.stem, runtime, STOP_S)
        end_others(run_dir, state_dir)
        # A keeper that was killed leaves its pid file, so the file alone does not show that the program runs.
        still = [each["name"] for each in daemon.status(runtime)["daemons"] if each["running"]]
        if not still and not others(run_dir, state_dir):
            return []
    return [f"{name} cannot be stopped" for name in still] or ["processes of the run cannot be ended"]


def undo(file: Path, module: str) -> list[str]:
    """Restores the settings of a state file. Returns the problem, if there is one."""
    done = subprocess.run(
        [sys.executable, "-m", module, "undo", "--state", str(file)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    return [f"{file.name}: {reason}: restore the settings by hand"] if done.returncode else []


def clean(run_dir: Path, state_dir: Path, neighbours: list[list[str]]) -> list[str]:
    """Stops the run's programs, restores settings, removes the run's files. `neighbours` are words of `ip neigh`.
    Returns a line for each problem.
    """
    problems = stop_all(run_dir, state_dir)
    for words in neighbours:
        try:
            run("ip", "neigh", *words)
        except TuneError as error:
            problems.append(str(error))
    for pattern, module in UNDO.items():
        for file in sorted(state_dir.glob(pattern)):
            problems += undo(file, module)
    shutil.rmtree(run_dir, ignore_errors=True)
    return [*problems, f"{run_dir} cannot be removed"] if run_dir.exists() else problems


def clean_stragglers(run_dir: Path, state_dir: Path) -> list[str]:
    """For LINGER_S, cleans again whenever a task has started something. Returns a line for each problem."""
    problems = []
    deadline = time.monotonic() + LINGER_S
    while time.monotonic() < deadline:
        changed = any(next(state_dir.glob(pattern), None) for pattern in UNDO)
        if changed or run_dir.exists() or others(run_dir, state_dir):
            problems += clean(run_dir, state_dir, [])
        time.sleep(1.0 if problems else 0.2)
    return list(dict.fromkeys(problems))


def clean_earlier(run_dir: Path, state_dir: Path) -> list[str]:
    """Cleans up after earlier runs whose lease was killed. Only for the owner of the host's lock."""
    problems = []
    for earlier in sorted(run_dir.parent.glob("*")):
        if earlier != run_dir and RUN.fullmatch(earlier.name) and earlier.is_dir():
            problems += clean(earlier, state_dir, [])
    return problems


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m hosts.lease", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--neighbour", type=neighbour, action="append", default=[], metavar="INTERFACE,ADDRESS,MAC")
    options = parser.parse_args(arguments)
    lock = held(options.state_dir)
    if lock is None:
        print("another experiment runs on this host: wait until it has ended", file=sys.stderr)
        return EXIT_REFUSED
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)  # only the end of the input, or silence, ends the lease
    former: list[list[str]] = []
    ended = False
    problems = clean_earlier(options.run_dir, options.state_dir)
    try:
        for entry in options.neighbour:
            former.append(entry.learn())
        print("ready", flush=True)
        ended = wait(sys.stdin.fileno())
    except TuneError as error:
        problems.append(str(error))
    problems += clean(options.run_dir, options.state_dir, former)
    if not ended:
        problems += clean_stragglers(options.run_dir, options.state_dir)
    for entry in options.neighbour:
        entry.forget_closed()
    with contextlib.suppress(OSError):  # the runner may be gone
        print(json.dumps({"problems": problems}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
