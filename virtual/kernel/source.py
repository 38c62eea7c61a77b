# SPDX-License-Identifier: MIT
"""The kernel's source: a Debian package fetched by its name, or the user's own tree, archive or package file."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from virtual.kernel import digests, tools, unpack
from virtual.kernel.choice import CHOICES, DEFAULT_PACKAGE, PACKAGE, SOURCE
from virtual.kernel.errors import KernelError
from virtual.kernel.progress import BuildProgress

# Files of every kernel source that can be built here, whatever its version.
OF_A_KERNEL = ("Makefile", "arch/um/Kconfig", "drivers/net/Makefile")
METAPACKAGE = "linux-source"  # depends on the source package of the release's kernel
MIB = 1 << 20


@dataclass(frozen=True)
class KernelSource:
    kind: str  # package, archive, tree
    name: str  # of the package, or the user's path
    version: str  # of the package; empty otherwise
    path: Path
    digest: str  # SHA-256 of the file, or of a tree's listing

    def identity(self) -> dict[str, Any]:
        """The source's entry in kernel.json."""
        return {"kind": self.kind, "name": self.name, "version": self.version, "digest": self.digest}


def find(choice: Mapping[str, str], directory: Path, progress: BuildProgress) -> KernelSource:
    """The chosen source; a package is fetched if `directory` does not have it. `directory` keeps packages and digests.

    Raises KernelError for a path that is not a source, as far as the check is possible without unpacking.
    """
    if SOURCE in choice:
        return _own(Path(choice[SOURCE]), directory)
    return _package(choice[PACKAGE], directory, progress)


def must_fetch(choice: Mapping[str, str], directory: Path) -> bool:
    """Whether `find` would fetch a package."""
    return PACKAGE in choice and choice[PACKAGE] != METAPACKAGE and not _fetched(choice[PACKAGE], directory)


def _fetched(name: str, directory: Path) -> list[Path]:
    """The files of a package, the newest last."""
    return sorted((directory / "packages").glob(f"{name}_*.deb"), key=lambda path: path.stat().st_mtime)


def _own(path: Path, directory: Path) -> KernelSource:
    """The user's own tree, archive or package file. Raises KernelError for anything else."""
    if path.is_dir():
        check_tree(path, f"{SOURCE}={path}")
        return KernelSource("tree", str(path), "", path, digests.of_listing(unpack.tree_files(path)))
    if not path.is_file():
        raise KernelError(f"{SOURCE}={path}: no such file or directory; choose again: {CHOICES}")
    kind, version = "archive", ""
    if path.suffix == ".deb":
        tools.check_package_tools()
        kind, version = "package", _package_version(path)
    else:
        unpack.check_archive(path, f"{SOURCE}={path}")
    return KernelSource(kind, str(path), version, path, _digest(path, directory))


def check_tree(tree: Path, origin: str) -> None:
    """Raises KernelError if a directory does not hold the source of a kernel."""
    lacking = [name for name in OF_A_KERNEL if not (tree / name).is_file()]
    if lacking:
        raise KernelError(f"{origin}: no kernel source, it has no {', '.join(lacking)}")
    kernel_version(tree)


def _package(name: str, directory: Path, progress: BuildProgress) -> KernelSource:
    """The Debian package of that name: the newest one fetched before, else fetched now."""
    if not re.fullmatch(r"linux-source(-[0-9][0-9.]*)?", name):
        raise KernelError(
            f"{PACKAGE}={name}: not the name of a kernel source package; allowed: {METAPACKAGE}, "
            f"or {METAPACKAGE}-VERSION such as {DEFAULT_PACKAGE}"
        )
    packages = directory / "packages"
    if name == METAPACKAGE:
        tools.check_package_tools()
        name, _ = _known(name)
    files = _fetched(name, directory)
    if not files:
        tools.check_package_tools()
        files = [_fetch(name, packages, progress)]
    path = files[-1]
    return KernelSource("package", name, path.name.split("_")[1].replace("%3a", ":"), path, _digest(path, directory))


def _fetch(name: str, packages: Path, progress: BuildProgress) -> Path:
    """Runs apt-get download in a temporary directory, and moves the complete package (apt checks its hash)."""
    if os.geteuid() == 0 and not _ask("apt-cache", "show", "--no-all-versions", name):
        progress.phase("refreshing the package lists")
        _ask("apt-get", "update", "-qq")
    name, size = _known(name)
    partial = packages / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    unpack.check_space(packages, size + unpack.NEEDED_BYTES)
    progress.phase(f"fetching {name}")
    command = ["apt-get", "download", "-qq", *(["-o", "APT::Sandbox::User=root"] if os.geteuid() == 0 else []), name]
    with (packages / "fetch.log").open("wb+") as log:
        process = subprocess.Popen(command, cwd=partial, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   env=tools.environment())  # fmt: skip
        try:
            while process.poll() is None:
                fetched = sum(path.stat().st_size for path in partial.iterdir())
                progress.advance(f"{fetched // MIB} of {size // MIB} MiB")
                time.sleep(0.1)
        finally:
            process.kill()
            process.wait()
        log.seek(0)
        output = log.read().decode(errors="replace").strip().splitlines()
    files = list(partial.glob("*.deb"))
    if process.returncode or len(files) != 1:
        raise KernelError(
            f"fetching the package {name}: {output[-1] if output else 'apt-get download left no file'}; "
            "check the network, or refresh the package lists (as root: apt-get update), or give another source: "
            f"{CHOICES}"
        )
    return files[0].rename(packages / files[0].name)


def _known(name: str) -> tuple[str, int]:
    """(name, size in bytes) of a package, with a metapackage resolved. Raises KernelError for an unknown package."""
    shown = _ask("apt-cache", "show", "--no-all-versions", name)
    if not shown:
        available = [
            word for word in _ask("apt-cache", "pkgnames", "linux-source-").split() if re.search(r"-[0-9.]+$", word)
        ]
        raise KernelError(
            f"the package {name} is not in the package lists (they have: {', '.join(sorted(available)) or 'none'}): "
            f"refresh them (as root: apt-get update), or give another source: {CHOICES}"
        )
    if name == METAPACKAGE:
        depends = re.search(r"^Depends:.*\b(linux-source-[0-9.]+)", shown, re.MULTILINE)
        if depends:
            return _known(depends[1])
    size = re.search(r"^Size: (\d+)", shown, re.MULTILINE)
    return name, int(size[1]) if size else 0


def _ask(*command: str) -> str:
    """The output of an apt command; empty if it fails."""
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", env=tools.environment())
    return result.stdout if result.returncode == 0 else ""


def _package_version(path: Path) -> str:
    version = _ask("dpkg-deb", "--field", str(path), "Version").strip()
    if not version:
        raise KernelError(f"{SOURCE}={path}: not a Debian package")
    return version


def _digest(path: Path, directory: Path) -> str:
    """SHA-256 of a large file. Digests are cached by the file's path, size and modification time."""
    memory = directory / "digests.json"
    status = path.stat()
    identity = {"bytes": status.st_size, "mtime_ns": status.st_mtime_ns}
    stored = digests.read_json(memory)
    entry = stored.get(str(path))
    if not isinstance(entry, dict) or {key: entry.get(key) for key in identity} != identity or "digest" not in entry:
        entry = identity | {"digest": digests.of_file(path)}
        digests.write_json(memory, stored | {str(path): entry})
    return str(entry["digest"])


def kernel_version(tree: Path) -> str:
    """VERSION.PATCHLEVEL.SUBLEVEL of the tree's Makefile. Raises KernelError if it has none."""
    try:
        text = (tree / "Makefile").read_text()
    except OSError as error:
        raise KernelError(f"reading the version of the kernel source: {error}") from error
    parts = [re.search(rf"^{name} = (\d+)$", text, re.MULTILINE) for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL")]
    if not all(parts):
        raise KernelError(f"{tree / 'Makefile'} does not say which version it is: no kernel source")
    return ".".join(part[1] for part in parts if part)
