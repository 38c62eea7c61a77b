# SPDX-License-Identifier: MIT
"""Runs a stranger's program by bubblewrap: without privileges and without a network, with one writable directory. It
sees this machine's /usr, its Python with its packages and nothing else: no home, no secret of /etc, no other process.

root's program becomes nobody's: in a user namespace without other users its files would still be root's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.machine import host
from lib.errors import RunError
from virtual import PATH

NOBODY = 65534
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# What libraries and tools read everywhere: without it they take other paths, and a run reads its clock at other times.
NAMES = tuple(
    f"/etc/{name}"
    for name in (
        "alternatives", "ethertypes", "gai.conf", "group", "host.conf", "hosts", "iproute2", "ld.so.cache",
        "ld.so.conf", "ld.so.conf.d", "libnl-3", "locale.alias", "localtime", "mke2fs.conf", "netconfig", "networks",
        "nsswitch.conf", "passwd", "protocols", "rpc", "services", "ssl/openssl.cnf", "timezone", "xattr.conf",
    )
)  # fmt: skip
HIDDEN = ("/home", "/root", "/run", "/var/tmp")
EMPTY = ("/sys", "/mnt", "/opt", "/srv")  # a virtual machine mounts its own /sys on that of its host


def command(argv: Sequence[str], directory: Path, environment: Mapping[str, str]) -> list[str]:
    """The command line that runs `argv` in `directory`, which alone it may change. Raises RunError without bubblewrap.

    The directory must be below none of HIDDEN's or /tmp's links, and for root be nobody's (`give`).
    """
    program = host.tool("bwrap")
    if not program:
        raise RunError("bwrap is missing, which confines others' programs; install it: apt-get install bubblewrap")
    words = [program, "--die-with-parent", "--new-session", "--clearenv", "--hostname", "confined"]
    words += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    is_root = os.geteuid() == 0
    words += ["--cap-drop", "ALL"]
    for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP") if is_root else ():
        words += ["--cap-add", capability]
    if not is_root:
        words += ["--unshare-user", "--disable-userns"]
    for path in SYSTEM:
        if Path(path).is_symlink():
            words += ["--symlink", str(Path(path).readlink()), path]
        else:
            words += ["--ro-bind-try", path, path]
    words += [
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--perms",
        "1777",
        "--tmpfs",
        "/tmp",
        "--perms",
        "1777",
        "--tmpfs",
        "/dev/shm",
    ]
    for path in HIDDEN:
        words += ["--tmpfs", path]
    for path in EMPTY:
        words += ["--perms", "0755", "--dir", path]
    python = _python()
    for parent in sorted(
        {str(each) for path in (*python, str(directory), *NAMES) for each in list(Path(path).parents)[:-1]}
    ):
        words += ["--perms", "0755", "--dir", parent]  # bubblewrap's own would be root's alone
    for path in (*python, *NAMES):
        words += ["--ro-bind-try", path, path]
    words += ["--bind", str(directory), str(directory), "--chdir", str(directory)]
    for name, value in {"PATH": PATH, "HOME": str(directory), "LC_ALL": "C.UTF-8", **environment}.items():
        words += ["--setenv", name, value]
    drop = [
        "setpriv",
        f"--reuid={NOBODY}",
        f"--regid={NOBODY}",
        "--clear-groups",
        "--inh-caps=-all",
        "--bounding-set=-all",
    ]
    return [*words, "--", *(drop if is_root else []), *argv]


def give(directory: Path) -> None:
    """Lets the confined program change a directory of this process's user, with its contents."""
    if os.geteuid() == 0:
        for path in (directory, *directory.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def packages() -> list[str]:
    """The directories of packages outside of this Python's own: a user's, and those that a .pth file adds."""
    own = (sys.prefix, sys.base_prefix)
    found = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    return [path for path in found if not any(Path(path).is_relative_to(each) for each in own)]


def _python() -> list[str]:
    """The directories of this Python and its packages, outermost first, without those in SYSTEM."""
    prefixes = (sys.prefix, sys.base_prefix, *packages())
    wanted = {str(Path(path).resolve()) for path in prefixes} | set(prefixes)
    return sorted(path for path in wanted if not any(Path(path).is_relative_to(each) for each in SYSTEM))
