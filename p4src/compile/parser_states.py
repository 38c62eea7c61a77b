# SPDX-License-Identifier: MIT
"""Reads in Tofino assembly (.bfa) whether the parser tells packets apart.

It is a script that imports nothing of ours, because the role `tofino` runs it on the switch's machine.

p4c between its changes 5063 (February 2026) and 5753 (September) lost the registers that a `select` compares. Every
transition of such a state has the pattern `*`, so only the first one is ever taken. The compiler succeeds all the same,
and its driver silences its assembler, which would warn.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_PARSER = re.compile(r"parser (ingress|egress)\b")
# A ternary number: 0x08**, 0b1*, 0o7, 23, *. Whatever else a state holds is no transition.
_PATTERN = re.compile(r"(?:0[xbo])?[0-9a-f*]+")


def blind_states(assembly: str) -> list[str]:
    """Each state with a transition that no packet can take, and each parser that compares nothing, with its direction.

    The rule is the assembler's own ("Can't match parser state due to previous match"): a later transition has the
    pattern of an earlier one. The compiler writes equal patterns as equal text.
    """
    blind: dict[str, None] = {}
    compares = {"ingress": False, "egress": False}
    direction = state = ""
    depths: list[int] = []  # indentation of `states:`, of a state, and of its transitions
    patterns: set[str] = set()
    for line in assembly.splitlines():
        text = line.split("#")[0].rstrip()
        if not text:
            continue
        depth = len(text) - len(text.lstrip())
        key = text.strip().split(":")[0].strip()
        if depth == 0:
            found = _PARSER.match(text)
            direction, depths = (found[1] if found else ""), []
        elif direction and not depths:
            depths = [depth] if key == "states" else []
        elif depths and depth <= depths[0]:
            depths = []
        elif depths and (len(depths) == 1 or depth <= depths[1]):
            depths, state, patterns = [depths[0], depth], f"{direction} {key}", set()
        elif depths:
            depths = [*depths[:2], min([depth, *depths[2:]])]
            if depth > depths[2]:
                continue
            if key == "match":
                compares[direction] = True
            elif key in patterns:
                blind[state] = None
            elif _PATTERN.fullmatch(key):
                patterns.add(key)
    return [*blind, *(f"all of {parser}" for parser, any_state in compares.items() if not any_state)]


def fault(assembly: Path) -> str | None:
    """The sentence to refuse a compiler with, its subject left out; None when the parser tells packets apart."""
    try:
        states = blind_states(assembly.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        return f"left no assembly to check the parser in ({assembly}: {error.strerror})"
    if not states:
        return None
    return (
        f"built a parser that takes every packet for the same ({', '.join(states)}): a fault of p4c from February to "
        "September 2026 (https://github.com/p4lang/p4c/pull/5753); use a compiler that is older or newer"
    )


if __name__ == "__main__":
    sentence = fault(Path(sys.argv[1]))
    print(sentence or "")
    sys.exit(sentence is not None)
