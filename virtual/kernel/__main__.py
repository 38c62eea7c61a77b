# SPDX-License-Identifier: MIT
"""`python -m virtual.kernel`: the command behind `make kernel`.

Exit status: 0 the kernel is there; 1 it is not, and why is on stderr; 128 + the signal's number when asked to end.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from virtual.kernel.build import BUILD, ensure
from virtual.kernel.errors import KernelError
from virtual.kernel.progress import Progress

USAGE = f"""\
usage: python -m virtual.kernel
Builds {BUILD}/linux and kernel.json, if they are not what the sources say. From the environment (or make):
  KERNEL_PACKAGE=linux-source-X    the Debian package with the source (default: linux-source-6.12)
  KERNEL_SOURCE=/path              your own source instead: a tree, a tar archive, or a package file; never modified"""


def main(arguments: list[str]) -> int:
    if arguments:
        print(USAGE, file=sys.stdout if arguments[0] in ("-h", "--help") else sys.stderr)
        return 0 if arguments[0] in ("-h", "--help") else 1
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    try:
        with Progress(sys.stdout) as progress:
            made = ensure(BUILD, dict(os.environ), progress)
            progress.done(f"Linux {made['version']} is ready: {BUILD / 'linux'}")
    except KernelError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted; what was compiled is kept, the next call goes on from there", file=sys.stderr)
        return 128 + signal.SIGINT
    return 0


def _end(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
