# SPDX-License-Identifier: MIT
"""Where the program's files are. A checkout and an installed wheel differ in nothing else.

CHECKOUT: all that is read: Python, C, P4, formats, playbooks. An installed wheel has its own copy (lib/packaging.py),
which nothing writes to. BUILD: all that is built: `build` in the checkout; of an installed wheel a directory in the
user's cache, which BUFFERSCOPE_BUILD names to every program that is started, Makefiles included. Results are in the
current directory.
"""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
IS_INSTALLED = CHECKOUT.name == "tree" and (CHECKOUT.parent / "__init__.py").exists()  # by a wheel
COMMIT = CHECKOUT / "commit.json"  # of a wheel or a source archive (lib/packaging.py)
VARIABLES = ("BUFFERSCOPE_BUILD", "BUFFERSCOPE_PYTHON")


def commit() -> dict[str, Any] | None:
    """`commit` and `dirty` of the checkout that a wheel or a source archive was made from; None in a checkout."""
    import json  # here: a virtual machine imports this module, too, and each page of code costs a fault

    found: dict[str, Any] | None = json.loads(COMMIT.read_text()) if COMMIT.exists() else None
    return found


def for_programs() -> dict[str, str]:
    """The variables by which a program with an environment of its own finds BUILD."""
    return {name: os.environ[name] for name in VARIABLES if name in os.environ}


def shipped(path: str | Path) -> Path:
    """The file, or if there is none here, our own file of this relative name, such as experiments/specs/ecn.yaml."""
    here, own = Path(path), CHECKOUT / path
    return own if not here.exists() and not here.is_absolute() and own.is_file() else here


def cache() -> Path | None:
    """What is built once per user, and built again if it is missing: `$BUFFERSCOPE_CACHE`, or
    `$XDG_CACHE_HOME/bufferscope`, by default below ~/.cache of the effective user; None for a user without a home.
    `$HOME` is ignored: with sudo it may be another user's home, and root would leave files there.
    """
    for name, below in (("BUFFERSCOPE_CACHE", ""), ("XDG_CACHE_HOME", "bufferscope")):
        if (given := Path(os.environ.get(name, ""))).is_absolute():
            return given / below
    try:
        return Path(pwd.getpwuid(os.geteuid()).pw_dir) / ".cache/bufferscope"
    except KeyError:
        return None


def _build() -> Path:
    given = os.environ.get("BUFFERSCOPE_BUILD", "")
    if given or not IS_INSTALLED:
        return Path(given) if given else CHECKOUT / "build"
    directory = cache()
    if directory is None:  # whoever builds says so
        return CHECKOUT / "build"
    build = directory / "build" / f"{(commit() or {})['digest'][:12]}-{os.uname().machine}"
    os.environ.update({"BUFFERSCOPE_BUILD": str(build), "BUFFERSCOPE_PYTHON": sys.executable})
    return build


BUILD = _build()
