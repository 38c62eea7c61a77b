# SPDX-License-Identifier: MIT
"""The whole build, top to bottom: find the source, unpack and patch it, add our code, configure, compile.

The build happens in the user's cache (cache.py); every checkout of the user copies finished kernels from the cache, or
from the machine's cache, which gets the kernel, too, if the user may write there.
Files are written under temporary names and renamed when whole, so an interrupted build is never taken for a finished
build. Builds for one directory, and builds from one tree, wait for each other. Other builds wait only while one of them
finds or fetches its source, or copies a kernel.
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

from lib import places
from virtual.kernel import cache, choice, compile, config, digests, patches, source, stage, tools, unpack
from virtual.kernel.errors import KernelError
from virtual.kernel.progress import BuildProgress

BUILD = places.BUILD / "virtual"
STEPS = 1190  # steps that make prints for a whole build of Linux 6.12; about the same for other versions
# What kernel.json calls the inputs, beside the source.
MEANING = {
    "patches_digest": "patches",
    "fragment_digest": "settings (lab.config)",
    "unpack_digest": "rules of unpacking",
    "staged_digest": "code of ours",
    "flags": "flags of the compiler",
}
INTERRUPTED = (
    "interrupted; an earlier kernel, if any, is unchanged. The next build repeats an interrupted fetch or unpacking, "
    "and continues an interrupted compilation"
)


def ensure(
    directory: Path, chosen: Mapping[str, str], progress: BuildProgress, store: Path | None = None,
    users: Mapping[str, str] = stage.NO_FILES,
) -> dict[str, Any]:  # fmt: skip
    """Make directory/linux and directory/kernel.json current; returns kernel.json's content. Raises KernelError.

    `chosen`: one of choice.KEYS; {}: the last one (choice.py). `store`: the only cache (default: the user's and the
    machine's). `users`: users' code to build in (stage.collect); such a kernel stays the user's.
    """
    machine = None if store or users else cache.of_machine()
    store = store or cache.of_user()
    try:
        for path in (directory, store):
            path.mkdir(parents=True, exist_ok=True)
        with locked(directory / "lock", progress):
            return _ensure(directory, store, machine, chosen, progress, users)
    except OSError as error:
        raise KernelError(f"building the kernel in {store} for {directory}: {error}") from error


def _ensure(
    directory: Path, store: Path, machine: Path | None, chosen: Mapping[str, str], progress: BuildProgress,
    users: Mapping[str, str],
) -> dict[str, Any]:  # fmt: skip
    stage.make_pipeline()
    our_code = stage.collect(users=users)
    ours = describe(our_code)
    with contextlib.ExitStack() as until_built:
        with choice.remember(chosen, directory) as selected:
            if choice.FINISHED in selected:
                return given(Path(selected[choice.FINISHED]), ours, directory, users, is_new=bool(chosen))
            with locked(store / "lock", progress):
                if source.must_fetch(selected, store):  # a finished kernel needs no source
                    finished = [directory, *cache.kernels(store), *cache.kernels(machine)]
                    known = cache.source_of(selected[choice.PACKAGE], ours, finished)
                    if built := known and take({"source": known, **ours}, directory, store, machine):
                        return built
                origin = source.find(selected, store, progress)
                inputs = {"source": origin.identity(), **ours}
                built = take(inputs, directory, store, machine)
            if built:
                return built
            tools.check_build_tools()
            work = cache.workspace(store, inputs)
            work.parent.mkdir(exist_ok=True)
            shared = machine if cache.is_writable(machine) and origin.kind == "package" else None
            if shared:
                until_built.enter_context(locked(shared / "kernels/lock", progress))
            lock = until_built.enter_context(locked(cache.lock_of(work), progress))
            built = take(inputs, directory, store, machine)  # another checkout may just have built the same kernel
            if built:
                return built
            begin_s = time.monotonic()
            names = prepare(origin, inputs, work, progress)
            cache.discard_old(store, progress)
        record = inputs | {"patches": names} | build(work, our_code, lock, progress)
        record["build_s"] = round(time.monotonic() - begin_s, 1)
        with locked(store / "lock", progress):
            cache.keep(store, inputs, work / "obj/linux", record)
            if shared:
                with contextlib.suppress(OSError):  # a full disk, for example: this user has the kernel
                    cache.keep(shared, inputs, work / "obj/linux", record)
            built = cache.take(store, inputs, directory)
    progress.done(f"Linux {record['version']} built in {record['build_s']:.0f} s ({directory / 'linux'})")
    return built


def take(inputs: dict[str, Any], directory: Path, *caches: Path | None) -> dict[str, Any]:
    """The record of the kernel of these inputs in `directory`, copied from a cache if necessary; {} if none has it."""
    built = cache.finished(directory, inputs)
    for each in caches:
        built = built or (cache.take(each, inputs, directory) if each else {})
    return built


def given(path: Path, ours: dict[str, Any], directory: Path, users: Mapping[str, str], is_new: bool) -> dict[str, Any]:
    """Copies the finished kernel at `path` to `directory` and returns its record. Of an earlier choice the copy counts,
    too. Raises KernelError for anything but a whole kernel with our code in this version.
    """
    named = f"{choice.FINISHED}={path}"
    if users:
        raise KernelError(
            f"{named} is a finished kernel, and congestion controls and P4 programs of your own are compiled into one: "
            f"{choice.CHOICES}"
        )
    home = path if path.is_dir() else path.parent
    if path not in (home, home / "linux"):
        raise KernelError(f"{named} is not the file linux of a finished kernel, or its directory: {choice.CHOICES}")
    for place in (home,) if is_new else (home, directory):
        record = digests.read_json(place / "kernel.json")
        if "source" in record and cache.finished(place, {"source": record["source"], **ours}):
            if place != directory:
                cache.publish(place / "linux", record, directory)
            return record
    record = digests.read_json(home / "kernel.json")
    other = [MEANING[name] for name in ours if record.get(name) != ours[name]]
    problem = f"was built with other {', '.join(other)} than this version's" if other else "is not whole"
    if not record:
        problem = "is no finished kernel with its kernel.json beside it"
    raise KernelError(f"{named} {problem}; choose again: {choice.CHOICES}")


def build(work: Path, our_code: dict[str, bytes], lock: int, progress: BuildProgress) -> dict[str, Any]:
    """Configure and compile work/tree with our code into work/obj/linux; returns its entries in kernel.json."""
    tree, objects = work / "tree", work / "obj"
    with (work / "kernel.log").open("wb+") as log:
        version = source.kernel_version(tree)
        stage.write(our_code, tree)
        compile.fresh_objects(objects)
        configure(tree, objects, version, log, lock, progress)
        progress.phase(f"compiling Linux {version}")
        compile.make(tree, objects, ["linux"], log, lock, lambda n: progress.advance(f"step {n} of about {STEPS}"))
    return {
        "version": (objects / "include/config/kernel.release").read_text().strip(),
        "config_digest": digests.of_file(objects / ".config"),
        "compiler": compiler(),
        "binary_digest": digests.of_file(objects / "linux"),
    }


@contextlib.contextmanager
def locked(path: Path, progress: BuildProgress) -> Iterator[int]:
    """Hold a lock; yields its descriptor. The host releases the lock when no process has the file open."""
    flags = os.O_CREAT | os.O_CLOEXEC
    try:
        file = os.open(path, os.O_RDWR | flags, 0o644)  # on NFS only a file that is open for writing can be locked
    except PermissionError:
        file = os.open(path, os.O_RDONLY | flags, 0o644)  # another user's
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.phase("waiting for another build of the kernel")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)


def describe(our_code: dict[str, bytes]) -> dict[str, Any]:
    """All inputs of the build that decide the kernel's content, except source and compiler (see cache.OF_KERNEL)."""
    return {
        "patches_digest": digests.of_parts(
            (path.name, path.read_bytes()) for path in patches.DIRECTORY.glob("*.patch")
        ),
        "fragment_digest": digests.of_file(config.FRAGMENT),
        "unpack_digest": digests.of_parts([("rules", unpack.RULES.encode())]),
        "staged_digest": digests.of_parts(our_code.items()),
        "flags": compile.FLAGS,
    }


def prepare(origin: source.KernelSource, inputs: dict[str, Any], work: Path, progress: BuildProgress) -> list[str]:
    """Make work/tree, unpacked and patched, unless it exists; returns the names of the applied patches."""
    tree, record_file = work / "tree", work / "tree.json"
    previous = digests.read_json(record_file)
    if tree.is_dir() and previous:
        os.utime(record_file)
        return list(previous["patches"])
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
    digests.write_json(record_file, {"patches": names})
    return names


def unpack_and_patch(origin: source.KernelSource, target: Path, progress: BuildProgress) -> list[str]:
    """Unpack a source's needed files to `target` and patch them; returns the patches' names. Raises KernelError."""
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


def configure(tree: Path, objects: Path, version: str, log: BinaryIO, lock: int, progress: BuildProgress) -> None:
    """Make objects/.config from lab.config, unless it is current. Raises KernelError if a necessary setting is lost."""
    requested, last = config.fragment(tree), objects / "lab.config"
    if last.is_file() and last.read_text() == requested and (objects / ".config").is_file():
        return
    progress.phase("configuring")
    new = objects / "lab.config.new"
    new.write_text(requested)
    compile.make(tree, objects, [f"KCONFIG_ALLCONFIG={new}", "allnoconfig"], log, lock)
    config.check(requested, (objects / ".config").read_text(), version)
    new.rename(last)


def compiler() -> str:
    """The first line of `gcc --version`."""
    result = subprocess.run(["gcc", "--version"], capture_output=True, text=True, env=tools.environment())
    return result.stdout.partition("\n")[0]
