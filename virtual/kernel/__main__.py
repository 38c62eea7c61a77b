# SPDX-License-Identifier: MIT
"""`python -m virtual.kernel`: the command behind `make kernel`.

Exit status: 0 the kernel is ready; 1 it is not, with the reason on stderr; 128 + the signal's number after a signal.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import NoReturn

from lib.words import made
from virtual.kernel import choice
from virtual.kernel.build import BUILD, INTERRUPTED, ensure
from virtual.kernel.choice import DEFAULT_PACKAGE
from virtual.kernel.errors import KernelError
from virtual.kernel.progress import BuildProgress

USAGE = f"""\
usage: python -m virtual.kernel [KERNEL_PACKAGE=linux-source-X | KERNEL_SOURCE=/path] | --make
Builds {BUILD}/linux and kernel.json, if they are not current.
  KERNEL_PACKAGE=linux-source-X    the Debian package with the source (default: {DEFAULT_PACKAGE})
  KERNEL_SOURCE=/path              your own source instead: a tree, a tar archive, or a package file; never modified
  --make                           take the parameters from the command line of the calling make
The last choice stays until you make another. The environment is ignored."""


def main(arguments: list[str]) -> int:
    if {"-h", "--help"} & set(arguments):
        print(USAGE)
        return 0
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    try:
        parameters = choice.read_words(made() if arguments == ["--make"] else known(arguments))
        with BuildProgress(sys.stdout) as progress:
            kernel = ensure(BUILD, parameters, progress)
            progress.done(f"Linux {kernel['version']} from {kernel['source']['name']} is ready: {BUILD / 'linux'}")
    except KernelError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"error: {INTERRUPTED}", file=sys.stderr)
        return 128 + signal.SIGINT
    return 0


def known(arguments: list[str]) -> list[str]:
    """Returns `arguments`. Raises KernelError for the first argument with an unknown key."""
    for word in arguments:
        if word.partition("=")[0] not in choice.KEYS:
            raise KernelError(f"{word}: unknown; allowed: {', '.join(f'{key}=VALUE' for key in choice.KEYS)}, --make")
    return arguments


def _end(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
