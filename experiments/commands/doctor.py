# SPDX-License-Identifier: MIT
"""The command `doctor`: what this machine can do, and what adds the rest. It asks the checks that refuse a run."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable
from typing import NamedTuple

from experiments.lab import ns3
from experiments.lab import virtual as virtual_lab
from experiments.setup import missing
from experiments.sweep import engine, slurm
from hosts.congestion_bpf import objects
from lib.errors import RunError
from lib.terminal import printable, say
from p4src.compile import v1model
from p4src.compile.sources import CannotCompile, find_compiler
from virtual import memory
from virtual.kernel import tools

SMALL_MIB = 256  # of a virtual machine with few flows
TARGET = "bmv2"


class Ability(NamedTuple):
    """`lacking`: a line for each thing that is missing, with what to do; none if the machine can do it."""

    name: str
    words: str  # that ask for it
    lacking: list[str]
    note: str = ""


def run(_: object = None) -> int:
    """Prints a line for each ability. Returns 0 if experiments are possible, else 1."""
    abilities = [
        Ability("virtual time", "CLOCK=virtual", [*_virtual(), *missing.tools(("iperf3",))], _kernel()),
        Ability("real time", "CLOCK=real", [*missing.for_real_time(), *missing.tools()]),
        Ability("own congestion controls by BPF", "CLOCK=real CC=./mycc.c", _bpf()),
        Ability("sweeps", "bufferscope sweep", _refusal(engine.program)),
        Ability("Slurm", "ENGINE=slurm", _refusal(slurm.check)),
        Ability("BMv2", "TARGET=bmv2", missing.programs(TARGET)),
        Ability("p4c", "P4=my_aqm.p4", _refusal(lambda: find_compiler("P4C", v1model.COMPILERS, v1model.P4C_PAGE))),
        Ability("ns-3", "SWITCH=ns3", [] if os.access(ns3.SIMULATOR, os.X_OK) else [ns3.MISSING]),
    ]
    width = max(len(each.name) for each in abilities)
    for each in abilities:
        note = f" ({each.note})" if each.note else ""
        say(f"{each.name:{width}}  {'no' if each.lacking else f'yes: {each.words}{note}'}")
        for line in each.lacking:
            say(printable(f"{'':{width}}  - {line}"))
    if unbuilt := missing.unbuilt():
        say(f"our programs: {', '.join(unbuilt)} not built yet; the first experiment builds them, or: make build")
    return int(all(each.lacking for each in abilities[:2]))


def _virtual() -> Iterable[str]:
    if platform.machine().lower() not in tools.PROCESSORS:
        yield f"its kernel, User-Mode Linux, runs on x86-64, and this processor is {platform.machine()}"
    if not virtual_lab.KERNEL.exists() and (lacking := tools.missing(tools.BUILD_TOOLS)):
        packages = " ".join(sorted({*lacking.values(), "libc6-dev"}))
        yield f"{', '.join(lacking)} missing, which build its kernel; as root: apt-get install {packages}"
    if shortage := memory.problem(SMALL_MIB):
        yield shortage


def _kernel() -> str:
    return "" if virtual_lab.KERNEL.exists() else "the first run takes its kernel from a cache, or builds it in minutes"


def _bpf() -> list[str]:
    lacking = objects.lacking()
    return [f"missing: {lacking}"] if lacking else []


def _refusal(check: Callable[[], object]) -> list[str]:
    try:
        check()
    except RunError as error:
        return error.lines
    except CannotCompile as error:
        return [str(error)]
    return []
