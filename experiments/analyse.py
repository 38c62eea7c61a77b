# SPDX-License-Identifier: MIT
"""Has a repetition analysed, by the command that `make replay` runs, in a process that needs no privilege."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

from experiments import host, kernel, results
from experiments.errors import RunError
from lib import files, owner

LAST_LINES = 3
LOG = Path("logs/analysis.log")


def analyse(repetition: Path, alone: bool = False) -> dict[str, Any]:
    """Derives tables, figures, report and summary of `repetition`; returns the summary. Raises RunError, Interrupted.

    Under sudo, the run is given to the user who asked for it, and analysed as this user: root has no part in reading
    files, and a result is nothing that only root can remove. The analysis and its helpers end with this process.
    `alone` has it done without helpers, which load matplotlib once each: for many at once.
    """
    log = repetition / LOG
    user = owner.sudo_user()
    environment = os.environ | ({"HOME": user.pw_dir, "USER": user.pw_name} if user else {})
    identity: dict[str, Any] = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
    with _log(repetition) as output:
        owner.give(repetition)
        process = subprocess.Popen(
            [sys.executable, "-m", "analysis", *(["--alone"] if alone else []), str(repetition)], cwd=host.CHECKOUT,
            env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            preexec_fn=kernel.die_with_parent, **identity,
        )  # fmt: skip
        try:
            status = process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        output.seek(0)
        lines = output.read().splitlines()[-LAST_LINES:]
    if not (repetition / results.SUMMARY).exists():
        raise RunError(
            f"the analysis ended with status {status} and no summary (log: {log})",
            *lines,
            f"the raw files are complete: {results.replay_command(repetition)} tries again",
        )
    return _summary(repetition)


def _summary(repetition: Path) -> dict[str, Any]:
    path = repetition / results.SUMMARY
    try:
        summary = json.loads(files.read_text(path))
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read: {error}") from None
    if not isinstance(summary, dict):
        raise RunError(f"{path} is no summary: see {repetition / LOG}")
    return summary


def _log(repetition: Path) -> IO[str]:
    """The log of the analysis, empty. The repetition may be a user's already, who could plant a link there."""
    with files.directory(repetition) as own, files.directory("logs", own) as logs:
        log = os.fdopen(files.open_regular(LOG.name, os.O_RDWR | os.O_CREAT, logs), "r+", errors="replace")
    log.truncate()
    return log
