# SPDX-License-Identifier: MIT
"""Which source the kernel is built from: what `make kernel` was told last, until it is told otherwise.

It is remembered beside the build, so that an experiment, a test or a second `make kernel` after an interruption all
mean the same kernel. The environment chooses nothing, as everywhere here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from virtual.kernel import digests
from virtual.kernel.errors import KernelError

PACKAGE, SOURCE = "KERNEL_PACKAGE", "KERNEL_SOURCE"
KEYS = (PACKAGE, SOURCE)
FILE = "choice.json"
DEFAULT_PACKAGE = "linux-source-6.12"
CHOICES = f"make kernel {PACKAGE}=linux-source-X, or make kernel {SOURCE}=/path/to/tree-or-archive"


def read_words(words: list[str]) -> dict[str, str]:
    """The choice in KEY=VALUE words; other words are not ours. Raises KernelError for one that is, and is wrong."""
    given: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if key in KEYS:
            if not equals or not value:
                raise KernelError(f"{key} has no value; give one: {CHOICES}")
            given[key] = value
        elif key.upper().startswith("KERNEL"):
            raise KernelError(f"{key} is no parameter of make kernel; allowed: {', '.join(KEYS)}")
    if len(given) > 1:
        raise KernelError(f"{PACKAGE}={given[PACKAGE]} and {SOURCE}={given[SOURCE]}: give one of them")
    if SOURCE in given:  # it must mean the same from everywhere
        given[SOURCE] = str(Path(given[SOURCE]).expanduser().absolute())
    return given


@contextlib.contextmanager
def kept(given: Mapping[str, str], directory: Path) -> Iterator[dict[str, str]]:
    """What is given, else what `directory` remembers, else the default: one of KEYS with its value. It is remembered at
    once, so that an interrupted build goes on with it, unless the body finds that it cannot be used (KernelError).
    """
    file = directory / FILE
    before = digests.read_json(file)
    chosen = dict(given) or remembered(directory)
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
    """What a build would take that is given nothing else."""
    found = digests.read_json(directory / FILE)
    return {key: str(value) for key, value in found.items() if key in KEYS} or {PACKAGE: DEFAULT_PACKAGE}
