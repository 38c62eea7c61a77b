# SPDX-License-Identifier: MIT
"""Lines of P4 sources for what the compiler's JSON gives none: parser states, header types, header stacks.

Found by the name's declaration in the program and the files it includes, if they are there; else only the file is
known.
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
        """FILE:LINE of a declaration, `name` between two regular expressions; if there is none, the file alone.

        The compiler puts the names of enclosing parsers before a name and a number behind it: those are left off.
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
