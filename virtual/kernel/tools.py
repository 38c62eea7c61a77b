# SPDX-License-Identifier: MIT
"""The programs that a build needs; what is missing is named all at once, with the Debian package that has it."""

from __future__ import annotations

import os
import shutil

from virtual.kernel.errors import KernelError

BUILD_TOOLS = {
    "make": "make", "gcc": "gcc", "ld": "binutils", "flex": "flex", "bison": "bison", "bc": "bc",
    "patch": "patch",
}  # fmt: skip
PACKAGE_TOOLS = {"apt-get": "apt", "apt-cache": "apt", "dpkg-deb": "dpkg"}

# make hands its own variables down, and CC is a congestion control here.
OF_MAKE = ("CC", "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")


def environment() -> dict[str, str]:
    """For programs whose messages are read: English, and nothing of a make that called us."""
    return {name: value for name, value in os.environ.items() if name not in OF_MAKE} | {"LC_ALL": "C"}


def missing(tools: dict[str, str]) -> dict[str, str]:
    """Those of the programs that PATH does not have."""
    return {name: package for name, package in tools.items() if shutil.which(name) is None}


def check_build_tools() -> None:
    """Raises KernelError naming every missing program."""
    lacking = missing(BUILD_TOOLS)
    if lacking:
        packages = " ".join(sorted(set(lacking.values())))
        raise KernelError(
            f"building the kernel needs {', '.join(sorted(lacking))}, not found in PATH: "
            f"as root, apt-get install {packages} libc6-dev"
        )


def check_package_tools() -> None:
    """Raises KernelError where packages cannot be fetched: no Debian, or too little of it."""
    lacking = missing(PACKAGE_TOOLS)
    if lacking:
        raise KernelError(
            f"fetching the kernel's source needs {', '.join(sorted(lacking))}, not found in PATH (not Debian?): "
            "name a source of your own with KERNEL_SOURCE=/path/to/linux-6.12 (a tree or a tar archive)"
        )
