# SPDX-License-Identifier: MIT
"""The file that says how a switch is to be set: its form alone (lib/strict_yaml.py); what it may say is in spec.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lib import strict_yaml
from lib.terminal import printable


class SpecFileError(Exception):
    """The file says nothing that could be applied. One line an error in `lines`."""

    def __init__(self, *lines: str) -> None:
        self.lines = [printable(line) for line in lines]
        super().__init__("; ".join(self.lines))


def load(path: Path) -> dict[str, Any]:
    """What the file says, every scalar as text. Raises SpecFileError."""
    try:
        content = strict_yaml.load(path)
    except OSError as error:
        raise SpecFileError(f"{path}: cannot be read: {error.strerror}") from None
    except strict_yaml.FormError as error:
        raise SpecFileError(f"{path}: {error}") from None
    if content is None:
        raise SpecFileError(f"{path}: is not a mapping; see controlplane/switch.example.yaml")
    return content
