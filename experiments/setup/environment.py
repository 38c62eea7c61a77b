# SPDX-License-Identifier: MIT
"""environment.json has the conditions of a result: commit, program, kernel, processors, settings, every queue."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from controlplane.targets import TARGETS
from experiments.machine import host
from experiments.plan.repetition_plan import RunPlan
from experiments.spec import topology
from lib import sources, syscalls
from virtual import offers

CPU_TIMES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")  # proc(5), /proc/stat


def describe(program: dict[str, str]) -> dict[str, Any]:
    """The kernel of the lab. `program` is the switch's description of its P4 program."""
    return {
        "program": program,
        "kernel": kernel_names(),
        "boot_parameters": without_checkout(_first_line("/proc/cmdline")),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "clock_source": _first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    }


def without_checkout(text: str) -> str:
    """The text with paths relative to this checkout. Runs are published, and the checkout's location is irrelevant."""
    text = text.replace(str(host.BUILD), "build").replace(f"{host.CHECKOUT}/", "").replace(str(host.CHECKOUT), ".")
    return re.sub(r"BUFFERSCOPE_\w+=\S+ ?", "", text)


def machine() -> dict[str, Any]:
    """This machine, and the versions of installed programs."""
    return {
        "format_version": 1,
        "created_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "git": sources.commit(),
        "cpu": _cpu(),
        "versions": _versions(),
    }


def congestion_controls(plan: RunPlan) -> dict[str, Any]:
    """The congestion controls of a run. Call it in the run's kernel. `from` is `kernel`, or `bpf` with the name that
    the algorithm had in the kernel.
    """
    files = {source["name"]: source for source in plan.congestion_sources}
    parameters = offers.parameters(list(plan.congestion_controls))
    return {
        name: {
            **({"from": "bpf", "kernel_name": plan.kernel_names[name]} if name in plan.kernel_names else {}),
            **({} if name in plan.kernel_names else {"from": "kernel", "parameters": parameters.get(name, {})}),
            **({key: files[name][key] for key in ("file", "sha256")} if name in files else {}),
        }
        for name in plan.congestion_controls
    }


def target_programs(target: str) -> dict[str, str]:
    """Versions of a target's third-party programs."""
    versions = {}
    for name in TARGETS[target].programs:
        done = subprocess.run(
            [name, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        versions[name] = (done.stdout.splitlines() or [""])[0].strip()
    return versions


def kernel_names() -> dict[str, str]:
    return {"release": platform.release(), "version": platform.version(), "machine": platform.machine()}


def hosts(namespaces: Iterable[str]) -> dict[str, Any]:
    """Sysctls, offloads and queues of namespaces of the lab, as they are now."""
    from hosts.tune import inventory

    shown = {}
    for name in namespaces:
        with syscalls.in_network_namespace(topology.netns(name)):
            shown[name] = inventory.show()
    return shown


def load() -> dict[str, Any]:
    """How busy the machine is: load averages; and, since boot, processor times in ns (steal: taken by the hypervisor),
    started processes and context switches.
    """
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    lines = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    counts = {line[0]: int(line[1]) for line in lines if line[0] in ("processes", "ctxt")}
    ticks = lines[0][1:]
    times = {f"{name}_ns": int(value) * (10**9 // ticks_per_s) for name, value in zip(CPU_TIMES, ticks, strict=False)}
    return {
        "mono_ns": time.monotonic_ns(), "cpu": times, "loadavg": os.getloadavg(),
        "processes": counts.get("processes"), "context_switches": counts.get("ctxt"),
    }  # fmt: skip


def _cpu() -> dict[str, Any]:
    text = Path("/proc/cpuinfo").read_text(errors="replace")
    model = re.search(r"^(?:model name|Model)\s*: (.*)$", text, re.M)
    flags = re.search(r"^flags\s*: (.*)$", text, re.M)
    return {
        "model": model[1] if model else platform.processor(),
        "count": os.cpu_count(),
        "virtual_machine": bool(flags and "hypervisor" in flags[1].split()),
        "governor": _first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    }


def _versions() -> dict[str, str]:
    from importlib import metadata

    versions = {"python": sys.version.split()[0]}
    for name in ("ansible-core", "numpy", "polars", "matplotlib", "pydantic"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    for name, option in (("iperf3", "--version"), ("ip", "-Version")):
        done = subprocess.run([name, option], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        versions[name] = (done.stdout.splitlines() or [""])[0]
    return versions


def _first_line(path: str) -> str:
    """The first line of a kernel file; '' if there is no such file."""
    try:
        return Path(path).read_text(errors="replace").split("\n", 1)[0].strip()
    except OSError:
        return ""
