# SPDX-License-Identifier: MIT
"""`python -m controlplane COMMAND`: sets and shows a running switch from the command line.

Exit status: 0 done; 1 not, and why is on stderr; 2 `diff` found differences.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, NoReturn

from controlplane import commands, watch
from controlplane.apply import ApplyError
from controlplane.policy import MODES
from controlplane.spec_file import SpecFileError
from controlplane.switch import SwitchError
from controlplane.targets import TARGETS
from lib.terminal import printable


class _UsageError(Exception):
    pass


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as everything else here does."""

    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{message}; see {self.prog} --help")


def main(arguments: list[str]) -> int:
    """Runs one command; returns the exit status."""
    try:
        options = _parser().parse_args(arguments)
        status: int = options.run(options)
        return status
    except ApplyError as error:
        return _fail(error.lines)
    except SpecFileError as error:
        return _fail(error.lines)
    except (SwitchError, _UsageError) as error:
        return _fail([str(error)])
    except KeyboardInterrupt:
        return 130


def _fail(lines: list[str]) -> int:
    for line in lines:
        print(f"error: {printable(line)}", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = _Parser("python -m controlplane", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    within = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Any, text: str) -> argparse.ArgumentParser:
        made = within.add_parser(name, help=text, description=text)
        made.set_defaults(run=run)
        which = made.add_argument_group("which switch")
        which.add_argument("--file", type=Path, help="a switch.yaml, which names target and address")
        which.add_argument("--target", help=f"one of {', '.join(TARGETS)}")
        which.add_argument("--address", help="; ".join(f"{name}: {one.address}" for name, one in TARGETS.items()))
        return made

    command("apply", commands.apply_file, "make the switch what the file says; a second time changes nothing")
    command("diff", commands.diff, "show what apply would change, and change nothing")
    command("ports", commands.ports, "list the ports: names, numbers, queue, policy, postcards")
    threshold = command("threshold", commands.threshold, "show or set where a queue's policy acts")
    threshold.add_argument("what", choices=("get", "set"))
    threshold.add_argument("port", help="name of the port, as `ports` lists it")
    threshold.add_argument("value", nargs="?", help="163p, 30000c, 300kB, 250us, 1bdp")
    _traffic(threshold)
    mode = command("mode", commands.mode, "show or set a queue's policy")
    mode.add_argument("port")
    mode.add_argument("mode", nargs="?", choices=tuple(MODES))
    mode.add_argument("--threshold", help="where it acts; left out, the threshold stays")
    mode.add_argument("--hard-limit", help="ecn: where even what could be marked is dropped")
    mode.add_argument("--mark", action="store_true", help="egress-threshold: mark what can be marked")
    _traffic(mode)
    cards = command("postcards", commands.postcards, "switch a queue's postcards on or off")
    cards.add_argument("what", choices=("on", "off"))
    cards.add_argument("port")
    cards.add_argument("--switch-id", type=int, default=1, help="said in each postcard (default 1)")
    command("counters", commands.counters, "show every counter that is not zero")
    histogram = command("histogram", commands.histogram, "show how deep packets found a queue")
    histogram.add_argument("port")
    live = command("watch", watch.watch, "a live table: rates a second, depths, drops (end it with Ctrl-C)")
    live.add_argument("--interval", type=float, default=1.0, help="seconds between readings (default 1)")
    live.add_argument("--count", type=int, help="end after so many readings")
    return parser


def _traffic(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what thresholds in bdp, time or other units are converted with")
    group.add_argument("--rate", help="of the queue, 200mbit (default: the file's, else what is in force)")
    group.add_argument("--rtt", help="base RTT, 10ms (default: the file's)")
    group.add_argument("--mtu", help="of full packets, 1500 (default: the file's)")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
