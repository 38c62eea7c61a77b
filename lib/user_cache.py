# SPDX-License-Identifier: MIT
"""The user's cache: files that are built once per user, and built again if they are missing."""

from __future__ import annotations

import os
from pathlib import Path

from lib import places
from lib.errors import RunError


def directory(name: str) -> Path:
    """The part NAME of the cache (places.cache). Raises RunError."""
    cache = places.cache()
    if cache is None:
        raise RunError(
            f"user {os.geteuid()} has no entry in the password database, so no home for the cache: "
            "set BUFFERSCOPE_CACHE to the absolute path of a directory"
        )
    return cache / name
