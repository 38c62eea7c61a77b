# SPDX-License-Identifier: MIT
"""Has a repetition analysed, by the command that `make replay` runs, in a process that needs no privilege."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from experiments import host, kernel, results
from experiments.errors import RunError

LAST_LINES = 3


def analyse(repetition: Path, alone: bool = False) -> dict[str, Any]:
    """Derives tables, figures, report and summary of `repetition`; returns the summary. Raises RunError, Interrupted.

    Under sudo, the run is given to the user who asked for it, and analysed as this user: root has no part in reading
    files, and a result is nothing that only root can remove. The analysis and its helpers end with this process.
    `alone` has it done without helpers, which load matplotlib once each: for many at once.
    """
    log = repetition / "logs/analysis.log"
    user = sudo_user()
    if user:
        _give(repetition, user)
    environment = os.environ | ({"HOME": user.pw_dir, "USER": user.pw_name} if user else {})
    identity: dict[str, Any] = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
    with log.open("w") as output:
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
    if not (repetition / results.SUMMARY).exists():
        lines = log.read_text(errors="replace").splitlines()[-LAST_LINES:]
        raise RunError(
            f"the analysis ended with status {status} and no summary (log: {log})",
            *lines,
            f"the raw files are complete: {results.replay_command(repetition)} tries again",
        )
    return _summary(repetition)


def _summary(repetition: Path) -> dict[str, Any]:
    path = repetition / results.SUMMARY
    try:
        summary = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read: {error}") from None
    if not isinstance(summary, dict):
        raise RunError(f"{path} is no summary: see {repetition / 'logs/analysis.log'}")
    return summary


def sudo_user() -> pwd.struct_passwd | None:
    """Who called sudo; None when root itself did. SUDO_UID is our parent's word, used only to lose rights by."""
    uid = os.environ.get("SUDO_UID", "")
    try:
        return pwd.getpwuid(int(uid)) if uid.isascii() and uid.isdigit() and int(uid) and os.geteuid() == 0 else None
    except KeyError:
        return None


def _give(repetition: Path, user: pwd.struct_passwd) -> None:
    for path in (repetition.parent.parent, repetition.parent, repetition, *repetition.rglob("*")):
        os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
