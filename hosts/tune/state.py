# SPDX-License-Identifier: MIT
"""The state file, from which `undo` restores a host. tune.py saves the former values before any change; delay.py saves
the delay that it is about to add. A state file is valid for one network namespace and boot.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
from pathlib import Path
from typing import Any

from hosts.tune.commands import TuneError

STATE_VERSION = 1
INTERFACE_NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.-]{1,15}")  # IFNAMSIZ is 16, with the final NUL


def where() -> dict[str, Any]:
    """Identifies this network namespace and boot: values saved in another namespace or boot are ignored."""
    status = Path("/proc/self/ns/net").stat()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return {"boot": boot, "netns_inode": status.st_ino}


def load(path: Path) -> dict[str, Any]:
    """The values saved in this namespace. Empty if there are none, or if they are from another namespace or boot."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return {}
    try:
        values = json.loads(text)
        version, saved_where = values["version"], values["where"]
    except (ValueError, KeyError, TypeError) as error:
        raise TuneError(f"{path}: this is not a state file of this program: give another --state") from error
    if version != STATE_VERSION:
        raise TuneError(
            f"{path}: state of version {version}, this program knows {STATE_VERSION}: undo it with the version that "
            "wrote it"
        )
    return values if saved_where == where() else {}


def forget(path: Path) -> None:
    """Removes the state file, except one of another network namespace of this boot: its values are restored there."""
    try:
        of_file = json.loads(path.read_text())["where"]
    except FileNotFoundError:
        return
    here = where()
    if of_file == here or of_file.get("boot") != here["boot"]:
        path.unlink()


def save(path: Path, values: dict[str, Any]) -> None:
    """Replaces the file atomically: a reader gets the old values or the new ones, never a part."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("w") as file:
        json.dump({"version": STATE_VERSION, "where": where(), **values}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)


def parse_interface(text: str) -> str:
    """An interface of this namespace, for argparse."""
    if not INTERFACE_NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not the name of an interface")
    names = sorted(name for _, name in socket.if_nameindex())
    if text not in names:
        raise argparse.ArgumentTypeError(f"there is no interface '{text}' here; there are {', '.join(names)}")
    return text
