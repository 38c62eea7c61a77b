# SPDX-License-Identifier: MIT
"""C text: indented lines, and functions that take only the names of CONTEXT that they use."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Names that every generated function may use, and their types.
CONTEXT = {"pipeline": "struct pipeline *", "packet": "struct packet *", "phv": "struct phv *"}


def indent(lines: list[str]) -> list[str]:
    return ["\t" + line if line else line for line in lines]


def block(opening: str, lines: list[str], closing: str = "}") -> list[str]:
    return [opening, *indent(lines), closing]


@dataclass(frozen=True)
class Function:
    """A static function. `context`: the names of CONTEXT that are its first parameters."""

    name: str
    context: tuple[str, ...]
    lines: tuple[str, ...]  # the whole text

    def call(self, *arguments: str) -> str:
        return f"{self.name}({', '.join([*self.context, *arguments])})"


def called(functions: list[Function], lines: list[str]) -> list[str]:
    """The text of all functions that `lines` call, directly or not, each before its callers."""
    kept: list[Function] = []
    text = "\n".join(lines)
    for candidate in reversed(functions):
        if re.search(rf"\b{candidate.name}\(", text):
            kept.insert(0, candidate)
            text += "\n".join(candidate.lines)
    return [line for candidate in kept for line in candidate.lines]


def function(
    name: str, body: list[str], comment: str = "", returns: str = "void", parameters: list[str] | None = None
) -> Function:
    """Makes a function of `body`. Its first parameters are the names of CONTEXT that the body uses."""
    text = re.sub(r"/\*.*?\*/", "", "\n".join(body))
    context = tuple(word for word in CONTEXT if re.search(rf"(?<![.>])\b{word}\b(?!\s*\()", text))
    declared = [CONTEXT[word] + word for word in context] + (parameters or [])
    space = "" if returns.endswith("*") else " "
    head = f"static {returns}{space}{name}({', '.join(declared) or 'void'})"
    lines = [f"/* {comment} */"] if comment else []
    return Function(name, context, (*lines, head, "{", *indent(body), "}", ""))
