# SPDX-License-Identifier: MIT
"""The caches of kernels. Each user has one, so that a second checkout of the same sources compiles nothing:

packages/      fetched source packages
trees/KEY/     a source, unpacked and patched (tree/, tree.json), its objects (obj/), the output of make (kernel.log)
kernels/KEY/   linux and kernel.json of a finished build
KEY is a digest over the inputs that decide the content: source, patches and unpacking rules for a tree, all inputs for
a kernel.

The machine has another, with kernels/ only, so that a second user compiles and fetches nothing. root makes it when
root builds a kernel. root may let a group write there; then only its members use it, because a kernel runs with the
rights of its user.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lib import user_cache
from virtual.kernel import digests
from virtual.kernel.progress import BuildProgress

# A tree with its objects takes 0.4 GB, a kernel 8 MB. Two trees serve two checkouts whose patches differ.
TREES, KERNELS = 2, 8
OF_TREE = ("source", "patches_digest", "unpack_digest")
OF_MACHINE = Path("/var/cache/bufferscope")
# kernel.json records the compiler, but a newer compiler does not cause a new build.
OF_KERNEL = (*OF_TREE, "fragment_digest", "staged_digest", "flags")


def of_user() -> Path:
    """Raises RunError."""
    return user_cache.directory("kernel")


def of_machine() -> Path | None:
    """The machine's cache, if there is one whose files root, this user or a group of this user answers for, or if root
    can make it. None if $XDG_CACHE_HOME says where the cache is.
    """
    if os.environ.get("XDG_CACHE_HOME"):
        return None
    with contextlib.suppress(OSError):
        if os.geteuid() == 0:
            OF_MACHINE.mkdir(mode=0o755, exist_ok=True)
            (OF_MACHINE / "kernels").mkdir(mode=0o755, exist_ok=True)
        groups = {os.getegid(), *os.getgroups()}
        for directory in (OF_MACHINE, OF_MACHINE / "kernels"):
            status = directory.lstat()
            others = 0o002 if status.st_gid in groups else 0o022
            if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (0, os.geteuid()) or status.st_mode & others:
                return None
        return OF_MACHINE
    return None


def is_writable(cache: Path | None) -> bool:
    return cache is not None and os.access(cache / "kernels", os.W_OK | os.X_OK)


def source_of(package: str, ours: Mapping[str, Any], directories: Iterable[Path]) -> dict[str, Any]:
    """The source of the newest finished kernel of `package` with the other inputs `ours`; {} if there is none."""
    found: list[tuple[int, dict[str, Any]]] = []
    for directory in directories:
        record = digests.read_json(directory / "kernel.json")
        source: Any = record.get("source")
        is_of_package = isinstance(source, dict) and source.get("kind") == "package" and source.get("name") == package
        if is_of_package and finished(directory, {"source": source, **ours}):
            found.append(((directory / "kernel.json").stat().st_mtime_ns, source))
    return max(found, key=lambda each: each[0], default=(0, {}))[1]


def kernels(cache: Path | None) -> list[Path]:
    """The directories of finished kernels."""
    return sorted((cache / "kernels").glob("*/")) if cache else []


def workspace(cache: Path, inputs: dict[str, Any]) -> Path:
    """The directory of the patched source of these inputs, and of its objects."""
    return cache / "trees" / _key(inputs, OF_TREE)


def finished(directory: Path, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The content of directory/kernel.json if directory/linux is whole and built from these inputs; else {}."""
    record = digests.read_json(directory / "kernel.json")
    binary = directory / "linux"
    same = all(record.get(name) == inputs[name] for name in OF_KERNEL)
    whole = same and binary.is_file() and digests.of_file(binary) == record.get("binary_digest")
    return record if whole else {}


def take(cache: Path, inputs: dict[str, Any], directory: Path) -> dict[str, Any]:
    """Copy the finished kernel of these inputs to `directory`, if cached; returns its kernel.json, or {}.

    A copy, not a link: a checkout's kernel survives the removal of the cache, and no write reaches the cached file.
    """
    entry = cache / "kernels" / _key(inputs, OF_KERNEL)
    record = finished(entry, inputs)
    if record:
        publish(entry / "linux", record, directory)
        with contextlib.suppress(OSError):  # the machine's cache: another user's, or mounted read-only
            os.utime(entry / "kernel.json")
    return record


def keep(cache: Path, inputs: dict[str, Any], binary: Path, record: dict[str, Any]) -> None:
    """Add a finished kernel; remove the least recently used kernels beyond KERNELS."""
    entry = cache / "kernels" / _key(inputs, OF_KERNEL)
    entry.mkdir(parents=True, exist_ok=True)
    publish(binary, record, entry)
    for old in _oldest(cache / "kernels", "kernel.json", KERNELS):
        shutil.rmtree(old, ignore_errors=True)  # in the machine's cache it may be another user's


def lock_of(workspace: Path) -> Path:
    """The lock file of a workspace; beside it, because a workspace that fails is removed."""
    return workspace.with_name(f"{workspace.name}.lock")


def discard_old(cache: Path, progress: BuildProgress) -> None:
    """Remove all but the most recently used trees. A tree whose lock is held is in use and stays."""
    for old in _oldest(cache / "trees", "tree.json", TREES):
        with lock_of(old).open("w") as file, contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(old, progress)


def remove(directory: Path, progress: BuildProgress) -> None:
    if directory.exists():
        progress.phase(f"removing {directory}")
        shutil.rmtree(directory)


def _key(inputs: dict[str, Any], names: tuple[str, ...]) -> str:
    """The name of a directory: 16 hex digits of the digest over the named inputs."""
    return digests.of_parts((name, json.dumps(inputs[name], sort_keys=True).encode()) for name in names)[:16]


def _oldest(parent: Path, record: str, kept: int) -> list[Path]:
    """The directories below `parent` except the `kept` most recently used. Without a record: never used."""

    def used_ns(directory: Path) -> int:
        path = directory / record
        return path.stat().st_mtime_ns if path.exists() else 0

    return sorted((path for path in parent.iterdir() if path.is_dir()), key=used_ns, reverse=True)[kept:]


def publish(binary: Path, record: dict[str, Any], directory: Path) -> None:
    """Write the kernel first, then its record: a kernel without a matching record is built again."""
    new = directory / "linux.new"
    shutil.copy2(binary, new)
    with new.open("rb") as file:
        os.fsync(file.fileno())
    new.rename(directory / "linux")
    digests.write_json(directory / "kernel.json", record)
