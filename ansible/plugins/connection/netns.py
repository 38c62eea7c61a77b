# SPDX-License-Identifier: MIT
"""Runs tasks inside a named network namespace of this machine, so that roles treat the lab's hosts like any other host.

Commands of the local connection get the prefix nsenter, which changes only the network namespace. `ip netns exec`
would also mount a fresh /sys, which hides the tracefs and bpffs that the tracer needs. With the old /sys,
/sys/class/net shows the devices of another namespace, so programs must query devices by netlink or ioctl.
"""

from __future__ import annotations

import re
import shlex
import shutil
import typing as t
from pathlib import Path

import ansible.constants as C
from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection.local import Connection as LocalConnection

DOCUMENTATION = """
    name: netns
    short_description: run tasks in a network namespace of this machine
    description:
        - Runs commands in a network namespace that C(ip netns add) made on the controller.
        - The file system is the controller's, so transferring a file is a local copy.
        - Needs the privilege to enter the namespace (root, or CAP_SYS_ADMIN over it).
    author: bufferscope
    options:
        netns:
            description:
                - Name of the namespace, as C(ip netns list) shows it. Letters, digits, '_', '-' and '.' only.
                - By default the inventory's host name.
            vars:
                - name: inventory_hostname
                - name: ansible_host
                - name: ansible_netns
        become_success_timeout:
            type: int
            default: 10
            description:
                - Number of seconds to wait for become to succeed when enabled.
            vars:
                - name: ansible_local_become_success_timeout
        become_strip_preamble:
            type: bool
            default: true
            description:
                - Strip internal become output preceding command execution.
            vars:
                - name: ansible_local_become_strip_preamble
    extends_documentation_fragment:
        - connection_pipelining
"""

NETNS_DIR = "/run/netns"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


class Connection(LocalConnection):
    """Local connection whose commands run in a network namespace."""

    transport = "netns"
    has_pipelining = True

    def _connect(self) -> Connection:
        path = _namespace_path(self.get_option("netns"))
        if not Path(path).exists():
            raise AnsibleConnectionFailure(
                f"there is no network namespace {path}: run this inside the lab's cell (make experiment makes one), "
                "or add the namespace with `ip netns add`"
            )
        return t.cast("Connection", super()._connect())

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        """Passes cmd, a shell command line from Ansible, as one quoted argument to a shell in the namespace."""
        prefix = [_nsenter(), f"--net={_namespace_path(self.get_option('netns'))}", "--"]
        command_line = shlex.join([*prefix, C.DEFAULT_EXECUTABLE.split()[0], "-c", cmd])
        return super().exec_command(f"exec {command_line}", in_data=in_data, sudoable=sudoable)


def _namespace_path(name: object) -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise AnsibleConnectionFailure(
            f"ansible_netns {name!r} is not a namespace name: allowed are 1 to 64 letters, digits, '_', '-' and '.', "
            "not beginning with '-' or '.'"
        )
    return f"{NETNS_DIR}/{name}"


def _nsenter() -> str:
    program = shutil.which("nsenter")
    if program is None:
        raise AnsibleConnectionFailure("nsenter is not installed on this machine: install the package util-linux")
    return program
