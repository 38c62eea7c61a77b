# SPDX-License-Identifier: MIT
"""SHA-256 of files, of trees and of sets of small files. Equal digests make a new build unnecessary."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def of_parts(parts: Iterable[tuple[str, bytes]]) -> str:
    """Digest of named contents, in any order. Names and lengths count, so a shifted boundary changes the digest."""
    total = hashlib.sha256()
    for name, content in sorted(parts):
        total.update(f"{name}\0{len(content)}\0".encode() + content)
    return total.hexdigest()


def of_listing(files: Iterable[tuple[str, os.stat_result]]) -> str:
    """Digest of paths, sizes and modification times: differs if a user's own tree has changed since it was copied."""
    total = hashlib.sha256()
    for path, status in files:
        total.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return total.hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; {} if the file is missing or damaged."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Writes atomically: to a temporary name, then renamed."""
    new = path.with_name(path.name + ".new")
    with new.open("w") as file:
        file.write(json.dumps(content, indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())
    new.rename(path)
