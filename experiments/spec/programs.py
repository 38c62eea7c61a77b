# SPDX-License-Identifier: MIT
"""Programs of the user's own as traffic (TRAFFIC=program): their keys, and the plans that hosts/traffic/user_program.py
carries out.

A command is a list: the program and its arguments. No shell reads the list. In the arguments, {address} and the other
names of STANDS_FOR are replaced; another word of lower-case letters and underscores in braces is refused.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

from experiments.spec import congestion
from experiments.spec.topology import RECEIVER, SENDER
from experiments.spec.transfers import PROGRAM
from hosts.traffic.user_program import CLIENT, SERVER
from lib.keys import Keys, field
from model.groups import Programs

PORT = 1443  # of the server; below the ports of long and finite flows (experiments/spec/traffic.py)
MOST_COMMAND_BYTES = 16 << 10
OUTPUT_BYTES = 16 << 20  # kept of each output stream
MEMORY_MIB = 512  # of a virtual machine, for both programs together
SCRATCH = "/run/program-"  # first part of the name, in the /run of the cell or of the virtual machine
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
STANDS_FOR = {
    "address": "the server's address",
    "port": "the server's port",
    "client_address": "the client's address",
    "duration_s": "seconds of traffic",
    "seed": "SEED and the repetition in one number",
    "scratch": "a directory that the program may write to",
}
_NAME = re.compile(r"\{([a-z_]+)\}")


def read_command(value: object) -> tuple[str, ...]:
    """The arguments of a command. A text is split as a POSIX shell would split it, but nothing is expanded; a list has
    one argument per item.
    """
    form = "allowed: a program and its arguments, as in 'python3 server.py {address} {port}'"
    try:
        words = shlex.split(value) if isinstance(value, str) else list(value)  # type: ignore[call-overload]
    except (ValueError, TypeError) as error:
        raise ValueError(f"cannot be split into arguments ({error}); {form}") from None
    if not words or not words[0] or not all(isinstance(word, str) and "\0" not in word for word in words):
        raise ValueError(f"is not a list of arguments; {form}")
    if sum(len(word.encode()) + 1 for word in words) > MOST_COMMAND_BYTES:
        raise ValueError(
            f"is longer than {MOST_COMMAND_BYTES} bytes; allowed: shorter arguments, or arguments in a file"
        )
    for name in (name for word in words for name in _NAME.findall(word)):
        if name not in STANDS_FOR:
            known = ", ".join(f"{{{known}}}" for known in STANDS_FOR)
            raise ValueError(f"has {{{name}}}, which is not a placeholder; allowed: {known}")
    return tuple(words)


def read_directory(value: object) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("is not a path; allowed: a directory")
    return value


class ProgramKeys(Keys):
    # fmt: off
    server: tuple[str, ...] | None = field(
        "with TRAFFIC=program: the server and its arguments, 'python3 server.py {address} {port}'; it must listen on "
        "{port} (TCP or UDP) and stay in the foreground (docs/traffic.md)", read_command, kinds=(PROGRAM,))
    client: tuple[str, ...] | None = field(
        "with TRAFFIC=program: the client and its arguments, 'curl -so /dev/null http://{address}:{port}/file'; if "
        "there is no other traffic, the traffic ends when the client ends", read_command, kinds=(PROGRAM,))
    server_at: str | None = field(
        "the host that runs SERVER: sender (the default; the server's data crosses the bottleneck), receiver",
        values=(SENDER.name, RECEIVER.name), kinds=(PROGRAM,))
    directory: str | None = field(
        "working directory of SERVER and CLIENT (default: the current directory)", read_directory, kinds=(PROGRAM,))
    program_cc: str | None = field(
        "congestion control of the programs' TCP, unless they choose one (default: CC)",
        congestion.read_name, kinds=(PROGRAM,))
    # fmt: on


def resolve(keys: ProgramKeys, cc: str | None) -> dict[str, Any]:
    """The values of Programs, without settings. `cc` is CC if CC names one congestion control."""
    within = directory(keys)
    commands = {
        key: [found(command[0], within), *command[1:]] if command else []
        for key, command in ((SERVER, keys.server), (CLIENT, keys.client))
    }
    return {
        "kind": PROGRAM, **commands, "server_at": keys.server_at or SENDER.name, "directory": str(within),
        "port": PORT, "cc": keys.program_cc or cc,
    }  # fmt: skip


def directory(keys: ProgramKeys) -> Path:
    return Path(keys.directory or ".").absolute()


def found(program: str, within: Path) -> str:
    """The path of a program, as a shell in the directory `within` would find it; '' if there is none."""
    if "/" not in program:
        return shutil.which(program) or ""
    path = within / program
    return str(path) if path.is_file() and os.access(path, os.X_OK) else ""


def hosts(program: Programs) -> dict[str, str]:
    """The host of each program: name of the program -> host."""
    other = {SENDER.name: RECEIVER.name, RECEIVER.name: SENDER.name}
    return {SERVER: program.server_at, CLIENT: other[program.server_at]}


def plan(program: Programs, name: str, seed: int, duration_ns: int, alone: bool) -> dict[str, Any]:
    """The plan of one program. Start time and user are added when the program starts."""
    addresses = {host.name: host.ipv4 for host in (SENDER, RECEIVER)}
    at = {who: addresses[where] for who, where in hosts(program).items()}
    values = {
        "address": at[SERVER], "port": str(program.port), "client_address": at[CLIENT],
        "duration_s": f"{duration_ns / 1e9:g}", "seed": str(seed), "scratch": SCRATCH + name,
    }  # fmt: skip
    first, *words = program.server if name == SERVER else program.client
    argv = [first, *(_NAME.sub(lambda match: values[match[1]], word) for word in words)]
    return {
        "name": name, "argv": argv, "directory": program.directory, "scratch": values["scratch"],
        "environment": {
            "PATH": f"{Path(argv[0]).parent}:{SYSTEM_PATH}", "HOME": values["scratch"], "TMPDIR": values["scratch"],
            "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1",
        },
        "output_bytes": OUTPUT_BYTES, "port": program.port, "duration_ns": duration_ns,
        "alone": alone and name == CLIENT,
    }  # fmt: skip
