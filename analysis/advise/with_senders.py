# SPDX-License-Identifier: MIT
"""What our published runs give with the queue of a what-if. Their senders react to the queue, and those of a what-if do
not: the difference is the error of the what-if.
"""

from __future__ import annotations

from pathlib import Path

from analysis.advise import estimates, evidence
from analysis.advise.brief import outcome_text
from analysis.advise.link import Link
from analysis.read.link_rate import LinkRate
from model.experiment import Experiment
from model.groups import LONG


def line(spec: Experiment, rate: LinkRate, mode: str, buffer_packets: int, docs: Path) -> str:
    """The sentence for the terminal; "" if the run is not one of long flows of one algorithm with tail drop, or if too
    few published runs have such a buffer. `spec` is the run's.
    """
    groups = spec.long
    shared = spec.shared
    others = (
        shared.pacing,
        shared.window_packets,
        shared.access_bps,
        shared.rtts_ns,
        spec.imported,
        spec.loss,
        spec.p4,
        spec.queue,
    )
    if mode != "tail-drop" or len(groups) != 1 or spec.traffic != LONG or any(others) or rate.schedule:
        return ""
    rtt_ns = spec.rtt_ns + (spec.rtt_spread_ns or 0) // 2
    link = Link(rate.rate_bps, rtt_ns, groups[0].flows, groups[0].cc, 0.99, spec.mtu_bytes)
    stored = estimates.series(evidence.load(docs).runs)
    text = outcome_text(estimates.outcome(stored, link, buffer_packets))
    return text and f"with senders that react, by our published runs: {text}"
