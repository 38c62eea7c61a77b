# SPDX-License-Identifier: MIT
"""The parameters of `make advise`: one row per parameter with its default, its reader and its meaning.

Words have the form KEY=VALUE; quantities have units as in lib/units.py. All errors are collected, one line each.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from analysis.advise.link import Link
from analysis.advise.memory import MemoryLimits
from analysis.theory.single_flow import ALGORITHMS
from hosts.traffic import draws
from hosts.traffic.draw_words import Drawn, in_base_units, is_distribution, read_distribution
from lib import units
from lib.errors import BadValue, SpecError
from lib.queue_length import threshold
from lib.values import choice, number, quantity, whole_number
from lib.words import PATHS, SWITCH, Key, require

TYPICAL_LOAD = "0.8"  # of Appenzeller et al.'s Figures 10 and 12
MOST_SIZES = 1000
PARTS = 4096  # equally likely parts into which a distribution of sizes is cut
FORMS = ("brief", "full")
UNKNOWN = ("unknown", "unknown number")
LARGEST_FLOW_PACKETS = 10**9


def _flow_sizes(text: str) -> tuple[tuple[units.Quantity, float], ...] | Drawn:
    """Reads sizes with optional weights: 14p, or 45kB, or 14p:3,62p:1; or a distribution as SIZES has it."""
    if is_distribution(text):
        return read_distribution("bytes", "packets")(text)
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
        if units.whole(quantity) == 0 or (weight and float(weight) == 0):
            raise ValueError(f"has a size or frequency of 0 at {word!r}; allowed: {form}, all above 0")
        sizes.append((quantity, float(weight or 1)))
    return tuple(sizes)


def _flows(text: str) -> int:
    """Reads the number of flows; 0 if it is unknown."""
    return 0 if text.lower() in UNKNOWN else whole_number(1, 10**12, "or unknown")(text)


def _path(text: str) -> str:
    if "\0" in text:
        raise ValueError("is not a path; allowed: a directory of runs or run tables")
    return text


def _quantity(low: str, high: str, *dimensions: str) -> Callable[[object], units.Quantity]:
    return quantity(*dimensions, low=low, high=high, positive=True, exact=False)


def _number(low: str, high: str, **options: bool) -> Callable[[object], float]:
    return lambda text: float(number(low, high, **options)(text))


class Parameter(NamedTuple):
    """`default` is in the user's form (None: no default). `read` raises ValueError with the allowed values."""

    default: str | None
    read: Callable[[Any], Any]
    meaning: str


PARAMETERS: dict[str, Parameter] = {
    "rate": Parameter(None, _quantity("1kbit", "1000tbit", "rate"), "rate of the link: mbit, gbit, tbit; required"),
    "rtt": Parameter(None, _quantity("1ns", "1000s", "time"), "round-trip time without queueing: us, ms, s; required"),
    "flows": Parameter(
        None, _flows, "long flows that share the link at one time, in congestion avoidance, or `unknown`; required"
    ),
    "buf": Parameter(
        None,
        quantity("packets", "bytes", "time", "bdp", positive=True),
        "a buffer: what it would give (utilization, 99th percentile of queueing delay, loss): 500p, 300kB, 5ms, 0.1bdp",
    ),
    "cc": Parameter(
        "cubic",
        choice(*ALGORITHMS, problem="has no rule in the papers"),
        f"congestion control of the flows: {', '.join(ALGORITHMS)}",
    ),
    "util": Parameter("0.99", _number("0.001", "1", percent=True), "wanted utilization of the link: 0.99 or 99%"),
    "mtu": Parameter(
        "1500", whole_number(46, 65535), "IP bytes of a full packet: 14 more in a buffer, 38 more on the wire"
    ),
    "delta": Parameter(
        "1",
        _number("1", "1e+06"),
        "Delta of almost fairness; 1: all windows equal. Spang et al. measured 4, for BBR 10 (5.6)",
    ),
    "losing": Parameter(
        None,
        _number("0", "1e+12"),
        "number of flows that see a loss in one RTT, minus n^2/(DELTA BDP) (equation 3, Theorem 6)",
    ),
    "risk": Parameter(
        "0.025",
        _number("0", "1", percent=True, open_ends=True),
        "accepted probability: that a burst finds the buffer full, or that the link is not fully used (Theorem 8)",
    ),
    "window": Parameter(
        None,
        _quantity("1b", "1000gb", "bytes", "packets"),
        "largest window of a flow, if it has a limit: kB, p",
    ),
    "input": Parameter(None, _quantity("1kbit", "1000tbit", "rate"), "highest rate at which one flow can arrive"),
    "load": Parameter(
        None,
        _number("0", "1", percent=True, open_ends=True),
        f"load of short flows or of smooth traffic ({TYPICAL_LOAD} if only FLOW_SIZES is given)",
    ),
    "flow_sizes": Parameter(
        None,
        _flow_sizes,
        "sizes of transfers with their relative frequencies: 14p, 14p:3,45kB:1; or as SIZES: pareto:80kB:1.5",
    ),
    "sram": Parameter("1250000b", quantity("bytes", exact=False), "largest buffer in on-chip SRAM"),
    "package": Parameter("32MiB", quantity("bytes", exact=False), "largest buffer in the chip's package"),
    "evidence": Parameter("docs/results", _path, "directory with run tables or runs to judge the rules by"),
}


KEYS = {
    **{key: Key(row.meaning, row.default or "") for key, row in PARAMETERS.items()},
    "cc": Key(PARAMETERS["cc"].meaning, PARAMETERS["cc"].default or "", tuple(ALGORITHMS)),
    "evidence": Key(PARAMETERS["evidence"].meaning, PARAMETERS["evidence"].default or "", PATHS),
    "advise": Key("full: every rule with its assumptions and our runs; brief: five lines", "brief", FORMS),
    "measure": Key(
        "1: measure the least buffer of this link in virtual time; if BUDGET is too short for that, of a smaller link",
        "0",
        SWITCH,
    ),
    "budget": Key("with MEASURE=1: the expected time of its runs on an idle machine, 60s to 86400s", "300s"),
    "results": Key("with MEASURE=1: the directory for its runs", "results", PATHS),
    "json": Key("1: print JSON", "0", SWITCH),
}


class Question(NamedTuple):
    """The parameters of one call of `make advise`."""

    link: Link
    limits: MemoryLimits
    evidence: str
    flow_sizes: str = ""  # as given
    flows_known: bool = True  # False: link.flows is 1, the number of flows that needs most
    buffer_packets: int | None = None  # BUF

    @property
    def is_about_transfers(self) -> bool:
        """Whether the question is about transfers through access links."""
        return self.link.gamma is not None and bool(self.link.flow_packets)


def read(given: Mapping[str, object]) -> Question:
    """Reads a question from {key: text}. A missing key gets its default. Raises SpecError with all errors."""
    errors: list[BadValue] = []
    values: dict[str, Any] = {}
    for key, parameter in PARAMETERS.items():
        text = given.get(key, parameter.default)
        try:
            values[key] = None if text is None else parameter.read(str(text).strip())
        except ValueError as error:
            errors.append(BadValue(key.upper(), text, str(error)))
    about_transfers = "input" in given and "flow_sizes" in given
    hints = {"rate": "give the link's rate, as in RATE=10gbit", "rtt": "give the round-trip time, as in RTT=40ms"}
    if about_transfers:
        if "buf" in given:
            errors.append(BadValue("BUF", given["buf"], "has no meaning here; allowed: without INPUT and FLOW_SIZES"))
    else:
        hints["flows"] = "give the number of long flows, or FLOWS=unknown"
    require(given, errors, **hints)
    if not errors and values["package"].amount < values["sram"].amount:
        errors.append(BadValue("PACKAGE", given.get("package"), "is less than SRAM; allowed: as much or more"))
    if errors:
        raise SpecError(errors)
    link, buf = _link(values), values["buf"]
    bdp = Fraction(link.rate_bps * link.rtt_ns, 8 * 10**9 * link.wire_bytes)
    return Question(
        link,
        MemoryLimits(float(values["sram"].amount), float(values["package"].amount)),
        values["evidence"],
        str(given.get("flow_sizes", "")).strip(),
        bool(values["flows"]),
        buf and threshold(buf, bdp, link.rate_bps, link.wire_bytes, link.mtu_bytes)[0],
    )


def _parts(drawn: Drawn, mtu_bytes: int) -> dict[int, float]:
    """Cuts a distribution into PARTS equally likely parts. The size of a part is its median in packets. Returns {size:
    number of parts of this size}.
    """
    quantile = draws.distribution(in_base_units(drawn, mtu_bytes)).quantile
    sizes: dict[int, float] = {}
    for part in range(PARTS):
        packets = min(max(math.ceil(quantile((part + 0.5) / PARTS) / mtu_bytes), 1), LARGEST_FLOW_PACKETS)
        sizes[packets] = sizes.get(packets, 0) + 1
    return sizes


def _link(values: Mapping[str, Any]) -> Link:
    mtu = values["mtu"]
    sizes: dict[int, float] = {}
    given = values["flow_sizes"] or ()
    if isinstance(given, Drawn):
        sizes, given = _parts(given, mtu), ()
    for flow_size, weight in given:
        packets = int(flow_size.amount) if flow_size.dimension == "packets" else -(-int(flow_size.amount) // mtu)
        if packets > LARGEST_FLOW_PACKETS:
            raise SpecError(
                [BadValue("FLOW_SIZES", flow_size.text, f"is too large; allowed: up to {LARGEST_FLOW_PACKETS}p")]
            )
        sizes[packets] = sizes.get(packets, 0) + weight
    load = values["load"] if values["load"] is not None or not sizes else float(TYPICAL_LOAD)
    window = values["window"]
    unit = mtu if window and window.dimension == "packets" else 1
    return Link(
        rate_bps=int(values["rate"].amount),
        rtt_ns=int(values["rtt"].amount),
        flows=values["flows"] or 1,
        cc=values["cc"],
        utilization=values["util"],
        mtu_bytes=mtu,
        delta=values["delta"],
        losing=values["losing"],
        risk=values["risk"],
        window_bytes=float(window.amount) * unit if window else None,
        input_bps=int(values["input"].amount) if values["input"] else None,
        load=load,
        flow_packets=tuple(sorted(sizes.items())),
    )
