# SPDX-License-Identifier: MIT
"""From nothing to a kernel, top to bottom: find the source, unpack and patch it, bring in our code, configure, compile.

What is there is used again as far as its digests match. Everything is made to the side and renamed when it is whole, so
an interrupted build is never taken for a finished one; who comes second waits.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from virtual.kernel import choice, compile, config, digests, patches, source, stage, tools, unpack
from virtual.kernel.errors import KernelError
from virtual.kernel.progress import Progress

BUILD = stage.CHECKOUT / "build/virtual"
STEPS = 1190  # lines that make prints for a whole build of Linux 6.12, near enough for the others
INTERRUPTED = (
    "interrupted; the kernel that was there before, if any, is as it was. The next call begins again with what was not "
    "whole: fetching, unpacking, or the rest of the compiling"
)
# What decides whether a kernel is up to date. The compiler is recorded, but a newer one is no reason to build again.
DECISIVE = ("source", "patches_digest", "fragment_digest", "unpack_digest", "staged_digest")


def ensure(directory: Path, given: Mapping[str, str], progress: Progress) -> dict[str, Any]:
    """Make directory/linux and directory/kernel.json what the sources say; returns the latter. Raises KernelError.

    `given` chooses another source than the last time (choice.py).
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with locked(directory, progress) as lock:
            return _ensure(directory, given, progress, lock)
    except OSError as error:
        raise KernelError(f"building the kernel in {directory}: {error}") from error


def _ensure(directory: Path, given: Mapping[str, str], progress: Progress, lock: int) -> dict[str, Any]:
    begin_s = time.monotonic()
    stage.make_pipeline()
    own = stage.collect()
    with choice.kept(given, directory) as chosen:
        origin = source.find(chosen, directory, progress)
        inputs = describe(origin, own)
        done = finished(directory, inputs)
        if done:
            return done
        tools.check_build_tools()
        names = prepare(origin, inputs, directory, progress)
    tree, objects = directory / "tree", directory / "obj"
    with (directory / "kernel.log").open("wb+") as log:
        version = source.kernel_version(tree)
        stage.write(own, tree)
        compile.fresh_objects(objects)
        configure(tree, objects, version, log, lock, progress)
        progress.phase(f"compiling Linux {version}")
        compile.make(tree, objects, ["linux"], log, lock, lambda n: progress.advance(f"step {n} of about {STEPS}"))
    made = inputs | {
        "version": (objects / "include/config/kernel.release").read_text().strip(),
        "config_digest": digests.of_file(objects / ".config"),
        "patches": names,
        "compiler": compiler(),
        "binary_digest": digests.of_file(objects / "linux"),
        "build_s": round(time.monotonic() - begin_s, 1),
    }
    publish(objects / "linux", made, directory)
    progress.done(f"Linux {made['version']} built in {made['build_s']:.0f} s ({directory / 'linux'})")
    return made


@contextlib.contextmanager
def locked(directory: Path, progress: Progress) -> Iterator[int]:
    """One build at a time; the lock goes with the last process that holds it, however that ends. Yields its number."""
    with (directory / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.phase("waiting for another build of the kernel")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def describe(origin: source.Source, own: dict[str, bytes]) -> dict[str, Any]:
    """All that decides what the kernel will be."""
    return {
        "source": origin.identity(),
        "patches_digest": digests.of_parts(
            (path.name, path.read_bytes()) for path in patches.DIRECTORY.glob("*.patch")
        ),
        "fragment_digest": digests.of_file(config.FRAGMENT),
        "unpack_digest": digests.of_parts([("rules", unpack.RULES.encode())]),
        "staged_digest": digests.of_parts(own.items()),
    }


def finished(directory: Path, inputs: dict[str, Any]) -> dict[str, Any]:
    """kernel.json, if it and the kernel beside it are whole and of these inputs; else {}."""
    made = digests.read_json(directory / "kernel.json")
    binary = directory / "linux"
    same = all(made.get(name) == inputs[name] for name in DECISIVE)
    whole = same and binary.is_file() and digests.of_file(binary) == made.get("binary_digest")
    return made if whole else {}


def prepare(origin: source.Source, inputs: dict[str, Any], directory: Path, progress: Progress) -> list[str]:
    """directory/tree, unpacked and patched, unless it is there; returns the names of the patches applied.

    An older tree and what was built of it stay until the new one is known to be a kernel that the patches fit.
    """
    tree, record = directory / "tree", directory / "tree.json"
    key = {name: inputs[name] for name in ("source", "patches_digest", "unpack_digest")}
    there = digests.read_json(record)
    if tree.is_dir() and {name: there.get(name) for name in key} == key:
        return list(there["patches"])
    partial = directory / "tree.partial"
    remove(partial, progress)
    unpack.check_space(directory, unpack.SOURCE_BYTES if tree.is_dir() else unpack.NEEDED_BYTES)
    try:
        names = unpack_and_patch(origin, partial, progress)
    except KernelError:
        remove(partial, progress)
        raise
    record.unlink(missing_ok=True)
    remove(tree, progress)
    remove(directory / "obj", progress)
    partial.rename(tree)
    digests.write_json(record, key | {"patches": names})
    return names


def remove(old: Path, progress: Progress) -> None:
    if old.exists():
        progress.phase(f"removing the old {old.name}")
        shutil.rmtree(old)


def unpack_and_patch(origin: source.Source, target: Path, progress: Progress) -> list[str]:
    """The needed files of a source in `target`, with our patches; returns their names. Raises KernelError."""
    progress.phase(f"unpacking {origin.path.name}")
    target.mkdir()

    def advanced(count: int) -> None:
        progress.advance(f"{count // source.MIB} MiB")

    if origin.kind == "tree":
        unpack.copy_tree(origin.path, target, advanced)
    elif origin.kind == "package":
        unpack.unpack_package(origin.path, target, advanced)
    else:
        with origin.path.open("rb") as stream:
            unpack.unpack_archive(stream, target, str(origin.path), advanced)
    source.check_tree(target, str(origin.path))
    version = source.kernel_version(target)
    progress.phase(f"patching Linux {version}")
    names = patches.apply_all(target, version)
    patches.hook_in(target)
    return names


def configure(tree: Path, objects: Path, version: str, log: BinaryIO, lock: int, progress: Progress) -> None:
    """objects/.config from lab.config, unless it is there; raises KernelError if it lacks something necessary."""
    asked, used = config.fragment(tree), objects / "lab.config"
    if used.is_file() and used.read_text() == asked and (objects / ".config").is_file():
        return
    progress.phase("configuring")
    new = objects / "lab.config.new"
    new.write_text(asked)
    compile.make(tree, objects, [f"KCONFIG_ALLCONFIG={new}", "allnoconfig"], log, lock)
    config.check(asked, (objects / ".config").read_text(), version)
    new.rename(used)


def compiler() -> str:
    """The first line of what the compiler says of itself."""
    result = subprocess.run(["gcc", "--version"], capture_output=True, text=True, env=tools.environment())
    return result.stdout.partition("\n")[0]


def publish(binary: Path, made: dict[str, Any], directory: Path) -> None:
    """The kernel first, then what says that it is whole: between the two nothing matches, and it is built again."""
    new = directory / "linux.new"
    shutil.copy2(binary, new)
    with new.open("rb") as file:
        os.fsync(file.fileno())
    new.rename(directory / "linux")
    digests.write_json(directory / "kernel.json", made)
