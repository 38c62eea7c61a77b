# SPDX-License-Identifier: MIT
"""Sysctls of this network namespace through /proc/sys, with names as in sysctl(8)."""

from __future__ import annotations

import os
from pathlib import Path

from hosts.tune.commands import TuneError

ROOT = Path("/proc/sys")
ONLY_LAST_NUMBER = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")  # least, initial, most: only the last one is set
SECRET = ("tcp_fastopen_key",)
MOST_BYTES = 1 << 16  # of a value

_SWAP = str.maketrans("./", "/.")


def path_of(name: str) -> Path:
    return ROOT / name.translate(_SWAP)


def read(name: str) -> str | None:
    """A sysctl's value with single blanks; None if this kernel has no such sysctl."""
    try:
        return " ".join(path_of(name).read_text().split())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TuneError(f"reading {name}: {error.strerror}") from error


def write(name: str, value: str) -> None:
    """Raises TuneError if the kernel refuses the value, or keeps another one."""
    try:
        path_of(name).write_text(value + "\n")
    except OSError as error:
        raise TuneError(
            f"setting {name} to '{value}': {error.strerror}: run as root, with /proc/sys writable"
        ) from error
    kept = read(name)
    if kept != value:
        raise TuneError(f"setting {name} to '{value}': the kernel keeps '{kept}'")


def completed(name: str, wanted: str, present: str, may_shrink: bool) -> str:
    """The whole value to write. Of tcp_rmem and tcp_wmem only the last number changes. Unless the value `may_shrink`,
    the last number never becomes smaller.
    """
    if name not in ONLY_LAST_NUMBER:
        return wanted
    least, initial, most = (int(word) for word in present.split())
    # a buffer larger than requested does no harm, unless the request is for slow access links (`may_shrink`)
    most = int(wanted) if may_shrink else max(most, int(wanted))
    return f"{least} {initial} {most}"


def read_all(directory: str, prefix: str = "") -> dict[str, str]:
    """All readable sysctls in /proc/sys/`directory` whose names begin with `prefix`, except secrets.

    Three system calls per file, where Path.read_text makes seven: there are more than a hundred files, and in a virtual
    machine a system call costs 20 us.
    """
    values: dict[str, str] = {}
    for name in sorted(path.name for path in (ROOT / directory).iterdir()):
        if not name.startswith(prefix) or name in SECRET:
            continue
        try:
            file = os.open(f"{ROOT}/{directory}/{name}", os.O_RDONLY)
        except OSError:
            continue  # a write-only sysctl
        try:
            text = os.read(file, MOST_BYTES).decode()
        except OSError:
            continue  # a directory
        finally:
            os.close(file)
        values[f"{directory}/{name}".translate(_SWAP)] = " ".join(text.split())
    return values
