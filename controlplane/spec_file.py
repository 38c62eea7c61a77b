# SPDX-License-Identifier: MIT
"""Reads a switch.yaml and checks its syntax (lib/strict_yaml.py). spec.py checks its content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lib import strict_yaml
from lib.terminal import printable


class SpecFileError(Exception):
    """The file cannot be applied. `lines`: one line per error."""

    def __init__(self, *lines: str) -> None:
        self.lines = [printable(line) for line in lines]
        super().__init__("; ".join(self.lines))


def load(path: Path) -> dict[str, Any]:
    """The file's content, every scalar as text. Raises SpecFileError."""
    try:
        content = strict_yaml.load(path)
    except OSError as error:
        raise SpecFileError(f"{path}: cannot be read: {error.strerror}") from None
    except strict_yaml.FormError as error:
        raise SpecFileError(f"{path}: {error}") from None
    if content is None:
        raise SpecFileError(f"{path}: is not a mapping; see controlplane/switch.example.yaml")
    return content
