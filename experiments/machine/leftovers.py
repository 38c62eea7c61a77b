# SPDX-License-Identifier: MIT
"""The command `leftovers`: lists everything that killed commands left on this machine and in a directory of results,
and removes it with REMOVE=1.

Namespaces, interfaces, BPF programs and mounts end with a run's cell, and locks with their process, so only two kinds
can be left: files (lib/leftovers.py), and instances of tracefs, which the kernel keeps when a tracer dies.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from controlplane import lock
from experiments.machine import host
from lib import leftovers
from lib.errors import RunError
from lib.exit_codes import Exit
from lib.keys import Keys, field, flag
from lib.terminal import complain, located, say

TRACER = host.BUILD / "tcp_trace"
# Run outside of a cell, whose end kills the tracer together with the process that should remove its instance.
REMOVE_INSTANCES = [str(TRACER), "--stale", "remove"]


class Asked(Keys):
    results: Path = field("a directory of results, or one that an export was written to", default="results")
    remove: bool = flag("1: remove what is listed")


def run(asked: Asked) -> int:
    """Returns the exit status: DOUBTFUL if something is left. Raises RunError."""
    top, is_removing = asked.results, asked.remove
    if not top.is_dir() and "results" in asked.model_fields_set:
        raise RunError(f"RESULTS={top}: is not a directory; allowed: a directory of results")
    left = []
    for path in files(top):
        say(str(path))
        try:
            if is_removing:
                leftovers.remove(path)
            else:
                left.append(path)
        except OSError as error:
            left.append(path)
            complain(f"{located(error, path)}; it was not removed")
    names = instances(is_removing)
    for name in names:
        say(f"tracefs instance {name}")
    if os.geteuid():
        complain("note: only root can see what killed tracers left in tracefs")
    if is_removing and left:
        return Exit.DOUBTFUL
    if left or (names and not is_removing):
        say("REMOVE=1 removes them")
        return Exit.DOUBTFUL
    say("nothing is left")
    return Exit.DONE


def files(top: Path) -> Iterator[Path]:
    yield from leftovers.below(top)
    yield from leftovers.of_tmpdir()
    yield from lock.left()


def instances(remove: bool = False) -> list[str]:
    """The names of instances of tracefs that no tracer uses; none for users who cannot see them."""
    if os.geteuid() != 0 or not TRACER.exists():
        return []
    words = [str(TRACER), "--stale", "remove" if remove else "list"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    for line in done.stderr.splitlines():
        complain(f"note: {line}")
    return done.stdout.split()
