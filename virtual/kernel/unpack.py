# SPDX-License-Identifier: MIT
"""Selects the needed files of a kernel source, and extracts them from a package, an archive or a directory.

A whole tree has 1.7 GB, most of it drivers and architectures that this kernel does not build. All files that make and
Kconfig read are kept. Below the large directories (BARE), other files are kept only where this configuration compiles
them (CODE). The rule is the same for archives and trees.
"""

from __future__ import annotations

import lzma
import os
import re
import shutil
import stat
import subprocess
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from virtual.kernel.errors import KernelError

NEEDED_BYTES = 600_000_000  # source 290 MB, objects 120 MB in Linux 7.3, and a margin; excludes the package

# Below these, only files that Kconfig and make read are needed, except in the directories of CODE.
BARE = ("Documentation", "arch", "drivers", "samples", "sound", "tools")
CODE = re.compile(
    r"""arch/(um|x86)/
      | drivers/(base|char|clocksource|firmware|of|pci|ptp|tty|virtio)/
      | drivers/net/[^/]+$                # not the vendors' directories
      | drivers/[^/]+$
      | tools/(build|include|lib|scripts)/
    """,
    re.VERBOSE,
)
READ_BY_MAKE = re.compile(r"(Kconfig|Makefile|Kbuild|Build)[^/]*$|/Platform$")
# Build output and version control: the kernel's build refuses a tree with build output in it.
NEVER = re.compile(
    r"""(^|/)\.(git|svn|hg)(/|$)
      | ^\.config(\.old)?$
      | ^include/(config|generated)/ | ^arch/[^/]+/include/generated/
      | \.(o|a|cmd|ko|mod)$
    """,
    re.VERBOSE,
)
# tarfile's exceptions for damaged files and other formats; TypeError is from ord() of an empty field in a cut header.
DAMAGED = (tarfile.TarError, EOFError, OSError, ValueError, TypeError, lzma.LZMAError, zlib.error)
# Part of the key of a cached tree.
RULES = repr((BARE, CODE.pattern, READ_BY_MAKE.pattern, NEVER.pattern))


def needed(path: str) -> bool:
    """Whether this file of a kernel tree (path relative to its top) is needed to build our configuration."""
    if NEVER.search(path):
        return False
    if path.split("/", 1)[0] not in BARE:
        return True
    return bool(READ_BY_MAKE.search(path) or CODE.match(path))


def check_archive(path: Path, origin: str) -> None:
    """Raises KernelError if the file is not a tar archive, or has an unknown compression. Reads only its start."""
    try:
        with tarfile.open(path, "r|*") as archive:
            first = archive.next()
    except DAMAGED:
        first = None
    if first is None:
        raise KernelError(
            f"{origin}: neither a directory, nor a tar archive (plain, .gz, .bz2 or .xz), nor a Debian package (.deb)"
        )


def check_space(directory: Path, needed_bytes: int = NEEDED_BYTES) -> None:
    """Raises KernelError if the disk has no space for source and objects; called before anything is written."""
    free = shutil.disk_usage(directory).free
    if free < needed_bytes:
        raise KernelError(
            f"building the kernel in {directory} needs {needed_bytes / 1e9:.1f} GB, only {free / 1e9:.1f} GB are free: "
            "make room, or set XDG_CACHE_HOME to a directory on another disk"
        )


def _safe(name: str) -> PurePosixPath:
    """The path of an archive's member below the archive's top directory. Refuses absolute paths and `..`."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise KernelError(f"unpacking the kernel source: its path {name!r} leaves the tree; not unpacked")
    parts = [part for part in path.parts if part != "."]
    return PurePosixPath(*parts[1:])


def unpack_archive(stream: IO[bytes], target: Path, origin: str, advanced: Callable[[int], None]) -> None:
    """Unpack the needed files of a kernel tar archive (plain, gz, bz2, xz) into target, without its top directory.

    Calls `advanced` with the number of uncompressed bytes read so far.
    """
    created: set[Path] = set()
    try:
        with tarfile.open(fileobj=stream, mode="r|*") as archive:
            for member in archive:
                advanced(member.offset)
                path = _safe(member.name)
                if not path.parts or not needed(str(path)):
                    continue
                where = target / path
                if where.parent not in created:
                    where.parent.mkdir(parents=True, exist_ok=True)
                    created.add(where.parent)
                if member.issym():
                    _link(where, member.linkname, target)
                elif member.isreg():
                    content = archive.extractfile(member)
                    assert content is not None
                    with where.open("wb") as file:
                        shutil.copyfileobj(content, file, 1 << 20)
                        os.fchmod(file.fileno(), 0o755 if member.mode & 0o100 else 0o644)
                    os.utime(where, (member.mtime, member.mtime))
    except DAMAGED as error:
        raise KernelError(
            f"unpacking {origin} into {target}: {error}; the file may be damaged or the disk full"
        ) from error


def _link(where: Path, points_to: str, top: Path) -> None:
    """Make a symbolic link of the source. Links that leave the tree are skipped; the build needs none of them."""
    inside = os.path.normpath(where.parent / points_to)
    if Path(inside).is_relative_to(top):
        where.symlink_to(points_to)


def unpack_package(package: Path, target: Path, advanced: Callable[[int], None]) -> None:
    """Unpack the kernel archive inside a Debian package linux-source-*."""
    command = ["dpkg-deb", "--fsys-tarfile", str(package)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            _unpack_inner(process.stdout, package, target, advanced)
        finally:
            process.stdout.close()
            process.kill()


def _unpack_inner(stream: IO[bytes], package: Path, target: Path, advanced: Callable[[int], None]) -> None:
    try:
        with tarfile.open(fileobj=stream, mode="r|") as outer:
            for member in outer:
                if member.isreg() and re.search(r"/linux-source-[^/]*\.tar(\.\w+)?$", member.name):
                    inner = outer.extractfile(member)
                    assert inner is not None
                    unpack_archive(inner, target, package.name, advanced)
                    return
    except tarfile.TarError as error:
        raise KernelError(
            f"reading the package {package}: {error}; if make kernel fetched this file, remove the file: the next "
            "build fetches it again"
        ) from error
    raise KernelError(f"the package {package} holds no usr/src/linux-source-*.tar.*: it is not a kernel source package")


def tree_files(tree: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The needed files of a kernel tree, in sorted order: relative path and lstat."""

    def walk(directory: Path, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
        for entry in sorted(os.scandir(directory), key=lambda entry: entry.name):
            path = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                if not NEVER.search(path + "/"):
                    yield from walk(Path(entry.path), path + "/")
            elif needed(path):
                yield path, entry.stat(follow_symlinks=False)

    return walk(tree, "")


def copy_tree(tree: Path, target: Path, advanced: Callable[[int], None]) -> None:
    """Copy the needed files of a user's tree. Copies, not links, so that the build never writes to the user's tree."""
    copied = 0
    for path, status in tree_files(tree):
        where = target / path
        where.parent.mkdir(parents=True, exist_ok=True)
        if stat.S_ISLNK(status.st_mode):
            _link(where, str((tree / path).readlink()), target)
        elif stat.S_ISREG(status.st_mode):
            shutil.copy2(tree / path, where)
            copied += status.st_size
            advanced(copied)
