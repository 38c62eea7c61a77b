# SPDX-License-Identifier: MIT
"""Runs repetitions in virtual time in parallel, one on each processor.

Each repetition is a child process. The kernel ends the child when its parent ends.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from lib import syscalls
from lib.errors import Interrupted, RunError

CONTEXT = multiprocessing.get_context("fork")


def run_each(work: Callable[[int, int], None], numbers: list[int], processors: list[int]) -> Iterator[int]:
    """Calls work(number, processor) for each number, one at a time on each processor. Yields each number when its call
    has ended. If one call fails, ends the others and raises its RunError. On Interrupted, ends all calls.
    """
    waiting, free = list(numbers), list(processors)
    running: dict[Any, tuple[int, int, BaseProcess, Connection]] = {}
    try:
        while waiting or running:
            while waiting and free:
                number, processor = waiting.pop(0), free.pop(0)
                reader, writer = CONTEXT.Pipe(duplex=False)
                process: BaseProcess = CONTEXT.Process(target=_child, args=(work, number, processor, writer))
                process.start()
                writer.close()
                running[process.sentinel] = number, processor, process, reader
            for sentinel in wait(list(running)):
                number, processor, ended, reader = running.pop(sentinel)
                ended.join()
                free.append(processor)
                _raise_failure(number, ended, reader)
                yield number
    finally:
        for _, _, process, _ in running.values():
            process.terminate()
        for _, _, process, _ in running.values():
            process.join()


def _raise_failure(number: int, process: BaseProcess, reader: Connection) -> None:
    lines: list[str] = []
    with reader, contextlib.suppress(EOFError):  # EOF: the child sent no reason
        lines = reader.recv()
    if process.exitcode:
        raise RunError(*(lines or [f"repetition {number} ended with status {process.exitcode} and gave no reason"]))


def _child(work: Callable[[int, int], None], number: int, processor: int, writer: Connection) -> None:
    syscalls.die_with_parent()
    # Ctrl-C signals every process of the terminal. The child ignores SIGINT, because the parent ends its children.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with contextlib.closing(writer):
            try:
                work(number, processor)
            except RunError as error:
                writer.send(error.lines)
                raise SystemExit(1) from None
    except Interrupted as interrupted:
        raise SystemExit(128 + interrupted.signal) from None
