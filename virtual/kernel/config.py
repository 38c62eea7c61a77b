# SPDX-License-Identifier: MIT
"""The configuration: lab.config over allnoconfig, with all congestion controls that the source has."""

from __future__ import annotations

import re
from pathlib import Path

from virtual.kernel.errors import KernelError

FRAGMENT = Path(__file__).parent / "lab.config"
# What is asked for and may be missing in the result, and why. Everything else must be there.
MAY_BE_MISSING = {
    "CONFIG_BASE_FULL": "gone in Linux 6.10, which always has the full size",
    "CONFIG_RANDOM_TRUST_CPU": "gone in Linux 6.2, which has a parameter, on by default",
    "CONFIG_RANDOM_TRUST_BOOTLOADER": "gone in Linux 6.2, which has a parameter, on by default",
    "CONFIG_PREEMPT_NONE": "Linux 7 has voluntary preemption instead",
    "CONFIG_PROC_SYSCTL": "Linux 7 has SYSCTL instead",
}
# What the sources of Linux 6.1 to 7.3 have, by the names that setsockopt takes; reno is always there.
OF_LINUX = (
    "bbr", "bic", "cdg", "cubic", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "nv", "reno", "scalable",
    "vegas", "veno", "westwood", "yeah",
)  # fmt: skip
NAMES = {"hstcp": "highspeed"}  # where Kconfig has another than the code
SETTING = re.compile(r"^(CONFIG_\w+)=(.+)$", re.MULTILINE)


def congestion_controls(tree: Path) -> list[str]:
    """Every TCP_CONG_* that can be chosen, from the source itself: a newer kernel's new ones come in by themselves.

    Raises KernelError when there is none: then the file is not what it was.
    """
    kconfig = tree / "net/ipv4/Kconfig"
    try:
        text = kconfig.read_text()
    except OSError as error:
        raise KernelError(f"reading the congestion controls of the source: {error}") from error
    found = re.findall(r"^config (TCP_CONG_[A-Z0-9_]+)\n\ttristate", text, re.MULTILINE)
    if not found:
        raise KernelError(f"{kconfig} has no TCP_CONG_* any more: look where they went, and change {__file__}")
    return sorted(set(found))


def offered(tree: Path) -> tuple[str, ...]:
    """Names of all congestion controls that a kernel of this source will have. Raises KernelError."""
    found = (name.removeprefix("TCP_CONG_").lower() for name in congestion_controls(tree))
    return tuple(sorted({"reno", "cubic", *(NAMES.get(name, name) for name in found)}))


def fragment(tree: Path) -> str:
    """What is asked for: lab.config and the congestion controls."""
    own = FRAGMENT.read_text()
    more = [name for name in congestion_controls(tree) if f"CONFIG_{name}=" not in own]
    return own + "\n# All congestion controls of this source.\n" + "".join(f"CONFIG_{name}=y\n" for name in more)


def check(asked: str, final: str, version: str) -> None:
    """Raises KernelError naming everything necessary that was asked for and is not in the final configuration."""
    have = dict(SETTING.findall(final))
    lacking = [
        f"{name}={value}" for name, value in SETTING.findall(asked)
        if have.get(name) != value and name not in MAY_BE_MISSING
    ]  # fmt: skip
    if lacking:
        raise KernelError(
            f"configuring Linux {version}: {', '.join(lacking)} cannot be had there (renamed, or it needs something "
            f"that is not set): change {FRAGMENT}, or choose another source"
        )
