# SPDX-License-Identifier: MIT
"""Sysctls of this network namespace through /proc/sys, by the names sysctl(8) has for them."""

from __future__ import annotations

from pathlib import Path

from hosts.tune.commands import TuneError

ROOT = Path("/proc/sys")
ONLY_LAST_NUMBER = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")  # least, initial, most: only the last is ours to say
SECRET = ("tcp_fastopen_key",)

_SWAP = str.maketrans("./", "/.")


def path_of(name: str) -> Path:
    return ROOT / name.translate(_SWAP)


def read(name: str) -> str | None:
    """Its value with single blanks; None when this kernel has no such sysctl."""
    try:
        return " ".join(path_of(name).read_text().split())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TuneError(f"reading {name}: {error.strerror}") from error


def write(name: str, value: str) -> None:
    """Raises TuneError when the kernel does not take it, or keeps something else."""
    try:
        path_of(name).write_text(value + "\n")
    except OSError as error:
        raise TuneError(
            f"setting {name} to '{value}': {error.strerror}: run as root, with /proc/sys writable"
        ) from error
    kept = read(name)
    if kept != value:
        raise TuneError(f"setting {name} to '{value}': the kernel keeps '{kept}'")


def completed(name: str, wanted: str, present: str) -> str:
    """The whole value to write: numbers of `present` that are not ours to say stay, unless they are above ours."""
    if name not in ONLY_LAST_NUMBER:
        return wanted
    least, initial, most = (int(word) for word in present.split())
    # a larger buffer than asked for limits nothing
    most = max(most, int(wanted))
    return f"{least} {initial} {most}"


def read_all(directory: str, prefix: str = "") -> dict[str, str]:
    """All that can be read below /proc/sys/`directory` whose name begins with `prefix`; secrets left out."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / directory).glob(f"{prefix}*")):
        if not path.is_file() or path.name in SECRET:
            continue
        try:
            found[str(path.relative_to(ROOT)).translate(_SWAP)] = " ".join(path.read_text().split())
        except OSError:
            continue  # write-only ones
    return found
