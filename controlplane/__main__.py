# SPDX-License-Identifier: MIT
"""`python -m controlplane COMMAND`: configures and shows a running switch from the command line.

Exit status: 0 done; 1 failed, with the reason on stderr; 2 `diff` found differences.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from controlplane import commands, watch
from controlplane.apply import ApplyError
from controlplane.policy import MODES
from controlplane.spec import SpecFileError
from controlplane.switch import SwitchError
from controlplane.targets import TARGETS
from lib.errors import fail
from lib.exit_codes import of_signal


class _UsageError(Exception):
    pass


class _Parser(argparse.ArgumentParser):
    """Reports a usage error in one line, as this program reports all errors."""

    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{message}; see {self.prog} --help")


def main(arguments: list[str]) -> int:
    """Runs one command; returns the exit status."""
    try:
        options = _parser().parse_args(arguments)
        status: int = options.run(options)
        return status
    except ApplyError as error:
        return fail(error.lines)
    except SpecFileError as error:
        return fail(error.lines)
    except (SwitchError, _UsageError) as error:
        return fail([str(error)])
    except KeyboardInterrupt:
        return of_signal(signal.SIGINT)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser("python -m controlplane", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Any, text: str) -> argparse.ArgumentParser:
        subparser = subparsers.add_parser(name, help=text, description=text)
        subparser.set_defaults(run=run)
        group = subparser.add_argument_group("which switch")
        group.add_argument(
            "--file",
            type=Path,
            help="a switch.yaml, which names target and address; --target and --address override it",
        )
        group.add_argument("--target", help=f"one of {', '.join(TARGETS)}")
        examples = "; ".join(f"{name}: {row.address}" for name, row in TARGETS.items())
        group.add_argument("--address", help=f"address of the switch, for example {examples}")
        return subparser

    command("apply", commands.apply_file, "configure the switch as the file says; idempotent")
    command("diff", commands.diff, "show the changes that apply would make, and change nothing")
    command("ports", commands.ports, "list the ports: names, numbers, queue, policy, postcards")
    threshold = command("threshold", commands.threshold, "show or set the threshold of a queue's policy")
    threshold.add_argument("operation", choices=("get", "set"))
    threshold.add_argument("port", help="name of the port, as `ports` lists it")
    threshold.add_argument("value", nargs="?", help="for set: 163p, 30000c, 300kB, 250us, 1bdp")
    _traffic(threshold)
    mode = command("mode", commands.mode, "show or set a queue's policy")
    mode.add_argument("port")
    mode.add_argument("mode", nargs="?", choices=tuple(MODES))
    mode.add_argument("--threshold", help="the depth from which the policy acts (default: unchanged)")
    mode.add_argument("--hard-limit", help="ecn: the depth from which ECN-capable packets are dropped as well")
    mode.add_argument("--mark", action="store_true", help="egress-threshold: mark ECN-capable packets")
    _traffic(mode)
    own = command("parameters", commands.parameters, "show or change the parameters of a policy of your own")
    own.add_argument("values", nargs="*", metavar="NAME=VALUE", help="for example target=5ms")
    own.add_argument("--program", type=Path, required=True, help="the switch's program: p4/NAME.json of a run")
    cards = command("postcards", commands.postcards, "switch a queue's postcards on or off")
    cards.add_argument("state", choices=("on", "off"))
    cards.add_argument("port")
    cards.add_argument("--switch-id", type=int, default=1, help="the switch id in each postcard (default 1)")
    command("counters", commands.counters, "show every counter that is not zero")
    histogram = command("histogram", commands.histogram, "show how deep a queue was when packets arrived")
    histogram.add_argument("port")
    live = command("watch", watch.watch, "show a live table: rates per second, depths, drops (end it with Ctrl-C)")
    live.add_argument("--interval", type=float, default=1.0, help="seconds between readings (default 1)")
    live.add_argument("--count", type=int, help="end after this many readings")
    return parser


def _traffic(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("to convert thresholds in bdp, time or other units")
    group.add_argument("--rate", help="the queue's rate, such as 200mbit (default: the file's, else the rate in force)")
    group.add_argument("--rtt", help="base RTT, such as 10ms (default: the file's)")
    group.add_argument("--mtu", help="MTU of full packets, such as 1500 (default: the file's)")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
