# SPDX-License-Identifier: MIT
"""The command `kernel`: builds the kernel of the virtual-time lab, if it is not current."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Any, NoReturn

from lib.errors import BadValue, Interrupted, SpecError
from lib.words import PATHS, Key
from virtual.kernel import choice
from virtual.kernel.build import BUILD, INTERRUPTED, ensure
from virtual.kernel.choice import DEFAULT_PACKAGE
from virtual.kernel.progress import BuildProgress

KEYS = {
    "kernel_package": Key(
        "the Debian package with the kernel's source; later builds use it until you choose another source",
        DEFAULT_PACKAGE,
    ),
    "kernel_source": Key(
        "your own source instead: a tree, a tar archive, or a package file. It is never modified; later builds "
        "use it, too",
        values=PATHS,
    ),
    "kernel": Key(
        "a finished kernel instead: build/virtual/linux of another checkout of this version, with its kernel.json "
        "beside it; later builds use it, too",
        values=PATHS,
    ),
}


def run(given: dict[str, Any], errors: list[BadValue]) -> int:
    """Returns the exit status. Raises SpecError, KernelError."""
    if errors:
        raise SpecError(errors)
    chosen = choice.read(given)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    try:
        with BuildProgress(sys.stdout) as progress:
            kernel = ensure(BUILD, chosen, progress)
            progress.done(f"Linux {kernel['version']} from {kernel['source']['name']} is ready: {BUILD / 'linux'}")
    except KeyboardInterrupt:
        raise KeyboardInterrupt(INTERRUPTED) from None
    return 0


def _end(number: int, frame: FrameType | None) -> NoReturn:
    raise Interrupted(number)
