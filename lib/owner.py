# SPDX-License-Identifier: MIT
"""The owner of a run's files. Under sudo the files belong to the user who called sudo, so that this user can remove the
results, and go on without root. Files that the run did not make keep their owner.

The caller of sudo is trusted with root's rights, since root runs this checkout for that user; every other user is not.

What root makes in another user's checkout, except results, belongs to the checkout's owner, whose next make must be
able to change it. make then runs each of its lines with `python3 -m lib.owner LINE`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from lib.terminal import complain

CHECKOUT = Path(__file__).resolve().parents[1]
MADE = re.compile(r"build|\.venv|__pycache__|\..*_cache|.*\.egg-info")  # directories that make and Python make
_others = False  # whether results in directories of other users may be replaced


class NotOurs(OSError):
    """An existing directory belongs to another user."""


def allow_others() -> None:
    """From now on this process also replaces results in directories of other users: its user said so."""
    global _others
    _others = True


def sudo_user() -> pwd.struct_passwd | None:
    """The user who called sudo; None without sudo, if root called it, or if this process is not root's. Anybody can
    set SUDO_UID, so it may only be used to give rights away.
    """
    uid = os.environ.get("SUDO_UID", "")
    try:
        return pwd.getpwuid(int(uid)) if uid.isascii() and uid.isdigit() and int(uid) and os.geteuid() == 0 else None
    except KeyError:
        return None


class User(NamedTuple):
    """A user whom programs run as."""

    uid: int
    gid: int
    groups: list[int]


def caller() -> User:
    """The user who called sudo, or runs this process."""
    user = sudo_user()
    if user is None:
        return User(os.getuid(), os.getgid(), sorted(os.getgroups()))
    return User(user.pw_uid, user.pw_gid, sorted(os.getgrouplist(user.pw_name, user.pw_gid)))


def is_ours(descriptor: int) -> bool:
    """Whether an open file or directory belongs to this process's user or to the caller of sudo."""
    user = sudo_user()
    return os.fstat(descriptor).st_uid in {os.geteuid(), *([user.pw_uid] if user else [])}


def give_open(descriptor: int) -> None:
    """Gives an open file or directory of this process's user to the caller of sudo, if there is one."""
    user = sudo_user()
    if user and os.fstat(descriptor).st_uid == os.geteuid():
        os.fchown(descriptor, user.pw_uid, user.pw_gid)


def give(made: Path) -> None:
    """Gives the caller of sudo, if there is one, a file that this process made, or a directory with its contents.

    Only root's directories, and root's files with one hard link, change their owner. No link is followed. A directory
    is given after its contents, so that nobody can move the contents away meanwhile.
    """
    user = sudo_user()
    if not user:
        return
    if made.is_symlink() or not made.is_dir():
        _give_name(str(made), None, user.pw_uid, user.pw_gid)
    else:
        _give_tree(made, user.pw_uid, user.pw_gid)


def _give_tree(made: Path, uid: int, gid: int) -> None:
    for _, directories, files, descriptor in os.fwalk(made, topdown=False):
        for name in (*files, *directories):
            _give_name(name, descriptor, uid, gid)
    _give_name(str(made), None, uid, gid)


def _give_name(name: str, within: int | None, uid: int, gid: int) -> None:
    with contextlib.suppress(FileNotFoundError):  # another program removed it meanwhile
        status = os.stat(name, dir_fd=within, follow_symlinks=False)
        has_one_name = stat.S_ISDIR(status.st_mode) or status.st_nlink == 1
        if status.st_uid == os.geteuid() and has_one_name:
            os.chown(name, uid, gid, dir_fd=within, follow_symlinks=False)


def give_checkout(checkout: Path = CHECKOUT) -> None:
    """If root runs another user's checkout: gives that user what root made in it. Root's other files stay root's."""
    owner = checkout.stat()
    if os.geteuid() != 0 or owner.st_uid == 0:
        return
    for directory, names, _ in os.walk(checkout):
        for path in (Path(directory, name) for name in filter(MADE.fullmatch, names)):
            try:
                _give_tree(path, owner.st_uid, owner.st_gid)
            except OSError as error:
                complain(f"note: {path} still has files of root: {error.strerror}")
        names[:] = [name for name in names if not (name.startswith(".") or MADE.fullmatch(name) or name == "results")]


def check(directory: int, path: str, remedy: str) -> None:
    """Raises NotOurs if an open directory is another user's, unless this process's user allowed that. Its owner could
    plant links under the names that we write, or put our files elsewhere. `remedy` begins what to do.
    """
    if not (_others or is_ours(directory)):
        uid = os.fstat(directory).st_uid
        what = f"belongs to user {uid}, who could make a link of any file in it"
        raise NotOurs(errno.EPERM, f"{what}; {f'{remedy}, or ' if remedy else ''}run the command as that user", path)


def check_link(uid: int) -> None:
    """Raises OSError for a link that neither this process's user nor root made."""
    user = sudo_user()
    if uid not in {0, os.geteuid(), *([user.pw_uid] if user else [])}:
        raise NotOurs(errno.EPERM, f"leads through a link of user {uid}; give the path that the link leads to")


def _shell(line: str) -> int:
    """Runs a command line of the Makefile; returns its exit status. The terminal sends SIGINT to the command, too."""
    command = subprocess.Popen(["/bin/sh", "-c", line], close_fds=False)  # two may be those of make's job server
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: command.terminate())
    status = command.wait()
    give_checkout()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(_shell(sys.argv[1]))
