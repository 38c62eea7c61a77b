# SPDX-License-Identifier: MIT
"""The programs that a build needs. All missing programs are reported at once, with their Debian packages."""

from __future__ import annotations

import os
import platform
import shutil

from virtual.kernel.errors import KernelError

PROCESSORS = ("x86_64", "amd64")  # of User-Mode Linux
BUILD_TOOLS = {
    "make": "make", "gcc": "gcc", "ld": "binutils", "flex": "flex", "bison": "bison", "bc": "bc",
    "patch": "patch",
}  # fmt: skip
PACKAGE_TOOLS = {"apt-get": "apt", "apt-cache": "apt", "dpkg-deb": "dpkg"}

# Variables that a calling make exports to its children. CC is a congestion control here.
OF_MAKE = ("CC", "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")


def environment() -> dict[str, str]:
    """The environment of child programs: English messages, and no variables of a calling make."""
    return {name: value for name, value in os.environ.items() if name not in OF_MAKE} | {"LC_ALL": "C"}


def missing(tools: dict[str, str]) -> dict[str, str]:
    """The programs that are not on the PATH."""
    return {name: package for name, package in tools.items() if shutil.which(name) is None}


def check_build_tools() -> None:
    """Raises KernelError for a processor without User-Mode Linux, and naming every missing program."""
    if platform.machine().lower() not in PROCESSORS:
        raise KernelError(
            f"virtual time needs User-Mode Linux, which runs on x86-64; this processor is {platform.machine()}: use "
            "CLOCK=real as root"
        )
    lacking = missing(BUILD_TOOLS)
    if lacking:
        packages = " ".join(sorted(set(lacking.values())))
        raise KernelError(
            f"building the kernel needs {', '.join(sorted(lacking))}, not found in PATH: "
            f"as root, apt-get install {packages} libc6-dev"
        )


def check_package_tools() -> None:
    """Raises KernelError if packages cannot be fetched: not Debian, or tools missing."""
    lacking = missing(PACKAGE_TOOLS)
    if lacking:
        raise KernelError(
            f"fetching the kernel's source needs {', '.join(sorted(lacking))}, not found in PATH (not Debian?): "
            "name a source of your own with KERNEL_SOURCE=/path/to/linux-6.12 (a tree or a tar archive)"
        )
