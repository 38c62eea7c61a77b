# SPDX-License-Identifier: MIT
"""A clean clone of the checkout, in which tests type commands as a user does. A clone has only files that git tracks,
with the changes of the working tree, so that a developer tests what he edits; a new file counts after `git add`.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from experiments.machine.host import CHECKOUT

LIMIT_S = 900
# Variables of the test run itself: of make, of Python and pytest, of the coverage measurement.
OURS = ("MAKE", "MFLAGS", "PYTHON", "PYTEST", "COV", "BUFFERSCOPE", "VIRTUAL_ENV", "TMPDIR")


class Done(NamedTuple):
    """A command that has ended. `made`: the run directories that are new in results/. `begin_s`: seconds since 1970."""

    typed: str
    status: int
    said: str
    made: list[Path]
    begin_s: float
    seconds: float


class Clone:
    def __init__(self, path: Path, results: Path | None = None) -> None:
        self.path = path
        self.results = results or path / "results"

    def runs(self) -> set[Path]:
        """The runs in results/, without those of sweeps."""
        return {path.parent for path in self.results.glob("2*/rep-1")}

    def type(self, typed: str, user: int | None = None, **environment: str) -> Done:
        """Runs a line of shell in the clone, with the programs of .venv on the PATH."""
        before, begin_s = self.runs(), time.time()
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        path = f"{self.path}/.venv/bin:{os.environ['PATH']}"
        done = subprocess.run(
            ["timeout", "--kill-after=10", str(LIMIT_S), "bash", "-c", typed],
            cwd=self.path, env=inherited | {"PATH": path} | environment, user=user, group=user,
            extra_groups=[] if user else None,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        made = sorted(self.runs() - before)
        return Done(typed, done.returncode, done.stdout, made, begin_s, time.time() - begin_s)


def make_clone(directory: Path) -> Clone:
    """The clone is shallow: it is fetched by the commit's name. Its commit is HEAD if nothing was changed."""
    config = directory / "gitconfig"  # another user may own the checkout
    config.write_text("[safe]\n\tdirectory = *\n[user]\n\tname = test\n\temail = test@localhost\n")
    environment = os.environ | {"GIT_CONFIG_GLOBAL": str(config)}

    def git(*words: str, where: Path = CHECKOUT) -> str:
        done = subprocess.run(["git", *words], cwd=where, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    clone = directory / "bufferscope"
    clone.mkdir()
    commit = git("stash", "create") or git("rev-parse", "HEAD")
    git("init", "--quiet", where=clone)
    git("fetch", "--quiet", "--depth=1", f"file://{CHECKOUT}", commit, where=clone)
    git("checkout", "--quiet", "--detach", commit, where=clone)
    for parent in (directory, directory.parent, directory.parent.parent):
        parent.chmod(0o755)  # ordinary users read the clone
    return Clone(clone)
