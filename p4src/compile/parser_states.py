# SPDX-License-Identifier: MIT
"""Checks in Tofino assembly (.bfa) that the parser tells packets apart.

This script imports none of our modules, because the role `tofino` runs it on the switch's machine.

From change 5063 (February 2026) to change 5753 (September 2026) p4c lost the registers that a `select` compares. Every
transition of such a state has the pattern `*`, so only the first transition is ever taken. The compiler still succeeds.
Its assembler would warn, but the compiler's driver silences the assembler.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_PARSER = re.compile(r"parser (ingress|egress)\b")
# A transition's key is a ternary number: 0x08**, 0b1*, 0o7, 23, *.
_PATTERN = re.compile(r"(?:0[xbo])?[0-9a-f*]+")


def blind_states(assembly: str) -> list[str]:
    """States with an unreachable transition ("DIRECTION STATE"), parsers without a comparison ("all of DIRECTION").

    A transition is unreachable if an earlier one has the same pattern: the rule of the assembler's warning "Can't match
    parser state due to previous match". The compiler writes equal patterns as equal text.
    """
    blind: dict[str, None] = {}
    compares = {"ingress": False, "egress": False}
    direction = state = ""
    indents: list[int] = []  # of `states:`, of a state, and of its transitions
    patterns: set[str] = set()
    for line in assembly.splitlines():
        text = line.split("#")[0].rstrip()
        if not text:
            continue
        indent = len(text) - len(text.lstrip())
        key = text.strip().split(":")[0].strip()
        if indent == 0:
            parser_line = _PARSER.match(text)
            direction, indents = (parser_line[1] if parser_line else ""), []
        elif direction and not indents:
            indents = [indent] if key == "states" else []
        elif indents and indent <= indents[0]:
            indents = []
        elif indents and (len(indents) == 1 or indent <= indents[1]):
            indents, state, patterns = [indents[0], indent], f"{direction} {key}", set()
        elif indents:
            indents = [*indents[:2], min([indent, *indents[2:]])]
            if indent > indents[2]:
                continue
            if key == "match":
                compares[direction] = True
            elif key in patterns:
                blind[state] = None
            elif _PATTERN.fullmatch(key):
                patterns.add(key)
    return [*blind, *(f"all of {parser}" for parser, any_state in compares.items() if not any_state)]


def fault(assembly: Path) -> str | None:
    """Why the compiler of this assembly is refused, as a predicate for a message. None: the parser is correct."""
    try:
        states = blind_states(assembly.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        return f"left no assembly to check the parser in ({assembly}: {error.strerror})"
    if not states:
        return None
    return (
        f"built a parser that treats all packets alike ({', '.join(states)}): a fault of p4c from February to "
        "September 2026 (https://github.com/p4lang/p4c/pull/5753); use a compiler that is older or newer"
    )


if __name__ == "__main__":
    sentence = fault(Path(sys.argv[1]))
    print(sentence or "")
    sys.exit(sentence is not None)
