# SPDX-License-Identifier: MIT
"""The program `bufferscope`, or `python -m bufferscope` if it is not installed: runs one command of commands.py.

This module reads the words, prints errors as lines on stderr and sets the exit status (lib/exit_codes.py) for all
commands.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys

from bufferscope import help_text
from bufferscope.commands import COMMANDS, Command
from lib.errors import BadValue, InputError, Interrupted, RunError, SpecError, fail
from lib.exit_codes import of_signal
from lib.words import MAKE, made, read_words, unknown

HELP = {"-h", "--help"}


def main(words: list[str] | None = None) -> int:
    """Runs the command that `words` name; returns the exit status."""
    try:
        status = _run(sys.argv[1:] if words is None else words)
        sys.stdout.flush()
        return status
    except SpecError as error:
        return fail(error.lines())
    except RunError as error:
        return fail(error.lines)
    except InputError as error:
        return fail([str(error)])
    except BrokenPipeError:  # the reader needs no more (`| head`)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return of_signal(signal.SIGPIPE)
    except OSError as error:
        return fail([f"{error.filename}: {error.strerror}" if error.filename else str(error)])
    except KeyboardInterrupt as interrupt:
        return fail([str(interrupt) or "ended by SIGINT"], of_signal(signal.SIGINT))
    except Interrupted as interrupted:
        return fail([f"ended by {interrupted}"], of_signal(interrupted.signal))


def _run(words: list[str]) -> int:
    name, rest = (words[0], words[1:]) if words else ("", [])
    if name in HELP or (name == "help" and not rest):
        print(help_text.overview())
        return 0
    if name == "help":
        name, rest = rest[0], ["--help"]
    if not name:
        raise InputError("no command is given; bufferscope --help lists the commands")
    if name not in COMMANDS:
        raise InputError(f"{name} is not a command; {unknown(name, COMMANDS)}")
    command = COMMANDS[name]
    if HELP & set(rest):
        print(help_text.of(command))
        return 0
    keys, is_make = command.read_keys(), rest == [MAKE]
    given, errors = read_words(made() if is_make else rest, keys, command.first)
    if command.others == "make" and is_make:
        errors = [error for error in errors if error.key.lower() in keys]
    elif command.others != "module":
        shown = [key.upper() for key in keys]
        errors += [
            BadValue(key.upper(), None, f"is not a parameter of {name}; {unknown(key.upper(), shown)}")
            for key in given
            if key not in keys
        ]
        given = {key: value for key, value in given.items() if key in keys}
    status: int = _function(command)(given, errors)
    return status


def _function(command: Command):  # type: ignore[no-untyped-def]
    return getattr(importlib.import_module(command.module), command.function)


if __name__ == "__main__":
    sys.exit(main())
