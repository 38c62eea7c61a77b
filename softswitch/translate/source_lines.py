# SPDX-License-Identifier: MIT
"""Source lines of declarations for which the compiler's JSON has none: parser states, actions, fields, header stacks
and header unions.

Searches the program and its includes for the declaration of the name. Without the sources only the file is known.
"""

from __future__ import annotations

import re
from pathlib import Path

from p4src.compile.sources import CannotCompile, normalise_path, sources


class SourceLines:
    def __init__(self, program: str, root: Path) -> None:
        self.program = program
        self._texts: list[tuple[str, str]] = []
        try:
            for path in sources(root / program):
                self._texts.append((normalise_path(str(path), root), path.read_text(encoding="utf-8")))
        except (CannotCompile, OSError, UnicodeDecodeError):
            self._texts = []

    def find(self, before: str, name: str, after: str = "", only_in: str = "") -> str:
        """FILE:LINE of a declaration: `name` between two regular expressions. Without a match, the file alone.

        The compiler adds the names of enclosing parsers before a name and a number behind it; both are ignored.
        """
        parts = re.sub(r"_\d+$", "", name).split("_")
        candidates = [name, *("_".join(parts[start:]) for start in range(len(parts)))]
        for candidate in dict.fromkeys(candidates):
            pattern = re.compile(before + re.escape(candidate) + r"\b" + after)
            for path, text in self._texts:
                match = pattern.search(text) if only_in in ("", path) else None
                if match:
                    return f"{path}:{text.count(chr(10), 0, match.end()) + 1}"
        return only_in or self.program
