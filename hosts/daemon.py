# SPDX-License-Identifier: MIT
"""Starts and stops the programs of a run so that they outlive the task that started them.

A keeper process in its own session starts the program, waits for it and records its exit status, so no status is lost.
The keeper removes the pid file before the kernel can reuse the pid, so the pid file can be trusted. If the keeper
is killed, the pid file stays and the exit status is unknown. Standard library only, because this module also runs on
remote hosts. No shell is involved.

Files in RUNTIME_DIR, for a program called NAME: NAME.pid (exists while the program runs), NAME.json (arguments and
pids), NAME.exit (JSON: how it ended), NAME.lock. Both output streams are appended to LOGS_DIR/NAME.log.

    python -m hosts.daemon start --name N --runtime-dir D --logs-dir L [--ready LINE] [--timeout S] -- PROGRAM ARG...
    python -m hosts.daemon stop --name N --runtime-dir D [--timeout S]
    python -m hosts.daemon status --runtime-dir D

Each command prints one JSON object; `changed` is true if the command did something. On failure it prints one line on
stderr and exits with 1.
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
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from hosts import aligned_start, full_disk

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
POLL_MS = 10  # between two searches for the ready line in the log
KILL_WAIT_S = 2.0  # a process that survives SIGKILL this long hangs in the kernel
LAST_WORDS_BYTES = 4096


class DaemonError(Exception):
    """One sentence for the user: the failed action, its object, the reason."""


class DaemonFiles:
    """The files with one program's state."""

    def __init__(self, name: str, runtime_dir: Path) -> None:
        if not NAME.fullmatch(name):
            raise DaemonError(
                f"daemon name {name!r}: allowed are 1 to 64 letters, digits, '_', '-' and '.', not beginning "
                "with '-' or '.'"
            )
        self.name = name
        self.pid = runtime_dir / f"{name}.pid"
        self.state = runtime_dir / f"{name}.json"
        self.exit = runtime_dir / f"{name}.exit"
        self.lock = runtime_dir / f"{name}.lock"


def start(
    name: str, argv: list[str], runtime_dir: Path, logs_dir: Path, ready: str | None = "ready", timeout_s: float = 10.0
) -> dict[str, Any]:
    """Starts argv and returns once the log has a line `ready` (None: once the program runs).

    Idempotent: a program that already runs with the same argv is left alone. Another argv is an error, because two
    programs would write to the same files.
    """
    files = DaemonFiles(name, runtime_dir)
    program = shutil.which(argv[0])
    if program is None:
        raise DaemonError(f"{name}: cannot start {argv[0]}: no such executable file on this host (deploy first)")
    for directory in (runtime_dir, logs_dir):
        directory.mkdir(parents=True, exist_ok=True)
    with _locked(files):
        state = _read(files.state)
        if state and _is_running(files, state):
            if state["argv"] != argv:
                raise DaemonError(f"{name} already runs (pid {state['pid']}) with other arguments: stop it first")
            return {"changed": False, "name": name, "pid": state["pid"]}
        for stale in (files.exit, files.pid, files.state):
            stale.unlink(missing_ok=True)
        log = logs_dir / f"{name}.log"
        log_offset = log.stat().st_size if log.exists() else 0
        begin_ns = time.monotonic_ns()
        state = _launch(files, [program, *argv[1:]], argv, log)
        if ready is not None:
            try:
                _wait_until_ready(files, state, log, log_offset, ready, timeout_s)
            except DaemonError:
                # The raised error already reports the failure, so a later stop must find no trace of the program.
                files.exit.unlink(missing_ok=True)
                files.state.unlink(missing_ok=True)
                raise
        ready_ms = (time.monotonic_ns() - begin_ns) // 1_000_000
        return {"changed": True, "name": name, "pid": state["pid"], "ready_after_ms": ready_ms}


def stop(name: str, runtime_dir: Path, timeout_s: float = 10.0) -> dict[str, Any]:
    """Sends SIGTERM, and SIGKILL after timeout_s. Raises DaemonError after SIGKILL, an early end, or a non-zero or
    unknown exit status.
    """
    files = DaemonFiles(name, runtime_dir)
    if not runtime_dir.is_dir():
        return {"changed": False, "name": name, "state": "never started"}
    with _locked(files):
        state = _read(files.state)
        if state is None:
            return {"changed": False, "name": name, "state": "never started"}
        changed = _is_running(files, state)
        killed = False
        if changed:
            _write(files.state, {**state, "stop_requested": True})
            _signal(state["pid"], state["start_ticks"], signal.SIGTERM)
            killed = not _wait_for_end(state, timeout_s)
            if killed:
                _kill_group(state["pid"])
                _wait_for_end(state, KILL_WAIT_S)
        left_over = _kill_group(state["pid"]) if changed and not killed else False
        ended = _read(files.exit)
        result = {
            "changed": changed,
            "name": name,
            "state": "stopped",
            "exit_status": ended["exit_status"] if ended else None,
            "signal": ended["signal"] if ended else None,
            "children_killed": left_over,
        }
        _check_end(state, ended, killed, changed, timeout_s)
        return result


def status(runtime_dir: Path) -> dict[str, Any]:
    """Every program that was started with this runtime_dir: whether it runs, or how it ended."""
    daemons: list[dict[str, Any]] = []
    for path in sorted(runtime_dir.glob("*.pid")) + sorted(runtime_dir.glob("*.exit")):
        files = DaemonFiles(path.stem, runtime_dir)
        state = _read(files.state) or {}
        running = bool(state) and _is_running(files, state)
        if not any(entry["name"] == path.stem for entry in daemons):
            daemons.append({"name": path.stem, "running": running, "pid": state.get("pid"), "end": _read(files.exit)})
    return {"changed": False, "daemons": daemons}


# ---- the keeper -------------------------------------------------------------------------------------------------


def _launch(files: DaemonFiles, command: list[str], argv: list[str], log: Path) -> dict[str, Any]:
    """Forks the keeper and returns the state it wrote once the program runs."""
    read_end, write_end = os.pipe()
    keeper_pid = os.fork()
    if keeper_pid == 0:
        os.close(read_end)
        _keep(files, command, argv, log, write_end)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        report = json.loads(pipe.read() or b'{"error": "its keeper died"}')
    if "error" in report:
        os.waitpid(keeper_pid, 0)
        raise DaemonError(f"{files.name}: cannot start {argv[0]}: {report['error']}")
    return report


def _keep(files: DaemonFiles, command: list[str], argv: list[str], log: Path, report_fd: int) -> NoReturn:
    """The keeper: starts the program, reports to its parent, waits, records the exit. Never returns."""
    code = 1
    try:
        os.setsid()
        _leave_callers_files(log, report_fd)
        aligned_start.wait_for_whole()
        try:
            # The child inherits the keeper's stdin (/dev/null), stdout and stderr (the log).
            child = subprocess.Popen(command, start_new_session=True)
            signal.signal(signal.SIGTERM, lambda *_: child.send_signal(signal.SIGTERM))
            state = {
                "name": files.name,
                "pid": child.pid,
                "start_ticks": _start_ticks(child.pid),
                "keeper_pid": os.getpid(),
                "keeper_start_ticks": _start_ticks(os.getpid()),
                "argv": argv,
                "log": str(log),
                "started_mono_ns": time.monotonic_ns(),
                "stop_requested": False,
            }
            _write(files.state, state)
            _write_text(files.pid, f"{child.pid}\n")
        except OSError as error:
            os.write(report_fd, json.dumps({"error": error.strerror or str(error)}).encode())
            raise
        os.write(report_fd, json.dumps(state).encode())
        os.close(report_fd)
        # WNOWAIT leaves a zombie, so the kernel cannot reuse the pid before the pid file is gone.
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        ended_mono_ns = time.monotonic_ns()
        files.pid.unlink(missing_ok=True)
        code = child.wait()
        by_signal = signal.Signals(-code).name if code < 0 else None
        end = {"exit_status": code if code >= 0 else None, "signal": by_signal, "ended_mono_ns": ended_mono_ns}
        _write(files.exit, {"name": files.name, "pid": child.pid, **end})
        code = 0
    except BaseException as error:
        with contextlib.suppress(OSError):
            print(f"hosts.daemon: keeper of {files.name}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def _leave_callers_files(log: Path, keep_fd: int) -> None:
    """Closes inherited files: the starting task's pipes must close when that task ends, not when the program does."""
    null = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    for fd in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
        if fd > 2 and fd != keep_fd:
            with contextlib.suppress(OSError):
                os.close(fd)


# ---- waiting ----------------------------------------------------------------------------------------------------


def _wait_until_ready(
    files: DaemonFiles, state: dict[str, Any], log: Path, offset: int, ready: str, timeout_s: float
) -> None:
    deadline = time.monotonic() + timeout_s
    ready_line = ready.encode()
    with log.open("rb") as lines:
        lines.seek(offset)
        unfinished = b""
        while True:
            ended = _wait_for_end(state, POLL_MS / 1000)
            unfinished += lines.read()
            *whole_lines, unfinished = unfinished.split(b"\n")
            if ready_line in whole_lines:
                return
            if ended:
                end = _read(files.exit)
                raise DaemonError(f"{files.name} did not start ({_how(end)}): {_last_words(log, offset)}")
            if time.monotonic() > deadline:
                _kill_group(state["pid"])
                _wait_for_end(state, KILL_WAIT_S)
                raise DaemonError(
                    f"{files.name} was not ready after {timeout_s:g} s and was killed: {_last_words(log, offset)}"
                )


def _wait_for_end(state: dict[str, Any], timeout_s: float) -> bool:
    """True once the program has ended and its keeper has recorded the exit."""
    deadline = time.monotonic() + timeout_s
    for pid, ticks in ((state["keeper_pid"], state["keeper_start_ticks"]), (state["pid"], state["start_ticks"])):
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            if _start_ticks(pid) != ticks:
                continue
            poller = select.poll()
            poller.register(pidfd, select.POLLIN)
            if not poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
                return False
        finally:
            os.close(pidfd)
    return True


def _check_end(
    state: dict[str, Any], ended: dict[str, Any] | None, killed: bool, running_before: bool, timeout_s: float
) -> None:
    name, words = state["name"], _last_words(Path(state["log"]), 0)
    if killed:
        raise DaemonError(f"{name} did not end within {timeout_s:g} s of SIGTERM and was killed: {words}")
    if ended is None:
        raise DaemonError(f"{name}: its exit status is unknown, since its keeper was killed: {words}")
    if not running_before and not state["stop_requested"]:
        raise DaemonError(f"{name} had ended by itself before it was stopped ({_how(ended)}): {words}")
    if ended["exit_status"] != 0:
        raise DaemonError(f"{name} ended badly ({_how(ended)}): {words}")


def _how(end: dict[str, Any] | None) -> str:
    if end is None:
        return "exit status unknown"
    return f"exit status {end['exit_status']}" if end["signal"] is None else f"killed by {end['signal']}"


def _last_words(log: Path, offset: int) -> str:
    """The last line that the program printed, or a hint to its log. Names the log's file system if it is full."""
    try:
        with log.open("rb") as lines:
            size = lines.seek(0, os.SEEK_END)
            lines.seek(max(offset, size - LAST_WORDS_BYTES))
            written = lines.read().decode(errors="replace").split("\n")
    except OSError as error:
        return f"its log {log} cannot be read ({error.strerror})"
    full = full_disk.full(log.parent)
    messages = [line.strip() for line in written if line.strip() and line.strip() != "ready"]
    return (messages[-1] if messages else f"it said nothing in {log}") + (f"; {full}" if full else "")


# ---- processes and files ----------------------------------------------------------------------------------------


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on (proc(5), field 3); [] if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _start_ticks(pid: int) -> int | None:
    """Start time in clock ticks since boot (field 22): pid and start time identify a process uniquely."""
    fields = _stat(pid)
    return int(fields[19]) if fields else None


def _is_running(files: DaemonFiles, state: dict[str, Any]) -> bool:
    """A killed keeper leaves the pid file, so the file alone proves nothing. A zombie counts as ended."""
    fields = _stat(state["pid"])
    return files.pid.exists() and bool(fields) and fields[0] != "Z" and int(fields[19]) == state["start_ticks"]


def _signal(pid: int, start_ticks: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        pidfd = os.pidfd_open(pid)
        try:
            if _start_ticks(pid) == start_ticks:
                signal.pidfd_send_signal(pidfd, number)
        finally:
            os.close(pidfd)


def _kill_group(pid: int) -> bool:
    """Kills the rest of the program's process group (the program leads its own session). False: there was none."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


@contextlib.contextmanager
def _locked(files: DaemonFiles) -> Iterator[None]:
    with files.lock.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise DaemonError(f"{path} is not readable as JSON ({error}): remove it once nothing runs") from error


def _write(path: Path, value: dict[str, Any]) -> None:
    _write_text(path, json.dumps(value) + "\n")


def _write_text(path: Path, text: str) -> None:
    """Atomic: a reader sees the old text or the whole new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="hosts.daemon", description="Start and stop the programs of a run.")
    actions = parser.add_subparsers(dest="action", required=True)
    for action in ("start", "stop", "status"):
        command = actions.add_parser(action)
        command.add_argument("--runtime-dir", type=Path, required=True)
        if action != "status":
            command.add_argument("--name", required=True)
            command.add_argument(
                "--timeout",
                type=float,
                default=10.0,
                help="seconds until the program must be ready (start) or have ended (stop); then it gets SIGKILL "
                "(default 10)",
            )
        if action == "start":
            command.add_argument("--logs-dir", type=Path, required=True)
            command.add_argument(
                "--ready", default="ready", help="line that the program prints when ready; '': do not wait"
            )
            command.add_argument("argv", nargs="+", metavar="PROGRAM ARG")
    options = parser.parse_args(arguments)
    try:
        if options.action == "start":
            ready = options.ready or None
            result = start(options.name, options.argv, options.runtime_dir, options.logs_dir, ready, options.timeout)
        elif options.action == "stop":
            result = stop(options.name, options.runtime_dir, options.timeout)
        else:
            result = status(options.runtime_dir)
    except (DaemonError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
