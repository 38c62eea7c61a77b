# SPDX-License-Identifier: MIT
"""Analyses a repetition with the command of `make replay`, in a process of its own. Under sudo the process runs as the
caller of sudo, without privileges.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any, Self

from analysis.figures import printed
from experiments.machine import host
from experiments.spec import disk
from lib import files, owner, places, syscalls
from lib.errors import RunError
from runs import results, verdict
from runs.names import SUMMARY
from runs.thinned import KEEP

LAST_LINES = 3
REPLAY = ("bufferscope", "replay")  # the module and its command
LOG = Path("logs/analysis.log")
# Finds the packages of an analysis without importing them: imports take seconds.
LOOK = """\
from importlib.util import find_spec
missing = [name for name in ("analysis", "matplotlib", "polars", "yaml") if not find_spec(name)]
raise SystemExit(f"it has no {', '.join(missing)}" if missing else 0)
"""


class Analyst:
    """The process that will analyse a repetition. It imports its packages, which takes a second, and then waits. If it
    is started while the repetition is recorded, the summary comes a second earlier. It ends when its parent process or
    the context ends.
    """

    def __init__(self, repetition: Path, alone: bool = False, keep: str = KEEP[0]) -> None:
        """Raises RunError if it cannot be started. See `analyse` for the arguments."""
        self.repetition = repetition
        self._output = _log(repetition)
        owner.give(repetition)
        user = owner.sudo_user()
        words = [f"RUN={repetition}", f"ALONE={alone:d}", f"KEEP={keep}", "WAIT=1", *printed.words()]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *REPLAY, *words], stdin=subprocess.PIPE,
                stdout=self._output, stderr=self._output, start_new_session=True,
                preexec_fn=syscalls.die_with_parent, **as_user(user),
            )  # fmt: skip
        except OSError as error:
            self._output.close()
            raise RunError(_cannot(user, error.strerror)) from None

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the process and its helpers."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._output.close()

    def analyse(self) -> dict[str, Any]:
        """The summary of the repetition, whose files are complete now. Raises RunError, Interrupted."""
        with disk.explained(self.repetition, Path(tempfile.gettempdir())):
            owner.give(self.repetition)
            assert self._process.stdin
            with contextlib.suppress(BrokenPipeError):  # the process has ended: its status and its log say why
                self._process.stdin.write(b"\n")
                self._process.stdin.flush()
            status = self._process.wait()
            self._output.seek(0)
            lines = self._output.read().splitlines()[-LAST_LINES:]
            if not (self.repetition / SUMMARY).exists():
                raise RunError(
                    f"the analysis ended with status {status} and no summary (log: {self.repetition / LOG})",
                    *lines,
                    *_again(self.repetition),
                )
            try:
                return verdict.read(self.repetition)
            except (OSError, ValueError) as error:
                raise RunError(f"{self.repetition}: {verdict.unread(error)}") from None


def analyse(repetition: Path, alone: bool = False, keep: str = KEEP[0]) -> dict[str, Any]:
    """Derives tables, figures, report and summary of `repetition`; returns the summary. Raises RunError, Interrupted.

    Under sudo, the run's files are given to the caller of sudo, and the analysis runs as that user: root parses no
    files, and the user can remove every result. The analysis and its helper processes end with this process. With
    `alone` there are no helpers: each helper imports matplotlib, which is too expensive for many analyses at once. A
    valid repetition that will be thinned to `keep` gets no file that thinning would remove.
    """
    try:
        analyst = Analyst(repetition, alone, keep)
    except RunError as error:
        raise RunError(*error.lines, *_again(repetition)) from None
    with analyst:
        return analyst.analyse()


def user_problem() -> str | None:
    """Why the caller of sudo could not analyse a run with this checkout; None if the user can."""
    user = owner.sudo_user()
    if not user:
        return None
    try:
        done = subprocess.run(
            [sys.executable, "-c", LOOK],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            **as_user(user),
        )
    except OSError as error:
        return _cannot(user, error.strerror)
    return _cannot(user, " ".join(done.stderr.split())[-200:]) if done.returncode else None


def as_user(user: pwd.struct_passwd | None) -> dict[str, Any]:
    """Arguments of Popen: in the checkout, as `user`; None: as this process's user."""
    always = {"cwd": host.CHECKOUT}
    if not user:
        return always
    environment = {name: value for name, value in os.environ.items() if name not in places.VARIABLES}  # the user's own
    identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    return {**always, **identity, "env": environment | {"HOME": user.pw_dir, "USER": user.pw_name}}


def _cannot(user: pwd.struct_passwd | None, why: str | None) -> str:
    if not user:
        return f"cannot run {sys.executable} in {host.CHECKOUT}, which analyses a run: {why}"
    return (
        f"{user.pw_name} cannot run {sys.executable} in {host.CHECKOUT} ({why}); under sudo this user analyses a run: "
        "let the user read the checkout, .venv and the Python that made .venv, or run the command as root without sudo"
    )


def _again(repetition: Path) -> list[str]:
    return [f"the raw files are complete: {results.replay_command(repetition)} tries again"]


def _log(repetition: Path) -> IO[str]:
    """The log of the analysis, empty. No link is followed: the directory may already belong to the user."""
    with files.directory(repetition) as within, files.directory("logs", within) as logs:
        log = os.fdopen(files.open_regular(LOG.name, os.O_RDWR | os.O_CREAT, logs), "r+", errors="replace")
    log.truncate()
    return log
