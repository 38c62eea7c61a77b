# SPDX-License-Identifier: MIT
"""WATCH=1: a page that shows a run or a sweep while it goes on.

A process of its own serves the page (watch_server.py). It lets the run's programs go first, reads the run's files only
while a page asks, and gets what the terminal shows through a pipe that is never waited for. So the run is the same with
and without a page.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments.machine.terminal import Terminal
from experiments.run.analysis_process import as_user
from lib import owner, syscalls
from lib.errors import RunError
from lib.terminal import say

END_S = 5.0
MOST_CHARACTERS = 400  # of a text of the terminal
RUN, SWEEP = "run", "sweep"


@contextlib.contextmanager
def watched(directory: Path, kind: str, clock: str) -> Iterator[None]:
    """Serves the page of a run's or sweep's directory while the body runs. Raises RunError if it cannot."""
    user = owner.sudo_user()  # root parses no files
    server = subprocess.Popen(
        [sys.executable, "-m", "experiments.run.watch_server", str(directory), kind, clock], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, start_new_session=True, preexec_fn=syscalls.die_with_parent, **as_user(user),
    )  # fmt: skip
    assert server.stdin
    assert server.stdout
    with server:
        try:
            address = server.stdout.readline().decode().strip()
            if not address:
                raise RunError("the page of WATCH=1 cannot be served: see above")
            say(f"watch it: {address}")
            os.set_blocking(server.stdin.fileno(), False)
            Terminal.told = lambda shown: _tell(server.stdin.fileno(), shown)  # type: ignore[union-attr]
            yield
        finally:
            Terminal.told = None
            server.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(END_S)
            server.kill()


def _tell(pipe: int, shown: dict[str, Any]) -> None:
    """Writes a line whole or not at all: it is shorter than PIPE_BUF."""
    short = {name: value[:MOST_CHARACTERS] if isinstance(value, str) else value for name, value in shown.items()}
    with contextlib.suppress(BlockingIOError, BrokenPipeError):  # the page misses a line; the run does not wait
        os.write(pipe, json.dumps(short, ensure_ascii=False).encode(errors="replace") + b"\n")
