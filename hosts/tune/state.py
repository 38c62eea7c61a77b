# SPDX-License-Identifier: MIT
"""The state file: what to put back, written before anything is changed and bound to one network namespace and boot."""

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
INTERFACE_NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.-]{1,15}")  # IFNAMSIZ is 16 with the zero


def where() -> dict[str, Any]:
    """This network namespace of this boot: values saved in another one mean nothing here."""
    status = Path("/proc/self/ns/net").stat()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return {"boot": boot, "netns_inode": status.st_ino}


def load(path: Path) -> dict[str, Any]:
    """What was saved in this namespace; empty when there is none, or it is of a namespace or boot that is gone."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return {}
    try:
        values = json.loads(text)
        version, saved_where = values["version"], values["where"]
    except (ValueError, KeyError, TypeError) as error:
        raise TuneError(f"{path}: this is no state file of this program: give another --state") from error
    if version != STATE_VERSION:
        raise TuneError(
            f"{path}: state of version {version}, this program knows {STATE_VERSION}: undo it with that one"
        )
    return values if saved_where == where() else {}


def save(path: Path, values: dict[str, Any]) -> None:
    """Atomically, on disk before this returns."""
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
