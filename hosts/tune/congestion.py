# SPDX-License-Identifier: MIT
"""The congestion controls of this host: `python -m hosts.tune.congestion list`, `... ensure cubic bbr`.

`ensure` loads a missing congestion control as module tcp_<name>, for the whole machine. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import re
import sys

from hosts.tune import sysctls
from hosts.tune.commands import TuneError, run

NAME = re.compile(r"[a-z0-9_]{1,15}")  # TCP_CA_NAME_MAX is 16, with the final NUL


def available() -> list[str]:
    return (sysctls.read("net.ipv4.tcp_available_congestion_control") or "").split()


def ensure(names: list[str]) -> bool:
    """Loads missing congestion controls; returns whether any was missing. Raises TuneError if one cannot be loaded."""
    bad = [name for name in names if not NAME.fullmatch(name)]
    if bad:
        raise TuneError(
            f"'{bad[0]}' is not the name of a congestion control: give 1 to 15 of a-z, 0-9 and _ (such as cubic)"
        )
    changed = False
    for name in names:
        if name in available():
            continue
        try:
            run("modprobe", "--", f"tcp_{name}")
            reason = f"module tcp_{name} is loaded, but has no congestion control {name}"
        except TuneError as error:
            reason = str(error)
        if name not in available():
            raise TuneError(f"congestion control {name}: this host has {', '.join(available())}; {reason}")
        changed = True
    return changed


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m hosts.tune.congestion")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="list the congestion controls of this host")
    loading = commands.add_parser("ensure", help="load missing congestion controls")
    loading.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args(arguments)
    try:
        changed = ensure(options.names) if options.command == "ensure" else False
    except TuneError as error:
        print(f"congestion: {error}", file=sys.stderr)
        return 1
    print(json.dumps({"changed": changed, "available": available()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
