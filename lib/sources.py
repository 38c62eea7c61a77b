# SPDX-License-Identifier: MIT
"""The files of the program itself, which a wheel (packaging.py) and a packed run have. Standard library only."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lib import places
from lib.places import CHECKOUT

# What an installed copy needs of no other: developers' files, and pictures of docs/.
LEFT_OUT = re.compile(
    r"(.*/)?(tests|conftest\.py)(/.*)?|bench/.*|\..*|docs/.*\.(svg|png)|.*\.egg-info/.*|PKG-INFO|commit\.json"
)
MADE = {"build", "results", "dist", ".venv"}  # at the top of an unpacked source archive that was used


def everything() -> dict[str, Path]:
    """The files by their paths in a checkout: those that git tracks; without git all."""
    if (CHECKOUT / ".git").exists():
        names = _git("ls-files", "-z").split("\0")
        return {name: CHECKOUT / name for name in sorted(names) if name and (CHECKOUT / name).is_file()}
    found = dict(_walked(CHECKOUT, ""))
    if places.IS_INSTALLED:
        found |= {name: path for name, path in _walked(CHECKOUT.parent, "bufferscope/") if "/tree/" not in name}
    return dict(sorted(found.items()))


def of_a_copy() -> dict[str, Path]:
    """The files of `everything` that an installed copy has."""
    return {name: path for name, path in everything().items() if not LEFT_OUT.fullmatch(name)}


def commit() -> dict[str, Any] | None:
    """`commit`, and whether tracked files have uncommitted changes (`dirty`); None if nobody knows."""
    if (made_from := places.commit()) and "commit" in made_from:
        return {"commit": made_from["commit"], "dirty": made_from["dirty"]}
    try:
        changes = _git("--no-optional-locks", "status", "--porcelain", "--untracked-files=no")
        return {"commit": _git("rev-parse", "HEAD").strip(), "dirty": bool(changes)}
    except (OSError, subprocess.CalledProcessError):
        return None


def _walked(top: Path, prefix: str) -> Iterator[tuple[str, Path]]:
    for directory, names, files in os.walk(top):
        made = MADE if Path(directory) == top else set()
        names[:] = [name for name in names if name not in made | {"__pycache__"}]
        for file in files:
            path = Path(directory, file)
            yield f"{prefix}{path.relative_to(top)}", path


def _git(*words: str) -> str:
    command = ["git", "-c", f"safe.directory={CHECKOUT}", "-C", str(CHECKOUT), *words]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout
