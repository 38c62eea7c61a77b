# SPDX-License-Identifier: MIT
"""From nothing to a kernel, top to bottom: find the source, unpack and patch it, bring in our code, configure, compile.

Everything is built in the user's cache (cache.py), whose finished kernels every checkout of that user takes. Files are
made to the side and renamed when they are whole, so an interrupted build is never taken for a finished one. A second
build waits for the first.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from virtual.kernel import cache, choice, compile, config, digests, patches, source, stage, tools, unpack
from virtual.kernel.errors import KernelError
from virtual.kernel.progress import Progress

BUILD = stage.CHECKOUT / "build/virtual"
STEPS = 1190  # lines that make prints for a whole build of Linux 6.12, near enough for the others
INTERRUPTED = (
    "interrupted; the kernel that was there before, if any, is as it was. The next call begins again with what was not "
    "whole: fetching, unpacking, or the rest of the compiling"
)


def ensure(directory: Path, given: Mapping[str, str], progress: Progress, place: Path | None = None) -> dict[str, Any]:
    """Make directory/linux and directory/kernel.json what the sources say; returns the latter. Raises KernelError.

    `given` chooses another source than the last time (choice.py); `place` is another cache than the user's own.
    """
    place = place or cache.of_user()
    try:
        for each in (directory, place):
            each.mkdir(parents=True, exist_ok=True)
        with locked(directory, progress), locked(place, progress) as lock:
            return _ensure(directory, place, given, progress, lock)
    except OSError as error:
        raise KernelError(f"building the kernel in {place} for {directory}: {error}") from error


def _ensure(directory: Path, place: Path, given: Mapping[str, str], progress: Progress, lock: int) -> dict[str, Any]:
    begin_s = time.monotonic()
    stage.make_pipeline()
    own = stage.collect()
    with choice.kept(given, directory) as chosen:
        origin = source.find(chosen, place, progress)
        inputs = describe(origin, own)
        done = cache.finished(directory, inputs) or cache.take(place, inputs, directory)
        if done:
            return done
        tools.check_build_tools()
        work = cache.workspace(place, inputs)
        names = prepare(origin, inputs, work, progress)
        cache.discard_old(place, work, progress)
    tree, objects = work / "tree", work / "obj"
    with (work / "kernel.log").open("wb+") as log:
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
    cache.keep(place, inputs, objects / "linux", made)
    done = cache.take(place, inputs, directory)
    progress.done(f"Linux {made['version']} built in {made['build_s']:.0f} s ({directory / 'linux'})")
    return done


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


def prepare(origin: source.Source, inputs: dict[str, Any], work: Path, progress: Progress) -> list[str]:
    """work/tree, unpacked and patched, unless it is there; returns the names of the patches applied."""
    tree, record = work / "tree", work / "tree.json"
    there = digests.read_json(record)
    if tree.is_dir() and there:
        os.utime(record)
        return list(there["patches"])
    partial = work / "tree.partial"
    cache.remove(partial, progress)
    cache.remove(tree, progress)
    unpack.check_space(work.parents[1])
    work.mkdir(parents=True, exist_ok=True)
    try:
        names = unpack_and_patch(origin, partial, progress)
    except KernelError:
        cache.remove(work, progress)
        raise
    partial.rename(tree)
    digests.write_json(record, {"patches": names})
    return names


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
