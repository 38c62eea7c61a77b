# SPDX-License-Identifier: MIT
"""The text of --help: the table of commands, or one command with every key that it takes."""

from __future__ import annotations

import textwrap

from bufferscope.commands import COMMANDS, Command
from lib.exit_codes import MEANINGS
from lib.keys import NoKeys
from lib.words import SWITCH

WORDS = "Words: KEY=VALUE, --key VALUE or --key=VALUE (keys in any letter case). --make takes the calling make's words."
WIDTH = 120
ENVIRONMENT = "The environment (FLOWS=1 bufferscope experiment, FLOWS=1 make experiment) sets no key."


def overview() -> str:
    """Every command in one line, the form of words, the exit statuses."""
    width = max(map(len, COMMANDS)) + 2
    return "\n".join(
        [
            "usage: bufferscope COMMAND [KEY=VALUE]...",
            *(f"  {command.name:<{width}}{command.about}" for command in COMMANDS.values()),
            WORDS,
            "bufferscope COMMAND --help explains each key of a command.",
            "exit status:",
            *(f"  {status:<{width}}{meaning}" for status, meaning in MEANINGS.items()),
        ]
    )


def of(command: Command) -> str:
    """One command: usage, purpose, keys, example."""
    keys = command.read_keys()
    first = "".join(f" [{key.upper()}]" for key in command.first)
    lines = [f"usage: bufferscope {command.name}{first}{' [KEY=VALUE]...' if keys else ''}", command.about]
    for key, row in keys.items():
        line = f"  {key.upper():<16} {row.default:<10} {row.meaning}{' (0, 1)' if row.values == SWITCH else ''}"
        lines += textwrap.wrap(line, WIDTH, subsequent_indent=" " * 30, break_on_hyphens=False)
    if keys:
        lines += [WORDS, ENVIRONMENT, f"example: bufferscope {command.name} {command.example}"]
    return "\n".join(lines)


def parameters(asked: NoKeys) -> int:
    print(of(COMMANDS["experiment"]))
    return 0


def advise_parameters(asked: NoKeys) -> int:
    print(of(COMMANDS["advise"]))
    return 0
