# SPDX-License-Identifier: MIT
"""Our patches: which of them a source needs, and applying them. A patch that does not fit is an error, never skipped.

Head lines of a patch say for which sources it is, by what they contain (a version would not tell what was backported):

    Unless: FILE has TEXT      not for a source that has it
    Only-if: FILE has TEXT     only for a source that has it
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from virtual.kernel import tools
from virtual.kernel.errors import KernelError

DIRECTORY = Path(__file__).parent / "patches"
CONDITION = re.compile(r"^(Unless|Only-if): (\S+) has (.+)$", re.MULTILINE)
# The last line of drivers/net/Makefile: our own code is a directory of network drivers.
HOOK = "obj-y += bufferscope/\n"


def wanted(patch: str, tree: Path) -> bool:
    """Whether this source needs the patch (its text)."""
    head = patch.split("\n--- ", 1)[0]
    for condition, name, text in CONDITION.findall(head):
        try:
            there = text in (tree / name).read_text(errors="replace")
        except OSError:
            there = False
        if there == (condition == "Unless"):
            return False
    return True


def apply_all(tree: Path, version: str) -> list[str]:
    """Apply what this source needs, in the order of names; returns the names. Raises KernelError naming the patch."""
    names = []
    for file in sorted(DIRECTORY.glob("*.patch")):
        if wanted(file.read_text(), tree):
            _apply(file, tree, version)
            names.append(file.name)
    return names


def _apply(file: Path, tree: Path, version: str) -> None:
    command = ["patch", "--strip=1", "--batch", "--forward", "--fuzz=2", "--no-backup-if-mismatch", "--reject-file=-",
               f"--directory={tree}", f"--input={file}"]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", env=tools.environment())
    if result.returncode:
        said = [
            line for line in (result.stdout + result.stderr).splitlines() if "FAILED" in line or "can't find" in line
        ]
        raise KernelError(
            f"applying {file} to Linux {version}: {'; '.join(said) or 'patch failed'}: this source is not one that the "
            "patch was made for (known to fit: 6.1, 6.12, 7.3)"
        )


def hook_in(tree: Path) -> None:
    """Have the build descend into drivers/net/bufferscope."""
    makefile = tree / "drivers/net/Makefile"
    text = makefile.read_text()
    if HOOK not in text:
        makefile.write_text(text.rstrip("\n") + "\n" + HOOK)
