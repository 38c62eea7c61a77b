# SPDX-License-Identifier: MIT
"""The words of a command line: KEY=VALUE, --key VALUE, --key=VALUE. If make started the command, the words come from
MAKEFLAGS in the environment, as the user typed them: no shell interprets a value.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from lib.errors import BadValue

OF_THE_MAKEFILE = ("V", "PYTHON", "BUFFERSCOPE")  # variables of the Makefile itself, allowed with every goal
MAKE = "--make"  # as the only word: read the words of the calling make
SWITCH = ("0", "1")
LETTERS_PER_ERROR = 5  # a name with more errors is another name: LOSS is not FLOWS
PATHS = ("PATH",)  # the value is the name of a file


class Valued(Protocol):
    """A key of a command (lib/keys.py). With the values SWITCH, the value may be left out."""

    @property
    def values(self) -> tuple[str, ...]: ...


def made() -> list[str]:
    """The KEY=VALUE words that make was called with, whether or not they are parameters, except OF_THE_MAKEFILE.
    Variables of the environment, and make's own default CC=cc, are not among them.
    """
    _, _, variables = f" {os.environ.get('MAKEFLAGS', '')}".partition(" -- ")
    words = re.findall(r"((?:[^\\\s]|\\.)+)", variables)
    given = [re.sub(r"\\(.)", r"\1", word).replace("$$", "$") for word in words]
    return [word for word in given if word.partition("=")[0] not in OF_THE_MAKEFILE]


def read_words(
    words: list[str], keys: Mapping[str, Valued], first: Sequence[str] = ()
) -> tuple[dict[str, Any], list[BadValue]]:
    """Keys in lower case with their values as given, and an error for each malformed or repeated word. Leading words
    without a key are the values of the keys `first`. A key that is not in `keys` is read like the others.
    """
    given: dict[str, Any] = {}
    errors = []
    left = list(words)
    for position, (name, word) in enumerate(zip(first, words, strict=False)):
        if "=" in word or word.startswith("-"):
            break
        left[position] = f"{name}={word}"
    while left:
        word = left.pop(0)
        key, equals, value = word.partition("=")
        name = key.removeprefix("--").lower().replace("-", "_")
        if key.startswith("--") and not equals and (name in keys or left):
            is_switch = name in keys and keys[name].values == SWITCH
            value = "1" if is_switch and left[:1] not in (["0"], ["1"]) else left.pop(0) if left else ""
            equals = "="
        if not equals or not name:
            errors.append(BadValue(word, None, "is not a parameter; write KEY=VALUE or --key VALUE"))
        elif not value:
            errors.append(BadValue(name.upper(), None, "has no value; give one, or leave the key out"))
        elif name in given:
            errors.append(BadValue(name.upper(), value, "is given twice; give it once"))
        else:
            given[name] = value
    return given, errors


def unknown(name: str, known: Iterable[str]) -> str:
    """The advice for an unknown name: the known one that it is a typing error of, else all of them."""
    names = list(known)
    near = min(names, key=lambda each: _differing(name, each), default="")
    if _differing(name, near) <= min(max(1, len(name) // LETTERS_PER_ERROR), len(name) - 1):
        return f"did you mean {near}?"
    return f"allowed: {', '.join(names) or 'none'}"


def _differing(name: str, other: str) -> int:
    """The letters of the longer name that are not in the other name, in its order."""
    blocks = difflib.SequenceMatcher(None, name, other).get_matching_blocks()
    return max(len(name), len(other)) - sum(block.size for block in blocks)
