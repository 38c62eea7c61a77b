# SPDX-License-Identifier: MIT
"""Runs ip, tc, ethtool and modprobe without a shell, with a time limit; reports their own message on failure."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

TIMEOUT_SECONDS = 20
PACKAGES = {"ethtool": "ethtool", "ip": "iproute2", "tc": "iproute2", "modprobe": "kmod"}


class TuneError(RuntimeError):
    """A message for the user: the failed action, its object, the reason, the remedy."""


class CommandError(TuneError):
    """A program that failed or took too long. `reason`: the last line of its output, its exit status, or the limit.
    `first`: the first line, behind which usage may follow.
    """

    def __init__(self, words: Sequence[str], reason: str, first: str | None = None):
        super().__init__(f"{' '.join(words)}: {reason}")
        self.reason, self.first = reason, first or reason


def find(program: str) -> str | None:
    """The program's path. Also searches the sbin directories, which are missing from many users' PATH."""
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def run(*words: str, timeout_s: float = TIMEOUT_SECONDS) -> str:
    """The program's output. Raises CommandError if it fails, TuneError if it is not installed."""
    path = find(words[0])
    if path is None:
        raise TuneError(f"{words[0]} is not installed: apt install {PACKAGES.get(words[0], words[0])}")
    try:
        done = subprocess.run(
            [path, *words[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CommandError(words, f"has not ended after {timeout_s:g} s") from error
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise CommandError(words, lines[-1] if lines else f"exit status {done.returncode}", lines[0] if lines else None)
    return done.stdout
