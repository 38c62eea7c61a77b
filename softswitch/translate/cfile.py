# SPDX-License-Identifier: MIT
"""C text: indented lines and functions."""

from __future__ import annotations

from dataclasses import dataclass

from . import names

# Every function of a packet has these parameters first. The functions are static: the compiler removes what a function
# does not use.
_CONTEXT = ("struct pipeline *pipeline", "struct packet *packet", "struct phv *phv")


def indent(lines: list[str]) -> list[str]:
    return ["\t" + line if line else line for line in lines]


def block(opening: str, lines: list[str], closing: str = "}") -> list[str]:
    return [opening, *indent(lines), closing]


@dataclass(frozen=True)
class Function:
    """A static function of a packet."""

    name: str
    head: str
    lines: tuple[str, ...]  # the whole text

    def call(self, *arguments: str, packet: str = "packet") -> str:
        return f"{self.name}({', '.join(['pipeline', packet, 'phv', *arguments])})"


def function(
    name: str, body: list[str], comment: str = "", returns: str = "void", parameters: list[str] | None = None
) -> Function:
    """Makes a function of `body`; `parameters` follow those that every function has."""
    return plain_function(name, body, comment, returns, ", ".join([*_CONTEXT, *(parameters or [])]))


def plain_function(name: str, body: list[str], comment: str, returns: str, parameters: str) -> Function:
    """A static function with these parameters only."""
    head = f"static {returns} {name}({parameters})"
    lines = [f"/* {names.comment(comment)} */"] if comment else []
    return Function(name, head, (*lines, head, "{", *indent(body), "}", ""))
