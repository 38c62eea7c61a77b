# SPDX-License-Identifier: MIT
"""The keys of the command `import`."""

from __future__ import annotations

import re
from pathlib import Path

from controlplane.policy import WATCHED_MODES
from lib.keys import Keys, Wrong
from lib.keys import field as key
from lib.quantities import Packets, Rate, Time
from lib.values import whole_number
from lib.words import PATHS

MTU_BYTES, FLOWS, MOST_PACKETS = (576, 65535), (1, 65535), 10**9
MOST_TIME = f"{366 * 86_400}s"


class NotAllowedError(ValueError):
    """A refused value; `allowed` says which values are allowed."""

    def __init__(self, fault: str, allowed: str) -> None:
        super().__init__(f"{fault}; allowed: {allowed}")
        self.allowed = allowed


def algorithm(text: str) -> str:
    """A congestion control's name. Raises NotAllowedError."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,14}", text):
        raise NotAllowedError(
            "is not a congestion control's name", "1 to 15 of a-z, 0-9 and _, the first a letter, as in cubic"
        )
    return text


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


class Asked(Keys):
    """`from_`, the source, has everything that is not given."""

    from_: list[str] | None = key(
        "one source, or several with commas: a directory with trace.tr, postcards.tr or config.json, such a file, a "
        "text trace of tcp_probe, or pcap or pcapng files, of postcards or of a link's packets (with RATE); or a "
        "directory with the published data set's tables as CSV or Parquet alone",
        _words, values=PATHS,
    )  # fmt: skip
    before: list[str] | None = key(
        "in place of FROM: a capture of the packets before they come to the queue (pcap or pcapng, also compressed), "
        "several with commas, or a quoted pattern, such as 'in*.pcap'",
        _words, values=PATHS,
    )  # fmt: skip
    after: list[str] | None = key("with BEFORE: a capture of the same packets behind the queue", _words, values=PATHS)
    trace: list[str] | None = key(
        "with captures of packets: a log of the sender's host with its connections' windows, lines of tcp:tcp_probe "
        "(tracefs, trace-cmd report, perf script) or of `date +%s.%N; ss -tin` in turn; several with commas, or a "
        "quoted pattern",
        _words, values=PATHS,
    )  # fmt: skip
    output: Path = key("the new directory of the run (of all runs with EXPERIMENT=all)", default=None)
    experiment: str | None = key("which experiment of the tables: its id, or all (each into OUTPUT/runs/<id>)")
    rate: Rate | None = key(
        "rate of the bottleneck (default: the source's; if it states none, the published data's 10gbit)",
        Rate.within("1bit", "1000tbit"),
    )
    rtt: Time | None = key(
        "base RTT of the path (default: the source's; if it states none, the published data's 1.2ms)",
        Time.within("1us", "1000s"),
    )
    mtu: int | None = key("MTU in bytes (default: the source's; if it states none, 9000)", whole_number(*MTU_BYTES))
    cc: str | None = key("congestion control (default: the source's; if it states none, unknown)", algorithm)
    mode: str | None = key(
        f"mode of the queue: {', '.join(WATCHED_MODES)} (default: the source's; if it states none, {WATCHED_MODES[0]})",
        values=WATCHED_MODES,
    )
    buf: Packets | None = key(
        "buffer in packets, such as 163p (default: the source's buffer, or the depth at which its switch dropped; if "
        "the source states neither, the deepest queue)",
        Packets.within("1p", f"{MOST_PACKETS}p"),
    )
    flows: int | None = key(
        "number of flows (default: the source's; if it states none, all that send data)", whole_number(*FLOWS)
    )
    warmup: Time | None = key(
        "time at the start that is not measured (default: the source's; if it states none, the first third, as in "
        "Spang et al.)",
        Time.within("0s", MOST_TIME, "a year"),
    )
    duration: Time | None = key(
        "length of the measured part after WARMUP (default: the source's; if it states none, a third of the traffic)",
        Time.within("1ns", MOST_TIME, "a year"),
    )

    def check(self, wrong: Wrong) -> None:
        taps = [name for name in ("before", "after") if getattr(self, name)]
        if self.from_ is None and not taps:
            wrong("from", "is missing; give a source, or BEFORE and AFTER")
        elif self.from_ is not None and taps:
            wrong(taps[0], "has no meaning beside FROM; allowed: BEFORE and AFTER, or FROM")
        elif len(taps) == 1:
            wrong("before" if taps == ["after"] else "after", "is missing; allowed: BEFORE and AFTER together")
        elif taps and self.rate is None:
            wrong("rate", "is missing; give the rate of the link that AFTER is on, as RATE=1gbit")
