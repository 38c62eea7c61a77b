# SPDX-License-Identifier: MIT
"""Repetitions in virtual time side by side, one a processor: each in a process of its own that ends with this one."""

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
    """Calls work(number, processor) for each number, as many at a time as there are processors; gives each number when
    its work is done. Raises the RunError of the first that fails, or Interrupted, and ends the others.
    """
    waiting, free = list(numbers), list(processors)
    running: dict[Any, tuple[int, int, BaseProcess, Connection]] = {}
    try:
        while waiting or running:
            while waiting and free:
                number, processor = waiting.pop(0), free.pop(0)
                mine, its = CONTEXT.Pipe(duplex=False)
                process: BaseProcess = CONTEXT.Process(target=_child, args=(work, number, processor, its))
                process.start()
                its.close()
                running[process.sentinel] = number, processor, process, mine
            for sentinel in wait(list(running)):
                number, processor, ended, mine = running.pop(sentinel)
                ended.join()
                free.append(processor)
                _raise_what_failed(number, ended, mine)
                yield number
    finally:
        for _, _, process, _ in running.values():
            process.terminate()
        for _, _, process, _ in running.values():
            process.join()


def _raise_what_failed(number: int, process: BaseProcess, mine: Connection) -> None:
    lines: list[str] = []
    with mine, contextlib.suppress(EOFError):  # it said nothing
        lines = mine.recv()
    if process.exitcode:
        raise RunError(*(lines or [f"repetition {number} ended with status {process.exitcode} and gave no reason"]))


def _child(work: Callable[[int, int], None], number: int, processor: int, its: Connection) -> None:
    syscalls.die_with_parent()
    # A Ctrl-C reaches all of the terminal's processes; this one is ended by its parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with contextlib.closing(its):
            try:
                work(number, processor)
            except RunError as error:
                its.send(error.lines)
                raise SystemExit(1) from None
    except Interrupted as interrupted:
        raise SystemExit(128 + interrupted.signal) from None
