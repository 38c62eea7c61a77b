# SPDX-License-Identifier: MIT
"""Reads and writes files, possibly as root, in directories that other users may write to.

A writer opens its directory once and does everything in it by the descriptor, so it does not matter what happens to the
directory's name meanwhile. On the way to a directory no link of another user is followed, and at the end of a name no
link at all (O_NOFOLLOW). New files are made with O_EXCL. A library that takes only a path writes into a directory that
nobody else may enter (`scratch`), and `deliver` moves its files from there. `write_text`, `replacing` and `link`
replace a name atomically, even that of a link or a FIFO. No open waits for the other end of a FIFO.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from lib import owner

SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
MOST_TRIES = 100  # names tried for a temporary file: killed processes that had this PID may have left some
MOST_LINKS = 40  # on the way to a directory, as in Linux
THIS_PROCESS = Path("/proc/self")


# Directories ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def directory(
    path: Path | str, within: int | None = None, *, follow: bool = False, make: bool = False
) -> Iterator[int]:
    """A descriptor of a directory. `path` is relative to the directory `within`, if that is given. `make` makes missing
    directories, which get the run's owner. A link at the end of `path` is refused, unless `follow`. Raises OSError.
    """
    descriptor = _walk(Path(path), within, follow, make)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def claimed(
    path: Path | str, within: int | None = None, *, follow: bool = False, make: bool = False, remedy: str = ""
) -> Iterator[int]:
    """Like `directory`, for results: raises owner.NotOurs if another user owns the directory (owner.check)."""
    with directory(path, within, follow=follow, make=make) as descriptor:
        owner.check(descriptor, str(path), remedy)
        yield descriptor


@contextlib.contextmanager
def scratch(name: str, within: int) -> Iterator[int]:
    """A new directory in `within` that no other user may enter. It is removed at the end, and so is the leftover of a
    killed process at the beginning. Raises OSError, also if another process uses the directory.
    """
    place = str(path_of(within).readlink() / name)
    _refuse_used(name, within, place)
    remove(name, within)
    os.mkdir(name, 0o700, dir_fd=within)
    with directory(name, within) as made:
        if os.fstat(made).st_uid != os.geteuid() or any(os.scandir(made)):
            raise OSError(errno.EBUSY, "was replaced by another directory while it was made", place)
        fcntl.flock(made, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            yield made
        except OSError as error:  # names the directory as users know it
            error.filename = str(error.filename or place).replace(str(path_of(made)), place)
            raise
        finally:
            with contextlib.suppress(OSError):
                remove(name, within)


def make(path: Path) -> None:
    """Makes a directory and its missing parents. A link is followed. Raises OSError."""
    with directory(path, follow=True, make=True):
        pass


def without_name(place: Path) -> int:
    """A descriptor of a new file in a directory, for reading and writing, that vanishes with its last descriptor.
    tempfile.TemporaryFile gives one a name for a moment where it cannot do without. Raises OSError.
    """
    with directory(place, follow=True) as held:
        try:
            return os.open(".", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600, dir_fd=held)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):  # no such files in this file system
                raise
        name = f".unnamed-{os.getpid()}-{os.urandom(8).hex()}"
        made = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=held)
        os.unlink(name, dir_fd=held)
        return made


def path_of(descriptor: int) -> Path:
    """A path that leads to an open directory, whatever its name is now, for this process and its children."""
    return THIS_PROCESS.resolve() / "fd" / str(descriptor)


def names(path: Path) -> list[Path]:
    """All files below a directory, as relative paths, sorted."""
    return sorted(file.relative_to(path) for file in path.rglob("*") if file.is_file())


def deliver(names: Iterable[Path | str], source: int, target: int) -> None:
    """Moves files or whole directories from `source` into `target`, in this order. They get the run's owner, and
    replace existing files. Missing directories of a name (figures/a.svg) are made. Raises OSError.
    """
    for name in map(Path, names):
        with contextlib.ExitStack() as held:
            here, there = source, target
            for part in name.parts[:-1]:
                here = held.enter_context(directory(part, here))
                there = held.enter_context(claimed(part, there, make=True))
            owner.give(path_of(here) / name.name)
            os.rename(name.name, name.name, src_dir_fd=here, dst_dir_fd=there)


@contextlib.contextmanager
def complete(output: Path) -> Iterator[Path]:
    """A path at which to write a file or directory. When the body ends without an exception, it becomes `output`.
    Raises OSError.
    """
    with directory(output.absolute().parent, follow=True) as parent, scratch(f".{output.name}.part", parent) as made:
        yield path_of(made) / output.name
        deliver([output.name], made, parent)


def _walk(path: Path, within: int | None, follow: bool, make: bool) -> int:
    """Opens a directory part by part. Between two looks at a whole path, its owner could lead the way elsewhere."""
    parts = [*reversed(path.parts if within is not None else path.absolute().parts[1:])]
    if path.is_relative_to("/proc") and path.is_relative_to(own := THIS_PROCESS.resolve() / "fd"):  # from path_of
        number, *rest = path.relative_to(own).parts
        within, parts = int(number), rest[::-1]
    here = os.open("/", os.O_PATH | os.O_CLOEXEC) if within is None else os.dup(within)
    links = 0
    try:
        while parts:
            entry = _entry(parts.pop(), here, make)
            status = os.fstat(entry)
            if not stat.S_ISLNK(status.st_mode):
                os.close(here)
                here = entry
                continue
            target = Path(os.readlink("", dir_fd=entry))
            os.close(entry)
            links += 1
            if (not parts and not follow) or links > MOST_LINKS:
                raise OSError(errno.ELOOP, f"is a link; use its target, {target}")
            owner.check_link(status.st_uid)
            parts += reversed(target.parts[target.is_absolute() :])
            if target.is_absolute():
                os.close(here)
                here = os.open("/", os.O_PATH | os.O_CLOEXEC)
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=here)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        os.close(here)


def _entry(name: str, within: int, make: bool) -> int:
    """A descriptor of an entry of a directory, of a link itself; with `make` a missing entry is made a directory."""
    try:
        return os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=within)
    except FileNotFoundError:
        if not make:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=within)
    made = os.open(name, os.O_RDONLY | os.O_DIRECTORY | SAFE, dir_fd=within)
    owner.give_open(made)
    return made


def _refuse_used(name: str, within: int, place: str) -> None:
    try:
        left = os.open(name, os.O_RDONLY | os.O_DIRECTORY | SAFE, dir_fd=within)
    except OSError:
        return
    try:
        fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OSError(errno.EBUSY, "is in use by another process; wait until that process ends", place) from None
    finally:
        os.close(left)


# Files ----------------------------------------------------------------------------------------------------------------


def open_regular(path: Path | str, flags: int, within: int | None = None) -> int:
    """A descriptor of a regular file. A file that is opened for writing must have only one hard link: another link
    might be the file of another user. With O_CREAT the file gets the run's owner.
    """
    descriptor = os.open(path, flags | SAFE, 0o666, dir_fd=within)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or (status.st_nlink > 1 and flags & (os.O_WRONLY | os.O_RDWR)):
            raise OSError(errno.EINVAL, "is not a regular file, or has a second hard link", str(path))
        os.set_blocking(descriptor, True)
        if flags & os.O_CREAT:
            owner.give_open(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def write_text(path: Path | str, text: str, within: int | None = None) -> None:
    """Replaces a file atomically. Raises OSError."""
    with replacing(path, within) as file:
        file.write(text.encode())


def as_json(content: Any) -> bytes:
    return (json.dumps(content, indent=1) + "\n").encode()


def write_json(path: Path, content: Any) -> None:
    """Writes a JSON file whole or not at all."""
    data = as_json(content)
    with replacing(path) as file:
        file.write(data)


@contextlib.contextmanager
def replacing(path: Path | str, within: int | None = None) -> Iterator[IO[bytes]]:
    """A temporary file that replaces `path` when the body ends without an exception. Raises OSError, which names a
    file.
    """
    with _beside(path, within) as (parent, name):
        descriptor, temporary = _new(
            name, lambda each: open_regular(each, os.O_WRONLY | os.O_CREAT | os.O_EXCL, parent)
        )
        try:
            with os.fdopen(descriptor, "wb") as file:
                with contextlib.suppress(OSError):  # a file system without locks
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # while it is written it is no leftover
                yield file
            os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=parent)
            if isinstance(error, OSError) and not error.filename:  # of a descriptor, as when the disk is full
                raise OSError(error.errno, error.strerror, str(path)) from None
            raise


def link(path: Path, target: str) -> None:
    """Replaces `path` with a symbolic link, atomically. Raises OSError."""
    with _beside(path) as (parent, name):
        _, temporary = _new(name, lambda each: os.symlink(target, each, dir_fd=parent))
        try:
            os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=parent)
            raise


def remove(name: str, within: int) -> None:
    """Removes a file, a link, or a directory with its content; does nothing if there is none. Raises OSError."""
    try:
        os.unlink(name, dir_fd=within)
    except IsADirectoryError:
        shutil.rmtree(name, dir_fd=within)
    except FileNotFoundError:
        pass


def exists(name: str, within: int) -> bool:
    """Whether the directory `within` has an entry of that name, even a dangling link."""
    try:
        os.stat(name, dir_fd=within, follow_symlinks=False)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _beside(path: Path | str, within: int | None = None) -> Iterator[tuple[int, str]]:
    """The directory of a file, and the file's name there."""
    with directory(Path(path).parent, within, follow=True) as parent:
        yield parent, Path(path).name


def _new(name: str, make: Callable[[str], Any]) -> tuple[Any, str]:
    """The result of `make` for the first free temporary name, and that name. Names are not random: nothing in the
    virtual-time machine may depend on entropy.
    """
    for number in range(MOST_TRIES):
        temporary = f".{name}.{os.getpid()}.{number}.part"
        with contextlib.suppress(FileExistsError):
            return make(temporary), temporary
    raise OSError(errno.EEXIST, os.strerror(errno.EEXIST), name)
