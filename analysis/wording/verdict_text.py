# SPDX-License-Identifier: MIT
"""The answer of a repetition in words, from its summary: the verdict sentence, each algorithm's share of the goodput,
and the part that still holds if the run is not valid. Terminal and report print the same words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from analysis.wording import algorithm_names
from analysis.wording.formats import count, si
from analysis.wording.link_text import rate_text
from analysis.wording.traffic_text import sizes_text, transfers_text
from lib import units
from model.experiment import Experiment
from model.groups import OPEN_LOOP
from runs import verdict
from runs.verdict import Area

Summary = Mapping[str, Any]
# The stations of a packet's record, in order. All counts are equal if every packet of the queue was recorded.
RECORD = ("switch_packets", "postcards_sent", "postcards_received", "postcards_stored", "postcards_rows")
TRACE = ("tcp_events", "tcp_events_stored", "tcp_events_rows")


class Share(NamedTuple):
    """The long flows of one congestion control; `fraction` is their share of the goodput of all long flows."""

    cc: str
    flows: int
    goodput_bps: float
    fraction: float | None

    @property
    def name(self) -> str:
        return algorithm_names.name(self.cc)


def shares(summary: Summary) -> list[Share]:
    """A share for each algorithm, in the order of the flows; none if a flow's algorithm or goodput is not known, or if
    flows were there at different times: `groups` has the shares then.
    """
    if any(group.times_ns for group in verdict.experiment(summary).groups):
        return []
    sums: dict[str, list[float]] = {}
    for flow in summary.get("flows") or ():
        if flow.get("cc") is None or flow.get("goodput_bps") is None:
            return []
        sums.setdefault(flow["cc"], []).append(flow["goodput_bps"])
    total = sum(map(sum, sums.values()))
    return [Share(cc, len(rates), sum(rates), sum(rates) / total if total else None) for cc, rates in sums.items()]


def sentence(summary: Summary) -> str:
    """Who used how much of the link with which buffer, and whether the queue emptied."""
    spec = verdict.experiment(summary)
    used, nonempty = summary["utilization"].get("mean"), summary.get("queue_nonempty_fraction")
    link = f"a changing rate ({rate_text(spec)})" if spec.rate_changes else rate_text(spec)
    said = f"used {percent_below_all(used)} of {link}" if used is not None else f"sent through {link}"
    queue = ""
    if nonempty is not None:
        empty = f"{float(f'{100 * (1 - nonempty):.2g}'):g} % of packets found the queue empty"
        queue = "; the queue never emptied" if nonempty == 1 else f"; {empty}"
    return f"{_traffic(spec)} {said} with a buffer of {buffer_text(spec)}{queue}."


def buffer_text(spec: Experiment) -> str:
    """The buffer in the unit that the user gave, and in another: "1 BDP (163 packets)"."""
    packets = spec.buffer_packets
    try:
        given = units.parse(str(spec.buffer_given), ("bdp", "packets", "bytes", "time"))
    except ValueError:  # an imported run has none
        return count(packets, "packet")
    bdp = f"{packets / spec.bdp_packets:.3g} BDP"
    if given.dimension == "packets":
        return f"{count(packets, 'packet')} ({bdp})"
    amount = float(given.amount)
    named = {"bdp": f"{amount:.4g} BDP", "bytes": si(amount, "B"), "time": si(amount / 1e9, "s")}[given.dimension]
    return f"{named} ({count(packets, 'packet')})"


def still_true(summary: Summary) -> list[str]:
    """Sentences on a run that is not valid: which numbers hold nevertheless, and which do not. The ledger's counts
    decide. With a damaged file, a clock step, or other traffic than asked, no number is known to hold.
    """
    ledger, reasons = summary.get("ledger") or {}, [str(reason) for reason in summary.get("reasons") or ()]
    known = [ledger.get(name) for name in RECORD]
    facts = summary.get("fidelity") or {}
    others = [reason for reason in reasons if not reason.startswith(tuple(f"{area}: " for area in Area))]
    counts = [number for number in known if number is not None]
    if others or facts.get("clock_steps") or len(counts) < len(RECORD) or not counts[0]:
        return ["Nothing is known to hold: the reasons are about more than late frames and lost records."]
    lines = []
    if len(set(counts)) == 1 and not ledger.get("postcards_missing") and not ledger.get("postcards_duplicate"):
        lines.append(
            f"All {counts[0]:,} packets of the queue are recorded: depths, delays, drops, marks and shares hold "
            "for the switch."
        )
    else:
        lines.append(
            f"{min(counts):,} of {counts[0]:,} packets of the queue are recorded: numbers of packets, drops and "
            "marks are lower bounds."
        )
    traced = [ledger.get(name) for name in TRACE]
    if len(set(traced)) == 1 and not (ledger.get("tcp_events_lost") or ledger.get("tcp_events_hidden")):
        lines.append(f"All {traced[0] or 0:,} trace records were stored: windows have no gaps.")
    else:
        lines.append("Trace records are missing: windows have gaps. Numbers of the queue do not depend on the trace.")
    late = facts.get("lateness_us") or {}
    if any(area.is_in("; ".join(reasons)) for area in (Area.FIDELITY, Area.DELAY)) and late.get("p99"):
        lines.append(
            f"The timing does not hold: 1 % of frames left at least {late['p99']:.0f} us late, so TCP saw a longer RTT "
            f"than {si(verdict.experiment(summary).rtt_ns / 1e9, 's')}: do not compare the numbers with a rule."
        )
    return lines


def percent_below_all(fraction: float) -> str:
    """Percent with two decimals at most; 100 % only if `fraction` is 1 or more."""
    text = f"{100 * fraction:.2f}"
    return f"{99.99 if fraction < 1 and text == '100.00' else float(text):g} %"


def _traffic(spec: Experiment) -> str:
    """The traffic as the subject of a sentence."""
    if spec.traffic == OPEN_LOOP:
        of_groups = [f"{100 * group.load:g} % of the rate ({sizes_text(group.sizes)})" for group in spec.datagrams]
        return f"Open-loop traffic at {' and '.join(of_groups)}"
    groups = [f"{group.flows} {algorithm_names.name(group.cc)}" for group in spec.long]
    if groups:
        groups[-1] += " flow" if len(groups) == spec.long[0].flows == 1 else " flows"
    finite = [transfers_text(group) for group in spec.finite]
    of_user = ["the user's programs"] if spec.program else []
    text = " and ".join([*groups, *finite, *of_user])
    return text[:1].upper() + text[1:]
