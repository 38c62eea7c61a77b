# SPDX-License-Identifier: MIT
"""The text of --help: the table of commands, or one command with every key that it takes. docs/keys.md has the same for
all commands: .venv/bin/python -m bufferscope.help_text >docs/keys.md
"""

from __future__ import annotations

import itertools
import textwrap
from dataclasses import replace

from bufferscope.commands import COMMANDS, Command
from lib.exit_codes import MEANINGS
from lib.keys import NoKeys
from lib.words import SWITCH

WORDS = "Words: KEY=VALUE, --key VALUE or --key=VALUE (keys in any letter case). --make takes the calling make's words."
WIDTH = 120
_ABOUT = """`.venv/bin/python -m bufferscope.help_text >docs/keys.md` writes this page from the models of the keys.

The scope of a key of `experiment` says where it stands in a file with `groups`: `run` beside the groups, `group` in
each group, `both` in a group, or beside the groups as their default. A sweep derives the values of `sweep`. `traffic`
has the kinds of traffic that have the key; empty: all."""
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


def page() -> str:
    """docs/keys.md: a table of keys for each command. Only the table of `experiment` has its keys, with their scope and
    the kinds of traffic that have them.
    """
    of_experiment = COMMANDS["experiment"].read_keys()
    lines = ["# Keys of the commands", "", _ABOUT]
    for command in COMMANDS.values():
        is_experiment = command.name == "experiment"
        rows = {key: row for key, row in command.read_keys().items() if is_experiment or of_experiment.get(key) != row}
        if not rows:
            continue
        head = ("key", "default", "meaning", *(("scope", "traffic") if is_experiment else ()))
        lines += ["", f"## {command.name}", "", _cells(head), _cells(("---",) * len(head))]
        for row, same in itertools.groupby(rows.items(), lambda item: replace(item[1], read=None)):
            keys = ", ".join(key.upper() for key, _ in same)
            more = (row.scope, " ".join(row.kinds)) if is_experiment else ()
            lines.append(_cells((keys, row.default, row.meaning, *more)))
    return "\n".join(lines)


def _cells(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


if __name__ == "__main__":
    print(page())
