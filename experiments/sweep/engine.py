# SPDX-License-Identifier: MIT
"""Runs jobs at once with GNU parallel: which of them, how many, and how they end is its business; what came of them is
told by their directories alone.

No value of a spec reaches its shell: the command is a constant, jobs have names of small letters, digits and '-', the
rest is in the environment. It ends with this process, and the jobs with it, even by SIGKILL (job.py).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from experiments import host, kernel
from experiments.errors import RunError
from experiments.sweep.plan import JOB_ID

COMMAND = 'exec "$BUFFERSCOPE_PYTHON" -m experiments.sweep job "$BUFFERSCOPE_SWEEP" {}'
POLL_S = 0.5
END_S = 20.0  # for jobs that are asked to end


def program() -> str:
    """Where GNU parallel is. Raises RunError if it is not, or another program of that name (moreutils) is."""
    path = host.tool("parallel")
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout if path else ""
    if not path or not said.startswith("GNU parallel"):
        raise RunError("GNU parallel is missing, which runs a sweep's jobs; install it: apt-get install parallel")
    return path


def run(directory: Path, names: list[str], at_once: int, watch: Callable[[], None]) -> None:
    """Runs the jobs `names` of the sweep in `directory` in that order, calling `watch` every POLL_S; what that raises
    ends them all. Raises RunError if the engine itself fails.
    """
    bad = [name for name in names if not JOB_ID.fullmatch(name)]
    if bad:
        raise RunError(f"{bad[0]!a} is no name of a job")
    with tempfile.TemporaryDirectory(prefix="bufferscope-") as own:
        home = Path(own)
        (home / "jobs").write_text("".join(f"{name}\n" for name in names))
        command = [
            program(), "--will-cite", "--plain", "--ungroup", "--jobs", str(at_once), "--tmpdir", own,
            "--joblog", str(home / "log"), "--arg-file", str(home / "jobs"), COMMAND,
        ]  # fmt: skip
        with (home / "said").open("w") as said:
            process = subprocess.Popen(
                command, env=_environment(directory, home), cwd=host.CHECKOUT, stdin=subprocess.DEVNULL, stdout=said,
                stderr=said, start_new_session=True, preexec_fn=kernel.die_with_parent,
            )  # fmt: skip
            try:
                while not _ended(process):
                    watch()
            except BaseException:
                _end(process)
                raise
        # Its status counts jobs that failed, up to 100, and 101 for more: their directories tell that better.
        if process.returncode > 101 or process.returncode < 0:
            words = (home / "said").read_text(errors="replace").splitlines()[-3:]
            raise RunError(f"GNU parallel ended with status {process.returncode}", *words)


def _environment(directory: Path, home: Path) -> dict[str, str]:
    """Nothing of the user's own settings of GNU parallel."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PARALLEL")}
    return kept | {
        "PARALLEL_HOME": str(home),
        "PARALLEL_SHELL": "/bin/sh",
        "BUFFERSCOPE_PYTHON": sys.executable,
        "BUFFERSCOPE_SWEEP": str(directory),
        "PYTHONPATH": str(host.CHECKOUT),
        "PYTHONUNBUFFERED": "1",
    }


def _ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(POLL_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    """Asks every process of the engine's session to end, then makes them."""
    for sent in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(process.pid, sent)
            process.wait(END_S)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
    process.wait()
