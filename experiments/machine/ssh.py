# SPDX-License-Identifier: MIT
"""The ssh command to a machine of an inventory. Its words have no special characters, so every shell reads them in the
same way.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

from lib.errors import RunError

PLAIN = re.compile(r"[A-Za-z0-9@%+=:,./_-]+")
# BatchMode: a prompt would wait forever behind a progress bar.
SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10")


def command(name: str, variables: dict[str, Any], inventory: Path) -> tuple[str, ...]:
    """The words before the remote command. `variables` are Ansible's, of the host `name`. Raises RunError."""
    words = [*SSH]
    if "ansible_port" in variables:
        words += ["-p", str(variables["ansible_port"])]
    if "ansible_ssh_private_key_file" in variables:
        words += ["-i", str(variables["ansible_ssh_private_key_file"])]
    words += shlex.split(str(variables.get("ansible_ssh_common_args", "")))
    host, user = str(variables.get("ansible_host", name)), variables.get("ansible_user")
    words.append(f"{user}@{host}" if user else host)
    for word in words:
        check(name, word, inventory)
    if words[-1].startswith("-"):
        raise _refused(name, words[-1], inventory)
    return tuple(words)


def check(name: str, word: str, inventory: Path) -> str:
    """Returns `word`, a value of the host `name`. Raises RunError if a shell could read `word` otherwise."""
    if not PLAIN.fullmatch(word):
        raise _refused(name, word, inventory)
    return word


def _refused(name: str, word: str, inventory: Path) -> RunError:
    return RunError(
        f"{inventory}: {name}: {word!a} cannot be used; allowed: letters, digits and @%+=:,./_-, but a user or host "
        "must not begin with -"
    )
