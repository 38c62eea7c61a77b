# SPDX-License-Identifier: MIT
"""Whose files a run's are. Under sudo they belong to the user who called it: a result is nothing that only root can
remove, and the same user can go on without root. What the run did not make keeps its owner.

The caller of sudo is trusted with root's rights, since root runs this checkout for that user; every other user is not.
"""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path


class NotOurs(OSError):
    """A directory of another user is where one of ours should be."""


def sudo_user() -> pwd.struct_passwd | None:
    """Who called sudo; None when root itself did. SUDO_UID is our parent's word, used only to lose rights by."""
    uid = os.environ.get("SUDO_UID", "")
    try:
        return pwd.getpwuid(int(uid)) if uid.isascii() and uid.isdigit() and int(uid) and os.geteuid() == 0 else None
    except KeyError:
        return None


def is_ours(descriptor: int) -> bool:
    """Whether an open file or directory belongs to this process's user or to the caller of sudo."""
    user = sudo_user()
    return os.fstat(descriptor).st_uid in {os.geteuid(), *([user.pw_uid] if user else [])}


def give_open(descriptor: int) -> None:
    """An open file or directory that this process made goes to the caller of sudo, if there is one."""
    user = sudo_user()
    if user and os.fstat(descriptor).st_uid == os.geteuid():
        os.fchown(descriptor, user.pw_uid, user.pw_gid)


def give(made: Path) -> None:
    """What this process made, all that lies in a directory included, goes to the caller of sudo, if there is one.

    Only what belongs to root changes its owner. No link is followed, and a directory is given after its contents, so
    that nobody can move it away meanwhile.
    """
    user = sudo_user()
    if not user:
        return
    if made.is_symlink() or not made.is_dir():
        _give_name(str(made), None, user)
        return
    for _, directories, files, descriptor in os.fwalk(made, topdown=False):
        for name in (*files, *directories):
            _give_name(name, descriptor, user)
    _give_name(str(made), None, user)


def _give_name(name: str, within: int | None, user: pwd.struct_passwd) -> None:
    found = os.stat(name, dir_fd=within, follow_symlinks=False)
    alone = stat.S_ISDIR(found.st_mode) or found.st_nlink == 1
    if found.st_uid == os.geteuid() and alone:
        os.chown(name, user.pw_uid, user.pw_gid, dir_fd=within, follow_symlinks=False)


def make(directory: Path) -> None:
    """Makes a directory and its parents, all of them the run's. Raises OSError."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    for path in missing:
        give(path)


def claim(directory: Path) -> None:
    """Makes a directory, or makes sure that it is no link and belongs to us: elsewhere another user could plant links
    for whatever is written there. Raises NotOurs, OSError.
    """
    make(directory)
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not is_ours(descriptor):
            raise NotOurs(0, f"belongs to user {os.fstat(descriptor).st_uid}", str(directory))
    finally:
        os.close(descriptor)
