# SPDX-License-Identifier: MIT
"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Replaces `path` by `text` at once; OSError leaves what was there."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def write_changed(path: Path, text: str) -> bool:
    """`write_whole` unless the file already says so; whether it was written."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    write_whole(path, text)
    return True
