# SPDX-License-Identifier: MIT
"""The facts about a host that a run on a testbed stores: `python -m hosts.facts --interface I ...`. Prints JSON.

`lost_frames`, by interface: frames that the kernel or the NIC lost since boot. `passed_frames`: frames received and
sent. `tcp_memory_pressures`: how often TCP ran short of memory since the network namespace was made. `clock`: the
reports of the time daemons. `settings`: those of hosts.tune.inventory. Standard library only (Python 3.9 or later).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from pathlib import Path

from hosts.netstat import memory_pressures
from hosts.tune import inventory, state
from hosts.tune.commands import TuneError, run

# Files of /sys/class/net/*/statistics (Documentation/ABI/testing/sysfs-class-net-statistics).
LOST = (
    "tx_dropped", "tx_errors", "tx_carrier_errors",
    "rx_dropped", "rx_missed_errors", "rx_over_errors", "rx_fifo_errors", "rx_crc_errors",
)  # fmt: skip
NETSTAT = Path("/proc/self/net/netstat")
# Commands that show how a clock is disciplined. They change nothing.
CLOCKS = (
    ("chronyc", "-n", "tracking"),
    ("timedatectl", "show-timesync"),
    ("pmc", "-u", "-b", "0", "GET TIME_STATUS_NP"),
)


CLOCK_TIMEOUT_S = 2.0


def lost_frames(interface: str) -> int:
    """Raises OSError."""
    statistics = Path("/sys/class/net") / interface / "statistics"
    return sum(int((statistics / name).read_text()) for name in LOST)


def passed_frames(interface: str) -> dict[str, int]:
    """Raises OSError."""
    statistics = Path("/sys/class/net") / interface / "statistics"
    counters = {"received": "rx_packets", "sent": "tx_packets"}
    return {name: int((statistics / counter).read_text()) for name, counter in counters.items()}


def clock() -> dict[str, list[str]]:
    """{program: lines of its output} for each of CLOCKS that succeeds."""
    said = {}
    for words in CLOCKS:
        with contextlib.suppress(TuneError):
            said[words[0]] = [" ".join(line.split()) for line in run(*words, timeout_s=CLOCK_TIMEOUT_S).splitlines()]
    return said


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m hosts.facts", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--interface", type=state.parse_interface, action="append", default=[])
    options = parser.parse_args(arguments)
    try:
        lost = {interface: lost_frames(interface) for interface in options.interface}
        passed = {interface: passed_frames(interface) for interface in options.interface}
        pressures = memory_pressures(NETSTAT.read_text())
    except (OSError, ValueError) as error:
        print(f"hosts.facts: {error}", file=sys.stderr)
        return 1
    counts = {"lost_frames": lost, "passed_frames": passed, "tcp_memory_pressures": pressures}
    print(json.dumps({**counts, "clock": clock(), "settings": inventory.show()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
