# SPDX-License-Identifier: MIT
"""The features that this machine offers: congestion controls, netem, tools. Probed before anything is changed."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from hosts.congestion_bpf import objects
from lib.places import BUILD, CHECKOUT

__all__ = ["BUILD", "CHECKOUT"]

CONGESTION_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
# The congestion controls that programs without privileges may choose.
ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
# What root needs for real time.
CAPABILITIES = {"CAP_SYS_ADMIN": 21, "CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13}  # include/uapi/linux/capability.h
ALL_USERS = ["0", "0", str(2**32 - 1)]  # the map of users of the initial user namespace


@dataclass(frozen=True)
class Host:
    """The features that a host offers to experiments."""

    # None: not known, because the host is a testbed's, or its kernel's source is an archive that is not built yet.
    congestion_controls: tuple[str, ...] | None
    netem: bool
    clock: str = "real"  # the clock of the host's experiments
    kernel: str = "this machine's kernel"  # the kernel that has `congestion_controls`, in words
    for_programs: tuple[str, ...] | None = None  # congestion controls for sockets without privileges; None: all
    bpf_lacks: str = ""  # a feature that BPF congestion controls need and the kernel lacks; "" if it lacks none
    testbed: bool = False  # describes the machines of an inventory, whose features are not probed


OF_TESTBED = Host(None, netem=True, kernel="the machines' kernels", testbed=True)


def default_clock() -> str:
    """Real time for root, because real time needs no kernel build first (docs/measurements.md). Virtual time for
    others, and for root of a container, because real time needs root.
    """
    return "real" if os.geteuid() == 0 and not lacking_rights() else "virtual"


def lacking_rights() -> str:
    """The rights that a root of a container lacks and real time needs, in words; '' if this process has them."""
    status = Path("/proc/self/status").read_text()
    effective = int(re.findall(r"^CapEff:\s+([0-9a-f]+)$", status, re.MULTILINE)[0], 16)
    if lacking := [name for name, bit in CAPABILITIES.items() if not effective >> bit & 1]:
        return f"this process lacks {', '.join(lacking)}"
    if Path("/proc/self/uid_map").read_text().split() != ALL_USERS:
        return "this process is root of a user namespace only, and lacks the kernel's own rights"
    return ""


def probe(want_netem: bool) -> Host:
    """The features of this host. Probing netem needs root and a network namespace, so it is done only on request."""
    lacks = objects.lacking()
    own_sources = () if lacks else objects.own_sources()
    names = tuple(sorted({*in_kernel(), *own_sources}))
    return Host(
        names, want_netem and _has_netem(), "real", for_programs=tuple(ALLOWED.read_text().split()), bpf_lacks=lacks
    )


def in_kernel() -> tuple[str, ...]:
    """The congestion controls in this machine's kernel, and those in modules that are not loaded yet."""
    available = set(CONGESTION_CONTROLS.read_text().split())
    modules = Path("/lib/modules") / platform.release() / "modules.dep"
    if modules.exists():
        names = re.findall(r"/net/ipv4/tcp_(\w+)\.ko[.\w]*:", modules.read_text(errors="replace"))
        available |= set(names) - {"diag"}  # tcp_diag belongs to sock_diag and is not an algorithm
    return tuple(sorted(available))


def _has_netem() -> bool:
    """Whether the kernel can make a netem qdisc: tried in a network namespace that ends with the command."""
    if os.geteuid() != 0 or not shutil.which("tc") or not shutil.which("unshare"):
        return False
    command = ["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


def tool(name: str) -> str | None:
    """Path of a program. Searches beside this Python first, where pip installs programs, then PATH, then the sbin
    directories, which are not in the PATH of ordinary users.
    """
    path = (str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin")
    return shutil.which(name, path=os.pathsep.join(path))
