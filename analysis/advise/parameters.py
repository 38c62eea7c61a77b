# SPDX-License-Identifier: MIT
"""The keys of `make advise`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import model_validator

from analysis.advise.captured import Captured
from analysis.advise.link import Link
from analysis.advise.memory import MemoryLimits
from analysis.theory.single_flow import ALGORITHMS
from hosts.traffic import draws
from hosts.traffic.draw_words import Drawn, in_base_units, is_distribution, read_distribution
from lib import keys, units
from lib.keys import Keys, Wrong, field, flag
from lib.quantities import Buffer, Rate, Size, Time, Window
from lib.values import choice, number, whole_number

TYPICAL_LOAD = 0.8  # of Appenzeller et al.'s Figures 10 and 12
MOST_SIZES = 1000
PARTS = 4096  # equally likely parts into which a distribution of sizes is cut
FORMS = ("brief", "full")
UNKNOWN = ("unknown", "unknown number")
LARGEST_FLOW_PACKETS = 10**9
LEAST_BUDGET_S, DEFAULT_BUDGET_S, MOST_BUDGET_S = 60, 300, 86_400


class FlowSizes(NamedTuple):
    """Sizes with their relative frequencies, or a distribution."""

    text: str
    sizes: tuple[tuple[units.Quantity, float], ...] | Drawn

    def __str__(self) -> str:
        return self.text

    def packets(self, mtu_bytes: int) -> dict[int, float]:
        """The relative frequency of each size. A distribution is cut into PARTS equally likely parts; the size of a
        part is its median.
        """
        result: dict[int, float] = {}
        if isinstance(self.sizes, Drawn):
            quantile = draws.distribution(in_base_units(self.sizes, mtu_bytes)).quantile
            for part in range(PARTS):
                size = math.ceil(quantile((part + 0.5) / PARTS) / mtu_bytes)
                size = min(max(size, 1), LARGEST_FLOW_PACKETS)
                result[size] = result.get(size, 0) + 1
            return result
        for given, weight in self.sizes:
            size = int(given.amount) if given.dimension == "packets" else -(-int(given.amount) // mtu_bytes)
            result[size] = result.get(size, 0) + weight
        return result


def _flow_sizes(value: str) -> FlowSizes:
    """Reads sizes with optional weights: 14p, or 45kB, or 14p:3,62p:1; or a distribution as SIZES has it."""
    text = value.strip()
    if is_distribution(text):
        return FlowSizes(text, read_distribution("bytes", "packets")(text))
    form = "sizes in packets or bytes with relative frequencies: 14p, 14p:3,45kB:1; or as SIZES: pareto:80kB:1.5"
    words = text.split(",")
    if len(words) > MOST_SIZES:
        raise ValueError(f"has {len(words)} sizes; allowed: at most {MOST_SIZES}")
    sizes = []
    for word in words:
        size, _, weight = word.strip().partition(":")
        if not re.fullmatch(r"([0-9]{1,9}(\.[0-9]{1,9})?)?", weight) or (":" in word and not weight):
            raise ValueError(f"cannot be read at {word!r}; allowed: {form}")
        quantity = units.parse(size, ("packets", "bytes"))
        if units.integer(quantity) == 0 or (weight and float(weight) == 0):
            raise ValueError(f"has a size or frequency of 0 at {word!r}; allowed: {form}, all above 0")
        sizes.append((quantity, float(weight or 1)))
    return FlowSizes(text, tuple(sizes))


def _flows(text: str) -> int | None:
    return None if text.strip().lower() in UNKNOWN else whole_number(1, 10**12, "or unknown")(text)


def _number(low: str, high: str, **options: bool) -> Callable[[object], float]:
    return lambda text: float(number(low, high, **options)(text))


class Question(Keys):
    """A link and its traffic. `flows` is None if the number is unknown; `link.flows` is then 1, which needs most."""

    # fmt: off
    rate: Rate = field("rate of the link (required): mbit, gbit, tbit", Rate.within("1kbit", "1000tbit"), None)
    rtt: Time = field(
        "round-trip time without queueing (required): us, ms, s", Time.within("1ns", "1000s"), None)
    flows: int | None = field(
        "long flows that share the link at one time, in congestion avoidance, or `unknown` (required)", _flows, None)
    buf: Buffer | None = field(
        "a buffer: what it would give (utilization, 99th percentile of queueing delay, loss): 500p, 300kB, 5ms, "
        "0.1bdp")
    cc: str = field(
        f"congestion control of the flows: {', '.join(ALGORITHMS)}",
        choice(*ALGORITHMS, problem="has no rule in the papers"), "cubic", values=tuple(ALGORITHMS))
    util: float = field(
        "wanted utilization of the link: 0.99 or 99%", _number("0.001", "1", percent=True), "0.99")
    mtu: int = field(
        "IP bytes of a full packet: 14 more in a buffer, 38 more on the wire", whole_number(46, 65535), "1500")
    delta: float = field(
        "Delta of almost fairness; 1: all windows equal. Spang et al. measured 4, for BBR 10 (5.6)",
        _number("1", "1e+06"), "1")
    losing: float | None = field(
        "number of flows that see a loss in one RTT, minus n^2/(DELTA BDP) (equation 3, Theorem 6)",
        _number("0", "1e+12"))
    risk: float = field(
        "accepted probability: that a burst finds the buffer full, or that the link is not fully used (Theorem 8)",
        _number("0", "1", percent=True, open_ends=True), "0.025")
    window: Window | None = field(
        "largest window of a flow, if it has a limit: kB, p", Window.within("1b", "1000gb"))
    input: Rate | None = field("highest rate at which one flow can arrive", Rate.within("1kbit", "1000tbit"))
    load: float | None = field(
        f"load of short flows or of smooth traffic ({TYPICAL_LOAD} if only FLOW_SIZES is given)",
        _number("0", "1", percent=True, open_ends=True))
    flow_sizes: FlowSizes | None = field(
        "sizes of transfers with their relative frequencies: 14p, 14p:3,45kB:1; or as SIZES: pareto:80kB:1.5",
        _flow_sizes)
    sram: Size = field("largest buffer in on-chip SRAM", default="1250000b")
    package: Size = field("largest buffer in the chip's package", default="32MiB")
    from_: Path | None = field(
        "an imported capture of the link (make import FROM=link.pcap): it answers RATE, RTT, FLOWS and MTU if they are "
        "not given, and is asked what other buffers would do")
    watermark: Size | None = field(
        "with FROM: the most that the switch's queue held, by its counter: 1.2MB", Size.within("1b", "1000gb"))
    drops: float | None = field(
        "with FROM: the share of packets that the switch dropped, by its counters: 0.01%",
        _number("0", "1", percent=True))
    evidence: Path = field("directory with run tables or runs to judge the rules by", default="docs/results")
    # fmt: on

    @model_validator(mode="before")
    @classmethod
    def _of_transfers(cls, given: dict[str, Any]) -> dict[str, Any]:
        """A question about transfers needs no number of long flows; a capture answers most of one about its link."""
        if from_ := given.get("from"):
            given = {**Captured(Path(from_)).words(), **given}
        return {"flows": UNKNOWN[0], **given} if {"input", "flow_sizes"} <= given.keys() else given

    def check(self, wrong: Wrong) -> None:
        if self.buf and self.is_about_transfers:
            wrong("buf", "has no meaning here; allowed: without INPUT and FLOW_SIZES")
        for name in ("watermark", "drops"):
            if getattr(self, name) is not None and self.from_ is None:
                wrong(name, "has no meaning here; allowed: with FROM, an imported capture of the link")
        if self.from_ and self.is_about_transfers:
            wrong("from", "has no meaning beside INPUT and FLOW_SIZES; allowed: without them")
        if self.package.base_units < self.sram.base_units:
            wrong("package", "is less than SRAM; allowed: as much or more")
        if self.link.flow_packets and self.link.flow_packets[-1][0] > LARGEST_FLOW_PACKETS:
            wrong("flow_sizes", f"has a size that is too large; allowed: up to {LARGEST_FLOW_PACKETS}p")
        if "evidence" in self.model_fields_set and not self.evidence.is_dir():
            wrong("evidence", "is not a directory; allowed: one with runs or tables")

    @cached_property
    def link(self) -> Link:
        sizes = self.flow_sizes.packets(self.mtu) if self.flow_sizes else {}
        return Link(
            rate_bps=self.rate.bps,
            rtt_ns=self.rtt.ns,
            flows=self.flows or 1,
            cc=self.cc,
            utilization=self.util,
            mtu_bytes=self.mtu,
            delta=self.delta,
            losing=self.losing,
            risk=self.risk,
            window_bytes=self.window and float(self.window.in_bytes(self.mtu)),
            input_bps=self.input and self.input.bps,
            load=TYPICAL_LOAD if self.load is None and sizes else self.load,
            flow_packets=tuple(sorted(sizes.items())),
        )

    @property
    def limits(self) -> MemoryLimits:
        return MemoryLimits(float(self.sram.base_units), float(self.package.base_units))

    @property
    def buffer_packets(self) -> int | None:
        """BUF in packets."""
        link = self.link
        bdp = Fraction(link.rate_bps * link.rtt_ns, 8 * 10**9 * link.wire_bytes)
        return self.buf and self.buf.threshold(bdp, link.rate_bps, link.wire_bytes, link.mtu_bytes)[0]

    @property
    def is_about_transfers(self) -> bool:
        """Whether the question is about transfers through access links."""
        return self.input is not None and self.flow_sizes is not None


class Asked(Question):
    """The keys of `advise`. experiments/commands/advise.py has the rules of a measurement."""

    advise: str = field(
        "full: every rule with its assumptions and our runs; brief: five lines", default=FORMS[0], values=FORMS
    )
    measure: bool = flag(
        "1: measure the least buffer of this link in virtual time; if BUDGET is too short for that, of a smaller link"
    )
    budget: Time = field(
        "with MEASURE=1: the expected time of its runs on an idle machine, 60s to 86400s",
        Time.within(f"{LEAST_BUDGET_S}s", f"{MOST_BUDGET_S}s"),
        f"{DEFAULT_BUDGET_S}s",
    )
    results: Path = field("with MEASURE=1: the directory for its runs", default="results")
    json_: bool = flag("1: print JSON")


def read(given: Mapping[str, object]) -> Question:
    """Reads a question from {key: text}. A missing key gets its default. Raises SpecError with all errors."""
    return keys.read(Question, given, [])
