# SPDX-License-Identifier: MIT
"""Selects the patches that a kernel source needs, and applies them. A patch that does not fit is an error.

Head lines of a patch select sources by their content, because a version does not show backported changes:

    Unless: FILE has TEXT      not for a source whose FILE contains TEXT
    Only-if: FILE has TEXT     only for a source whose FILE contains TEXT
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from virtual.kernel import tools
from virtual.kernel.errors import KernelError

DIRECTORY = Path(__file__).parent / "patches"
CONDITION = re.compile(r"^(Unless|Only-if): (\S+) has (.+)$", re.MULTILINE)
# Added to drivers/net/Makefile: our own code is a directory of network drivers.
HOOK = "obj-y += bufferscope/\n"


def is_needed(patch: str, tree: Path) -> bool:
    """Whether this source needs the patch (its text)."""
    head = patch.split("\n--- ", 1)[0]
    for condition, name, text in CONDITION.findall(head):
        try:
            matches = text in (tree / name).read_text(errors="replace")
        except OSError:
            matches = False
        if matches == (condition == "Unless"):
            return False
    return True


def apply_all(tree: Path, version: str) -> list[str]:
    """Applies the patches that this source needs, in order of their names. Returns the names. Raises KernelError."""
    names = []
    for file in sorted(DIRECTORY.glob("*.patch")):
        if is_needed(file.read_text(), tree):
            _apply(file, tree, version)
            names.append(file.name)
    return names


def _apply(file: Path, tree: Path, version: str) -> None:
    command = ["patch", "--strip=1", "--batch", "--forward", "--fuzz=2", "--no-backup-if-mismatch", "--reject-file=-",
               f"--directory={tree}", f"--input={file}"]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", env=tools.environment())
    if result.returncode:
        failures = [
            line for line in (result.stdout + result.stderr).splitlines() if "FAILED" in line or "can't find" in line
        ]
        raise KernelError(
            f"applying {file} to Linux {version}: {'; '.join(failures) or 'patch failed'}: the patch does not fit this "
            "source (all patches are known to fit 6.1 and 6.12)"
        )


def hook_in(tree: Path) -> None:
    """Makes the build descend into drivers/net/bufferscope."""
    makefile = tree / "drivers/net/Makefile"
    text = makefile.read_text()
    if HOOK not in text:
        makefile.write_text(text.rstrip("\n") + "\n" + HOOK)
