# SPDX-License-Identifier: MIT
"""The requirements of an experiment that this host lacks."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path

from controlplane import bmv2_client
from controlplane.switch import SwitchError
from controlplane.targets import TARGETS
from experiments.machine import cell, host, p4_program
from lib.errors import RunError
from model.experiment import Experiment
from virtual import PATH

BTF = Path("/sys/kernel/btf/vmlinux")
FILE_SYSTEMS = Path("/proc/filesystems")
BINARIES = ("softswitch", "collector", "tcp_trace", "congestion_control", "tcp_flows", "open_loop", "traffic_sink")
# Tool -> Debian package. ansible-playbook comes with the Python packages of this checkout.
TOOLS = {
    "ip": "iproute2",
    "tc": "iproute2",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "ethtool": "ethtool",
    "iperf3": "iperf3",
}


def of(spec: Experiment, in_the_lab: bool = True) -> list[str]:
    """Everything that `spec` needs and this host lacks, one line each with what to do; empty if nothing. Without
    `in_the_lab` the run's hosts are other machines, whose programs are not checked here.
    """
    lines = []
    if spec.clock == "real" and in_the_lab:
        lines += for_real_time()
    if in_the_lab:
        lines += tools(() if spec.generator == "iperf3" else ("iperf3",))
    if not in_the_lab and not host.tool("ssh"):
        lines.append("ssh is missing; install it: apt-get install openssh-client")
    if not in_the_lab and not hasattr(tarfile, "data_filter"):
        lines.append("this Python unpacks no archive safely: use Python 3.11.4 or newer for runs on other machines")
    if not host.tool("ansible-playbook"):
        lines.append("ansible-playbook is missing; install it: pip install -r requirements.txt")
    lines += _clients(spec)
    if in_the_lab:
        lines += programs(spec.target) or (_outside(spec.target) if spec.clock == "virtual" else [])
    if lacking := unbuilt():
        lines.append(f"{', '.join(f'build/{name}' for name in lacking)} missing; build first: make build")
    return lines + p4_program.out_of_date()


def tools(without: tuple[str, ...] = ()) -> list[str]:
    """A line for each missing program of Debian's that hosts of the lab run."""
    return [
        f"{name} is missing; install it: apt-get install {package}"
        for name, package in TOOLS.items()
        if name not in without and not host.tool(name)
    ]


def unbuilt() -> list[str]:
    """The programs of ours that are not built."""
    return [name for name in BINARIES if not os.access(host.BUILD / name, os.X_OK)]


def programs(target: str) -> list[str]:
    """A line for each of the target's own programs that is missing."""
    return [
        f"{name} is missing, which TARGET={target} runs: make deploy TARGET={target} installs it or says how to get it"
        for name in TARGETS[target].programs
        if not host.tool(name)
    ]


def _clients(spec: Experiment) -> list[str]:
    """A line if this machine lacks the modules that reach the target."""
    if spec.target != "bmv2":
        return []
    if spec.clock == "virtual" and bmv2_client.DIRECTORY_VARIABLE in os.environ:
        return [f"{bmv2_client.DIRECTORY_VARIABLE} has no effect in virtual time: install BMv2's modules in /usr/local"]
    try:
        bmv2_client.load_packages()
    except SwitchError as error:
        return [f"on this machine: {error}"]
    return []


def _outside(target: str) -> list[str]:
    """A line for each of the target's own programs that a virtual machine does not find. PATH is a constant in virtual
    machines, so that runs repeat to the byte.
    """
    return [
        f"{name} is {host.tool(name)}; in virtual time it is sought in {PATH}: install it there"
        for name in TARGETS[target].programs
        if not shutil.which(name, path=PATH)
    ]


def _refused_privileges() -> str:
    """What this machine refuses to root and a cell needs; '' if nothing. A cell is tried, too: seccomp or AppArmor may
    refuse what the capabilities allow.
    """
    if refused := host.lacking_rights():
        return refused
    try:
        cell.run(lambda: None)
    except RunError as error:
        return "; ".join(error.lines)
    return ""


def for_real_time() -> list[str]:
    """Missing requirements of a lab on this machine's kernel. A lab in virtual time is root in a kernel of its own."""
    lines = []
    if os.geteuid() != 0:
        lines.append(
            "not root: network namespaces, packet rings and BPF need root; run the command again with sudo, or with "
            "CLOCK=virtual"
        )
    elif refused := _refused_privileges():
        lines.append(
            f"{refused}, as in a container: real time needs network namespaces, mounts and packet rings; use "
            "CLOCK=virtual, or give the container these rights (docker run --privileged)"
        )
    if not BTF.exists() and "tracefs" not in FILE_SYSTEMS.read_text().split():
        lines.append(
            f"the kernel has neither BTF ({BTF}) nor tracefs: the TCP tracer needs one of them; boot a kernel with "
            "CONFIG_DEBUG_INFO_BTF=y, or with CONFIG_TRACING=y (some columns are then null), or use CLOCK=virtual"
        )
    return lines
