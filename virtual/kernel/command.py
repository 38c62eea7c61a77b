# SPDX-License-Identifier: MIT
"""The command `kernel`: builds the kernel of the virtual-time lab, if it is not current."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

from lib import regular
from lib.errors import Interrupted
from lib.keys import Keys, Wrong, field
from virtual.kernel import choice
from virtual.kernel.build import BUILD, INTERRUPTED, ensure
from virtual.kernel.choice import DEFAULT_PACKAGE
from virtual.kernel.progress import BuildProgress


class Asked(Keys):
    kernel_package: str | None = field(
        "the Debian package with the kernel's source; later builds use it until you choose another source "
        f"(first default: {DEFAULT_PACKAGE})"
    )
    kernel_source: Path | None = field(
        "your own source instead: a tree, a tar archive, or a package file. It is never modified; later builds "
        "use it, too"
    )
    kernel: Path | None = field(
        "a finished kernel instead: build/virtual/linux of another checkout of this version, with its kernel.json "
        "beside it; later builds use it, too"
    )

    def check(self, wrong: Wrong) -> None:
        if len(self.model_fields_set) > 1:
            wrong(min(self.model_fields_set), f"is given with {max(self.model_fields_set).upper()}; give one of them")


def run(asked: Asked) -> int:
    """Returns the exit status. Raises KernelError."""
    paths = {choice.SOURCE: asked.kernel_source, choice.FINISHED: asked.kernel}
    chosen = {name: str(regular.expanded(path).absolute()) for name, path in paths.items() if path}
    if asked.kernel_package:
        chosen[choice.PACKAGE] = asked.kernel_package
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
