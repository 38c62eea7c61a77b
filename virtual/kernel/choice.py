# SPDX-License-Identifier: MIT
"""The choice of the kernel: the last arguments of `make kernel` stay in force.

The choice is stored beside the build, so that an experiment, a test or a `make kernel` after an interruption use the
same kernel. Environment variables are ignored.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from virtual.kernel import digests
from virtual.kernel.errors import KernelError

PACKAGE, SOURCE, FINISHED = "KERNEL_PACKAGE", "KERNEL_SOURCE", "KERNEL"
KEYS = (PACKAGE, SOURCE, FINISHED)
FILE = "choice.json"
DEFAULT_PACKAGE = "linux-source-6.12"
CHOICES = (
    f"make kernel {PACKAGE}=linux-source-X, make kernel {SOURCE}=/path/to/tree-or-archive, or make kernel "
    f"{FINISHED}=/path/to/linux for a finished kernel of this version"
)


@contextlib.contextmanager
def remember(requested: Mapping[str, str], directory: Path) -> Iterator[dict[str, str]]:
    """Yields the choice, one of KEYS with its value: `requested`, else the choice stored in `directory`, else the
    default. Stores the choice before the body, so that an interrupted build keeps it. KernelError in the body restores
    the old choice.
    """
    file = directory / FILE
    before = digests.read_json(file)
    chosen = dict(requested) or remembered(directory)
    if chosen != before:
        digests.write_json(file, chosen)
    try:
        yield chosen
    except KernelError:
        if before:
            digests.write_json(file, before)
        else:
            file.unlink(missing_ok=True)
        raise


def remembered(directory: Path) -> dict[str, str]:
    """The choice of a build without arguments."""
    stored = digests.read_json(directory / FILE)
    return {key: str(value) for key, value in stored.items() if key in KEYS} or {PACKAGE: DEFAULT_PACKAGE}
