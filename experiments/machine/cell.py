# SPDX-License-Identifier: MIT
"""The disposable cell that a repetition runs in: PID, mount and network namespaces that end with the runner.

    runner -> keeper -> init (PID 1 of the cell) -> worker, and all that it starts

keeper and init ask the kernel for SIGKILL when their parent ends. When init ends, the kernel kills every process in the
cell, and then frees the cell's network namespaces, veths, packet rings, BPF programs and mounts. So nothing has to be
undone, not even after SIGKILL of the runner. The cell has its own session: a Ctrl-C reaches only the runner, the runner
passes the signal on, and the worker stops its programs in the right order. keeper exists because unshare(2) would
change the runner itself. init exists because programs that daemonize need a parent that reaps them.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Self

from experiments.machine.interruption import interrupt
from lib import syscalls
from lib.errors import Interrupted, RunError

RUN = Path("/run")  # a tmpfs of the cell's own
RUN_BYTES = 256 << 20
NETNS = RUN / "netns"  # where ip(8) keeps the names of network namespaces
RUNTIME = RUN / "bufferscope"  # control sockets, PID files, temporary files
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
MAX_RESULT_BYTES = 1 << 20


def forwarded() -> list[signal.Signals]:
    """The signals of FORWARDED that are not ignored: a run under nohup(1) outlives its terminal, as programs should."""
    return [number for number in FORWARDED if signal.getsignal(number) is not signal.SIG_IGN]


def run(work: Callable[[], Any], afterwards: Sequence[str] = ()) -> Any:
    """Calls `work` in a new cell and returns its result, which passes through JSON. `afterwards` is a command that runs
    when the cell has ended, however it and this process ended: it removes what the kernel keeps.

    Raises RunError as `work` does or if the cell cannot be made, Interrupted after SIGINT, SIGTERM or SIGHUP. The first
    signal is passed on to `work`, where it raises Interrupted. A second signal ends the cell at once. When this
    function returns, everything in the cell is gone. Only the kernel's removal of network devices and, after a second
    signal, the end of the cell's processes may come a little later.
    """
    if os.geteuid() != 0:
        raise RunError("not root: a cell of namespaces needs root; run the command again with sudo")
    held = _run_at_the_end(afterwards) if afterwards else -1
    read_end, write_end = os.pipe()
    runner = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)  # no signal is lost between fork and handlers
    keeper = os.fork()
    if keeper == 0:
        os.close(read_end)
        _as_child(lambda: _keeper(runner, write_end, work), write_end)
    os.close(write_end)
    with _Forwarding(keeper) as forwarding:
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            result = _read_all(read_end)
        finally:
            os.close(read_end)
            _, status = os.waitpid(keeper, 0)
            if held >= 0:
                os.close(held)
    return _outcome(result, os.waitstatus_to_exitcode(status), forwarding.signals)


def _run_at_the_end(command: Sequence[str]) -> int:
    """Starts a process, in a session of its own and outside of the cell, that waits until this process and all others
    that it forks have ended or closed the descriptor that is returned, and then runs `command`.
    """
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(write_end)
            if os.fork() == 0:  # init adopts it, so that nobody has to wait for it
                os.setsid()
                nothing = os.open(os.devnull, os.O_RDWR)
                for descriptor in range(3):
                    os.dup2(nothing, descriptor)
                os.closerange(3, read_end)
                os.closerange(read_end + 1, os.sysconf("SC_OPEN_MAX"))
                os.read(read_end, 1)
                os.execv(command[0], list(command))
        finally:
            os._exit(0)
    os.close(read_end)
    os.waitpid(child, 0)
    return write_end


def _outcome(result: bytes, status: int, signals: list[int]) -> Any:
    try:
        message = json.loads(result)
    except ValueError:
        message = {}
    if signals:  # even if the work has ended: the caller must not go on
        raise Interrupted(signals[0])
    if "result" in message:
        return message["result"]
    if "lines" in message:
        raise RunError(*message["lines"])
    raise RunError(f"the cell ended before its work did (status {status}): was something in it killed?")


class SignalHandler(ABC):
    """Base class of contexts that handle the signals of `forwarded`."""

    def __enter__(self) -> Self:
        self.before = {number: signal.signal(number, self.handle) for number in forwarded()}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    @abstractmethod
    def handle(self, number: int, frame: FrameType | None) -> None: ...


class _Forwarding(SignalHandler):
    """Forwards the first signal to the process `pid`; after another signal the process gets SIGKILL."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.signals: list[int] = []

    def handle(self, number: int, frame: FrameType | None) -> None:
        self.signals.append(number)
        with contextlib.suppress(ProcessLookupError):  # the process has ended by itself
            os.kill(self.pid, number if len(self.signals) == 1 else signal.SIGKILL)


def _read_all(fd: int) -> bytes:
    """The data of a pipe until its last writer ends, up to a bound."""
    data = b""
    while len(data) < MAX_RESULT_BYTES and (more := os.read(fd, 65536)):
        data += more
    return data


def _as_child(body: Callable[[], int], report: int) -> None:
    """Runs `body` and ends this process with its status, never returning into the code that forked it."""
    status = 1
    try:
        status = body()
    except OSError as error:
        _report(report, {"lines": [f"cannot make the cell of namespaces: {error.strerror or error}"]})
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _report(fd: int, message: dict[str, Any]) -> None:
    os.write(fd, json.dumps(message).encode()[:MAX_RESULT_BYTES])


def _keeper(runner: int, report: int, work: Callable[[], Any]) -> int:
    os.setsid()
    syscalls.die_with_parent()
    if os.getppid() != runner:
        return 1  # the runner ended before the line above
    syscalls.unshare(syscalls.CLONE_NEWPID | syscalls.CLONE_NEWNS | syscalls.CLONE_NEWNET)
    alive_read, alive_write = os.pipe()
    init = os.fork()
    if init == 0:
        os.close(alive_write)
        _as_child(lambda: _init(alive_read, report, work), report)
    os.close(report)
    os.close(alive_read)
    os.write(alive_write, b"+")
    with _Forwarding(init):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
        _, status = os.waitpid(init, 0)
    return _shell_status(status)


def _shell_status(status: int) -> int:
    """An exit status as shells give it: 128 plus the number of the signal for a process that was killed."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _init(alive: int, report: int, work: Callable[[], Any]) -> int:
    """PID 1: makes the cell private, starts the worker, reaps all orphans, and ends with the worker."""
    syscalls.die_with_parent()
    # The pipe ends with the keeper. getppid() does not show whether the keeper has ended: it is always 0, because the
    # keeper is outside this PID namespace.
    if not os.read(alive, 1) or select.select([alive], [], [], 0)[0]:
        return 1  # the keeper ended before die_with_parent()
    os.close(alive)
    syscalls.mount("none", "/", "", syscalls.MS_REC | syscalls.MS_PRIVATE)
    restricted = syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC
    syscalls.mount("proc", "/proc", "proc", restricted)
    syscalls.mount(
        "bufferscope", str(RUN), "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, f"mode=755,size={RUN_BYTES}"
    )
    NETNS.mkdir()
    RUNTIME.mkdir(mode=0o700)
    worker = os.fork()
    if worker == 0:
        _as_child(lambda: _worker(report, work), report)
    os.close(report)
    with _Forwarding(worker):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
        while True:
            pid, status = os.wait()
            if pid == worker:
                return _shell_status(status)


def _worker(report: int, work: Callable[[], Any]) -> int:
    def stop(number: int, frame: FrameType | None) -> None:
        for other in FORWARDED:
            signal.signal(other, signal.SIG_IGN)  # another signal must not interrupt the clean-up
        interrupt(number)

    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    for number in forwarded():
        signal.signal(number, stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    try:
        _report(report, {"result": work()})
    except RunError as error:
        _report(report, {"lines": error.lines})
        return 1
    except Interrupted as interrupted:
        return 128 + interrupted.signal
    except Exception as error:
        traceback.print_exc()
        _report(report, {"lines": [f"internal error: {type(error).__name__}: {error}"]})
        return 1
    return 0
