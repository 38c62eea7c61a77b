# SPDX-License-Identifier: MIT
"""What this machine has: congestion controls, netem, BTF, tools, disk. Asked before anything is changed."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
BUILD = CHECKOUT / "build"
CONGESTION_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


@dataclass(frozen=True)
class Host:
    """What an experiment may ask of this host."""

    congestion_controls: tuple[str, ...] | None  # None: not known before the kernel is built
    netem: bool
    clock: str = "real"  # the clock it is a host for
    kernel: str = "this machine's kernel"  # whose congestion controls these are


def default_clock() -> str:
    """Real time where it is allowed: that needs no kernel to be built first (docs/measurements.md)."""
    return "real" if os.geteuid() == 0 else "virtual"


def probe(want_netem: bool) -> Host:
    """What this host has. netem is looked for only if wanted: that takes a network namespace of its own, and root."""
    return Host(_congestion_controls(), want_netem and _has_netem(), "real")


def _congestion_controls() -> tuple[str, ...]:
    """Those the kernel has now, and those it has as modules that were not loaded yet."""
    found = set(CONGESTION_CONTROLS.read_text().split())
    modules = Path("/lib/modules") / platform.release() / "modules.dep"
    if modules.exists():
        names = re.findall(r"/net/ipv4/tcp_(\w+)\.ko[.\w]*:", modules.read_text(errors="replace"))
        found |= set(names) - {"diag"}  # sock_diag's part for TCP, no algorithm
    return tuple(sorted(found))


def _has_netem() -> bool:
    """Whether a netem qdisc can be made: tried, in a network namespace that ends with the command."""
    if os.geteuid() != 0 or not shutil.which("tc") or not shutil.which("unshare"):
        return False
    command = ["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


def tool(name: str) -> str | None:
    """Path of a program: beside this Python first, where pip puts what it installs; last where Debian puts those of
    administrators, which ordinary users do not have in their PATH.
    """
    path = (str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin")
    return shutil.which(name, path=os.pathsep.join(path))
