# SPDX-License-Identifier: MIT
"""Writes files atomically."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Replaces the content of `path` by `text`. After an OSError the old content is still there."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def write_changed(path: Path, text: str) -> bool:
    """`write_whole`, unless the file has this text already. Returns whether it was written."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    write_whole(path, text)
    return True
