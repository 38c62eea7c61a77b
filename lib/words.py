# SPDX-License-Identifier: MIT
"""KEY=VALUE words of a command line; those of the make that calls come as typed, through make's environment, so that no
shell reads one.
"""

from __future__ import annotations

import os
import re

from lib.errors import BadValue

OPTIONS = ("spec", "results", "inventory")  # what is no parameter of the experiment itself
OF_THE_MAKEFILE = ("V", "PYTHON")  # whatever is made


def made() -> list[str]:
    """The words that make was called with. A word that is no parameter is seen, too; what was only in the environment
    is not, nor make's own default of CC, `cc`.
    """
    _, _, variables = f" {os.environ.get('MAKEFLAGS', '')}".partition(" -- ")
    words = re.findall(r"((?:[^\\\s]|\\.)+)", variables)
    given = [re.sub(r"\\(.)", r"\1", word).replace("$$", "$") for word in words]
    return [word for word in given if word.partition("=")[0] not in OF_THE_MAKEFILE]


def read_words(words: list[str]) -> tuple[dict[str, object], dict[str, str], list[BadValue]]:
    """Parameters (keys in lower case) and options of the command line, and every word that is neither."""
    given: dict[str, object] = {}
    options: dict[str, str] = {}
    errors = []
    left = list(words)
    while left:
        word = left.pop(0)
        key, equals, value = word.partition("=")
        if word.startswith("--") and not equals and left:
            value, equals = left.pop(0), "="
        name = key.removeprefix("--").lower().replace("-", "_")
        if not equals or not name:
            errors.append(BadValue(word, None, "is no parameter; write KEY=VALUE or --key VALUE"))
        elif not value:
            errors.append(BadValue(name.upper(), None, "has no value; give one, or leave the key out for its default"))
        elif name in given or name in options:
            errors.append(BadValue(name.upper(), value, "is given twice; give it once"))
        elif name in OPTIONS:
            options[name] = value
        else:
            given[name] = value
    return given, options, errors
