# SPDX-License-Identifier: MIT
"""Propagation delay by netem, for kernels that have it: `python -m hosts.tune.delay apply|undo`.

By default netem delays the ACKs on the receiver's egress, behind an ifb device. `receiver-ingress` delays the data,
also behind an ifb. `sender-egress` delays the data on the sender, as in the text of Spang et al. (2021). There TCP
Small Queues counts the delayed packets as queued on the host, holds the flow back, and distorts the result
(`distorted_by_tcp_small_queues` in the output). The queue limit is always explicit, because netem's default limit
of 1000 packets would drop packets silently. Prints JSON; needs root; standard library only.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import socket
import sys
from pathlib import Path
from typing import Any

from hosts.tune import state
from hosts.tune.commands import CommandError, TuneError, run

SUMMARY = (__doc__ or "").split("\n", 1)[0]
PLACES = ("receiver-egress", "receiver-ingress", "sender-egress")
IFB = "bf_delay"
LIMIT_PER_BDP = 1.5
MOST_DELAY_NS = 10_000_000_000

NO_NETEM = (
    "this kernel has no netem: load the module sch_netem, or boot a kernel built with CONFIG_NET_SCH_NETEM; "
    "or let the switch delay (DELAY=switch)"
)
NO_IFB = "this kernel has no ifb device: load the module ifb, or boot a kernel built with CONFIG_IFB"
NO_REDIRECT = (
    "this kernel cannot redirect to an ifb: boot one built with CONFIG_NET_SCH_INGRESS, CONFIG_NET_CLS_U32 and "
    "CONFIG_NET_ACT_MIRRED"
)


def netem(delay_ns: int, limit_packets: int) -> list[str]:
    """Arguments of tc for the delay queue. Fractions of 1 us are the finest unit that all versions of tc read."""
    return ["netem", "delay", f"{delay_ns / 1000:.3f}us", "limit", str(limit_packets)]


def _explained(error: CommandError, meaning: str) -> TuneError:
    """`meaning` if the kernel lacks a feature, else the program's own error."""
    missing = ("kind is unknown", "not supported", "Unknown device type", "No such file or directory", "Unknown qdisc")
    return TuneError(meaning) if any(words in error.reason for words in missing) else error


def check_free(interface: str, place: str) -> None:
    """Raises TuneError if another queue or device is in the place of ours."""
    for qdisc in json.loads(run("tc", "-j", "qdisc", "show", "dev", interface) or "[]"):
        same_place = qdisc.get("root", False) if place == "sender-egress" else qdisc["kind"] in ("clsact", "ingress")
        if same_place and qdisc.get("handle", "0:") != "0:" and qdisc["kind"] not in ("noqueue", "mq"):
            raise TuneError(f"{interface} has a queue of kind {qdisc['kind']} already: remove it (tc qdisc del) first")
    if place != "sender-egress" and any(name == IFB for _, name in socket.if_nameindex()):
        raise TuneError(f"there is a device {IFB} already: remove it (ip link del {IFB}) first")


def build(interface: str, place: str, queue: list[str]) -> None:
    """Makes the devices and queues; if one fails, removes those made before."""
    if place == "sender-egress":
        try:
            run("tc", "qdisc", "add", "dev", interface, "root", *queue)
        except CommandError as error:
            raise _explained(error, NO_NETEM) from error
        return
    meaning = NO_IFB
    try:
        run("ip", "link", "add", IFB, "type", "ifb")
        meaning = NO_NETEM
        run("tc", "qdisc", "add", "dev", IFB, "root", *queue)
        run("ip", "link", "set", IFB, "up")
        meaning = NO_REDIRECT
        run("tc", "qdisc", "add", "dev", interface, "clsact")
        everything = ["protocol", "all", "u32", "match", "u32", "0", "0"]
        redirect = ["action", "mirred", "egress", "redirect", "dev", IFB]
        run("tc", "filter", "add", "dev", interface, place.split("-")[1], *everything, *redirect)
    except CommandError as error:
        remove(interface, place)
        raise _explained(error, meaning) from error
    except TuneError:
        remove(interface, place)
        raise


def remove(interface: str, place: str) -> None:
    """Removes the devices and queues of `build`. Missing ones are ignored."""
    with contextlib.suppress(CommandError):
        run("tc", "qdisc", "del", "dev", interface, "root" if place == "sender-egress" else "clsact")
    if place != "sender-egress":
        with contextlib.suppress(CommandError):
            run("ip", "link", "del", IFB)


def present(interface: str, place: str) -> bool:
    """Whether the delay queue of `build` exists."""
    device = interface if place == "sender-egress" else IFB
    try:
        qdiscs = json.loads(run("tc", "-j", "qdisc", "show", "dev", device) or "[]")
    except CommandError:
        return False
    return any(qdisc["kind"] == "netem" for qdisc in qdiscs)


def apply(options: argparse.Namespace) -> dict[str, Any]:
    least = math.ceil(LIMIT_PER_BDP * options.bdp_packets)
    limit = options.limit_packets if options.limit_packets is not None else least
    if limit < least:
        why = f"{LIMIT_PER_BDP} x {options.bdp_packets}"
        raise TuneError(f"--limit-packets {limit}: netem would drop: give at least {least} ({why})")
    wanted = {
        "interface": options.interface,
        "at": options.at,
        "delay_ns": options.delay_ns,
        "limit_packets": limit,
        "distorted_by_tcp_small_queues": options.at == "sender-egress",
    }
    saved = state.load(options.state).get("delay")
    if saved == wanted and present(options.interface, options.at):
        return {"changed": False, **wanted}
    if saved:
        remove(saved["interface"], saved["at"])
    check_free(options.interface, options.at)
    state.save(options.state, {"delay": wanted})
    try:
        build(options.interface, options.at, netem(options.delay_ns, limit))
    except TuneError:
        options.state.unlink()
        raise
    return {"changed": True, **wanted}


def undo(options: argparse.Namespace) -> dict[str, Any]:
    saved = state.load(options.state).get("delay")
    if saved:
        remove(saved["interface"], saved["at"])
    state.forget(options.state)
    return {"changed": saved is not None}


def parse_number(most: int) -> Any:
    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"'{text}': give a whole number from 1 to {most}")
        return int(text)

    return parse


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m hosts.tune.delay", description=SUMMARY)
    commands = parser.add_subparsers(dest="command", required=True)
    change = commands.add_parser("apply", help="add the delay")
    change.add_argument("--state", type=Path, required=True, help="file that records the delay for undo")
    change.add_argument("--interface", type=state.parse_interface, required=True)
    change.add_argument("--at", choices=PLACES, default=PLACES[0])
    change.add_argument("--delay-ns", type=parse_number(MOST_DELAY_NS), required=True)
    change.add_argument("--bdp-packets", type=parse_number(100_000_000), required=True, help="packets in flight")
    change.add_argument(
        "--limit-packets",
        type=parse_number(1_000_000_000),
        help="limit of the delay queue (default and least: 1.5 BDP)",
    )
    back = commands.add_parser("undo", help="remove the delay")
    back.add_argument("--state", type=Path, required=True)
    options = parser.parse_args(arguments)
    try:
        result = apply(options) if options.command == "apply" else undo(options)
    except (TuneError, OSError) as error:
        print(f"delay: {error}", file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
