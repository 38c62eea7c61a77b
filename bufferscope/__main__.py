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
from lib import inherited, owner
from lib.errors import InputError, Interrupted, RunError, SpecError, fail
from lib.exit_codes import of_signal
from lib.keys import read
from lib.places import IS_INSTALLED
from lib.terminal import located, name_output, one_line
from lib.words import MAKE, made, read_words, unknown

HELP = {"-h", "--help"}
OURS = {path.name for path in inherited.CHECKOUT.iterdir() if path.is_dir()}


def main(words: list[str] | None = None) -> int:
    """Runs the command that `words` name; returns the exit status."""
    inherited.settle()
    name_output()
    try:
        if problems := inherited.problems():
            return fail(problems)
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
        return fail([located(error, "the system")])
    except MemoryError:
        return fail(["this process's memory is exhausted: raise its limits, or ask for less"])
    except ImportError as error:
        if (error.name or "").partition(".")[0] in OURS:
            raise
        return fail([_package_problem(error)])
    except KeyboardInterrupt as interrupt:
        return fail([str(interrupt) or "ended by SIGINT"], of_signal(signal.SIGINT))
    except Interrupted as interrupted:
        return fail([f"ended by {interrupted}"], of_signal(interrupted.signal))
    finally:
        owner.give_checkout()


def _package_problem(error: ImportError) -> str:
    """The line for a package that is missing, or cannot be loaded."""
    why = "is missing" if isinstance(error, ModuleNotFoundError) else f"cannot be loaded ({one_line(error)})"
    return (
        f"the Python package {error.name or 'of this command'} {why} in {sys.executable}; make installs every package "
        f"in .venv: run .venv/bin/bufferscope, or {sys.executable} -m pip install -r requirements.txt"
    )


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
    if command.of_checkout and IS_INSTALLED:
        raise InputError(f"{name} works on the files of a checkout: git clone the sources, and run make {name} there")
    if HELP & set(rest):
        print(help_text.of(command))
        return 0
    if command.starts_programs and (problem := inherited.temporary_problem()):
        raise InputError(problem)
    keys, is_make = command.read_keys(), rest == [MAKE]
    given, errors = read_words(made() if is_make else rest, keys, command.first)
    if command.others == "module":
        return int(_function(command)(given, errors))
    if command.others == "make" and is_make:
        errors = [error for error in errors if error.key.lower() in keys]
        given = {key: value for key, value in given.items() if key in keys or key.startswith(name)}  # KERNEL_SRC
    return int(_function(command)(read(command.model(), given, errors)))


def _function(command: Command):  # type: ignore[no-untyped-def]
    return getattr(importlib.import_module(command.module), command.function)


if __name__ == "__main__":
    sys.exit(main())
