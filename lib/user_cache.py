# SPDX-License-Identifier: MIT
"""The user's cache: files that are built once per user, and built again if they are missing."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from lib.errors import RunError


def directory(name: str) -> Path:
    """`$XDG_CACHE_HOME/bufferscope/NAME`, by default below ~/.cache of the effective user. `$HOME` is ignored: with
    sudo it may be another user's home, and root would leave files there. Raises RunError.
    """
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        cache = configured if configured.is_absolute() else Path(pwd.getpwuid(os.geteuid()).pw_dir) / ".cache"
    except KeyError:
        raise RunError(
            f"user {os.geteuid()} has no entry in the password database, so no home for the cache: "
            "set XDG_CACHE_HOME to the absolute path of a directory"
        ) from None
    return cache / "bufferscope" / name
