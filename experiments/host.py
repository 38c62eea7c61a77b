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
from typing import TYPE_CHECKING

from controlplane.targets import TARGETS
from experiments import capabilities

if TYPE_CHECKING:
    from experiments.resolve import Resolved

CHECKOUT = Path(__file__).resolve().parents[1]
BUILD = CHECKOUT / "build"
BTF = Path("/sys/kernel/btf/vmlinux")
FILE_SYSTEMS = Path("/proc/filesystems")
CONGESTION_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
BINARIES = ("softswitch", "collector", "tcp_trace", "tcp_flows", "open_loop", "traffic_sink")
# Tool -> Debian package. ansible-playbook comes with the Python packages of this checkout.
TOOLS = {"ip": "iproute2", "tc": "iproute2", "nsenter": "util-linux", "ethtool": "ethtool", "iperf3": "iperf3"}


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


def missing(spec: Resolved) -> list[str]:
    """Everything that `spec` needs and this host lacks, one line each with what to do; empty if nothing."""
    lines = []
    in_the_lab = not capabilities.on_testbed(TARGETS[spec.target].capabilities)
    if spec.clock == "real" and in_the_lab:
        lines += _missing_for_real_time()
    lines += [
        f"{name} is missing; install it: apt-get install {package}"
        for name, package in TOOLS.items()
        if in_the_lab and not tool(name) and (name != "iperf3" or spec.generator == "iperf3")
    ]
    if not tool("ansible-playbook"):
        lines.append("ansible-playbook is missing; install it: pip install -r requirements.txt")
    lines += missing_programs(spec.target)
    unbuilt = [name for name in BINARIES if not os.access(BUILD / name, os.X_OK)]
    if unbuilt:
        lines.append(f"{', '.join(f'build/{name}' for name in unbuilt)} missing; build first: make build")
    return lines


def missing_programs(target: str) -> list[str]:
    """What of a target's own programs is not there, a line each."""
    return [
        f"{name} is missing, which TARGET={target} runs: make deploy TARGET={target} installs it or says how to get it"
        for name in TARGETS[target].programs
        if not tool(name)
    ]


def _missing_for_real_time() -> list[str]:
    """What a lab on this machine's own kernel needs; one in virtual time brings a kernel, in which it is root."""
    lines = []
    if os.geteuid() != 0:
        lines.append(
            "not root: network namespaces, packet rings and BPF need it; run it again with sudo, or with CLOCK=virtual"
        )
    if not BTF.exists() and "tracefs" not in FILE_SYSTEMS.read_text().split():
        lines.append(
            f"the kernel has neither BTF ({BTF}) nor tracefs: the TCP tracer needs one of them; boot a kernel with "
            "CONFIG_DEBUG_INFO_BTF=y, or with CONFIG_TRACING=y (some columns are then null), or use CLOCK=virtual"
        )
    return lines
