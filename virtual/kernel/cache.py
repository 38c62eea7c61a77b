# SPDX-License-Identifier: MIT
"""Where kernels are kept: once a user, so that a second checkout of the same sources compiles nothing.

packages/      source packages as they were fetched
trees/KEY/     a source, unpacked and patched (tree/, tree.json), its objects (obj/), the output of make (kernel.log)
kernels/KEY/   linux and kernel.json of a finished build
KEY names the digests that decide the content: of source and patches for a tree, of all inputs for a kernel.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
from pathlib import Path
from typing import Any

from virtual.kernel import digests
from virtual.kernel.errors import KernelError
from virtual.kernel.progress import Progress

# A tree with its objects takes 0.4 GB, a kernel 8 MB. Two trees serve two checkouts whose patches differ.
TREES, KERNELS = 2, 8
OF_TREE = ("source", "patches_digest", "unpack_digest")
# The compiler is recorded, but a newer one is no reason to build again.
OF_KERNEL = (*OF_TREE, "fragment_digest", "staged_digest")


def of_user() -> Path:
    """`$XDG_CACHE_HOME/bufferscope/kernel`, by default below ~/.cache. The home is that of the effective user: with
    sudo, `$HOME` may still name somebody else's, and root would leave files there.
    """
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        cache = named if named.is_absolute() else Path(pwd.getpwuid(os.geteuid()).pw_dir) / ".cache"
    except KeyError:
        raise KernelError(
            f"user {os.geteuid()} has no entry in the password database, so no home for the kernel's cache: "
            "set XDG_CACHE_HOME to a directory to build in"
        ) from None
    return cache / "bufferscope/kernel"


def workspace(cache: Path, inputs: dict[str, Any]) -> Path:
    """The directory of the tree that these inputs are built from, and of its objects."""
    return cache / "trees" / _key(inputs, OF_TREE)


def finished(directory: Path, inputs: dict[str, Any]) -> dict[str, Any]:
    """directory/kernel.json, if directory/linux is the whole kernel that it describes, of these inputs; else {}."""
    made = digests.read_json(directory / "kernel.json")
    binary = directory / "linux"
    same = all(made.get(name) == inputs[name] for name in OF_KERNEL)
    whole = same and binary.is_file() and digests.of_file(binary) == made.get("binary_digest")
    return made if whole else {}


def take(cache: Path, inputs: dict[str, Any], directory: Path) -> dict[str, Any]:
    """Put the finished kernel of these inputs into `directory`, if the cache has one; returns its kernel.json, or {}.

    The file is copied: a checkout's kernel stays when the cache is emptied, and is never written through a link.
    """
    kept = cache / "kernels" / _key(inputs, OF_KERNEL)
    made = finished(kept, inputs)
    if made:
        _publish(kept / "linux", made, directory)
        os.utime(kept / "kernel.json")
    return made


def keep(cache: Path, inputs: dict[str, Any], binary: Path, made: dict[str, Any]) -> None:
    """Add a finished kernel; the least recently taken ones go."""
    kept = cache / "kernels" / _key(inputs, OF_KERNEL)
    kept.mkdir(parents=True, exist_ok=True)
    _publish(binary, made, kept)
    for old in _oldest(cache / "kernels", "kernel.json", KERNELS):
        shutil.rmtree(old)


def discard_old(cache: Path, current: Path, progress: Progress) -> None:
    """Remove all but the most recently used trees."""
    for old in _oldest(cache / "trees", "tree.json", TREES):
        if old != current:
            remove(old, progress)


def remove(old: Path, progress: Progress) -> None:
    if old.exists():
        progress.phase(f"removing the old {old.name}")
        shutil.rmtree(old)


def _key(inputs: dict[str, Any], names: tuple[str, ...]) -> str:
    """Names a directory: 16 hex digits of the digest over the chosen inputs."""
    return digests.of_parts((name, json.dumps(inputs[name], sort_keys=True).encode()) for name in names)[:16]


def _oldest(parent: Path, record: str, kept: int) -> list[Path]:
    """The directories below `parent` beyond the `kept` whose record was touched last; one without record is oldest."""

    def used_ns(directory: Path) -> int:
        path = directory / record
        return path.stat().st_mtime_ns if path.exists() else 0

    return sorted((path for path in parent.iterdir() if path.is_dir()), key=used_ns, reverse=True)[kept:]


def _publish(binary: Path, made: dict[str, Any], directory: Path) -> None:
    """The kernel first, then its record: a kernel without a matching record is built again."""
    new = directory / "linux.new"
    shutil.copy2(binary, new)
    with new.open("rb") as file:
        os.fsync(file.fileno())
    new.rename(directory / "linux")
    digests.write_json(directory / "kernel.json", made)
