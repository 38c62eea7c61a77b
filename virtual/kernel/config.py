# SPDX-License-Identifier: MIT
"""The configuration: lab.config over allnoconfig, and all congestion controls of the source."""

from __future__ import annotations

import re
from pathlib import Path

from virtual.kernel.errors import KernelError

FRAGMENT = Path(__file__).parent / "lab.config"
# Requested settings that may be missing in the final configuration, and why. All others are required.
MAY_BE_MISSING = {
    "CONFIG_NET_SCH_DUALPI2": "new in Linux 6.17",
    "CONFIG_BASE_FULL": "gone in Linux 6.10, which always has the full size",
    "CONFIG_RANDOM_TRUST_CPU": "gone in Linux 6.2, which has a parameter, on by default",
    "CONFIG_RANDOM_TRUST_BOOTLOADER": "gone in Linux 6.2, which has a parameter, on by default",
    "CONFIG_PREEMPT_NONE": "Linux 7 has voluntary preemption instead",
    "CONFIG_PROC_SYSCTL": "Linux 7 has SYSCTL instead",
}
# Congestion controls of Linux 6.1 to 7.3, by setsockopt's names; reno is always built in.
OF_LINUX = (
    "bbr", "bic", "cdg", "cubic", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "nv", "reno", "scalable",
    "vegas", "veno", "westwood", "yeah",
)  # fmt: skip
# Our own, built in beside them: a C file each, named like its algorithm.
OURS = tuple(sorted(path.stem for path in (Path(__file__).parents[2] / "hosts/congestion").glob("*.c")))
NAMES = {"hstcp": "highspeed"}  # names in Kconfig that differ from setsockopt's
SETTING = re.compile(r"^(CONFIG_\w+)=(.+)$", re.MULTILINE)


def congestion_controls(tree: Path) -> list[str]:
    """Every TCP_CONG_* that the source's Kconfig offers, so that newer kernels' additions are included.

    Raises KernelError if there is none: then Kconfig has changed its form.
    """
    kconfig = tree / "net/ipv4/Kconfig"
    try:
        text = kconfig.read_text()
    except OSError as error:
        raise KernelError(f"reading the congestion controls of the source: {error}") from error
    names = re.findall(r"^config (TCP_CONG_[A-Z0-9_]+)\n\ttristate", text, re.MULTILINE)
    if not names:
        raise KernelError(f"{kconfig} has no TCP_CONG_* any more: look where they went, and change {__file__}")
    return sorted(set(names))


def offered(tree: Path) -> tuple[str, ...]:
    """All congestion controls of this source, without OURS, by setsockopt's names. Raises KernelError."""
    names = (name.removeprefix("TCP_CONG_").lower() for name in congestion_controls(tree))
    return tuple(sorted({"reno", "cubic", *(NAMES.get(name, name) for name in names)}))


def fragment(tree: Path) -> str:
    """The requested settings: lab.config and the congestion controls."""
    base = FRAGMENT.read_text()
    more = [name for name in congestion_controls(tree) if f"CONFIG_{name}=" not in base]
    return base + "\n# All congestion controls of this source.\n" + "".join(f"CONFIG_{name}=y\n" for name in more)


def check(requested: str, final: str, version: str) -> None:
    """Raises KernelError with all required settings that are missing in the final configuration."""
    settings = dict(SETTING.findall(final))
    lacking = [
        f"{name}={value}" for name, value in SETTING.findall(requested)
        if settings.get(name) != value and name not in MAY_BE_MISSING
    ]  # fmt: skip
    if lacking:
        raise KernelError(
            f"configuring Linux {version}: {', '.join(lacking)} cannot be set in this source (renamed, or "
            f"depends on a setting "
            f"that is off): change {FRAGMENT}, or choose another source"
        )
