# SPDX-License-Identifier: MIT
"""What our published runs give with the queue of a what-if. Their senders react to the queue, and those of a what-if do
not: the difference is the error of the what-if.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.advise import estimates, evidence
from analysis.advise.brief import outcome_text
from analysis.advise.link import Link

OF_OTHER_SENDERS = ("window_packets", "access_bps", "rtts_ns", "imported")  # set in specs of runs that do not count


def line(spec: Mapping[str, Any], rate_bps: int, mode: str, buffer_packets: int, docs: Path) -> str:
    """The sentence for the terminal; "" if the run is not one of long flows of one algorithm with tail drop, or if too
    few published runs have such a buffer. `spec` is the run's.
    """
    groups = spec.get("groups") or []
    is_plain = spec.get("traffic", "long") == "long" and spec.get("pacing", "off") == "off"
    if mode != "tail-drop" or len(groups) != 1 or not is_plain or any(map(spec.get, OF_OTHER_SENDERS)):
        return ""
    link = Link(
        rate_bps, spec["rtt_ns"] + spec.get("rtt_spread_ns", 0) // 2, groups[0]["flows"], groups[0]["cc"], 0.99,
        spec["mtu_bytes"],
    )  # fmt: skip
    stored = estimates.series(evidence.load(docs).runs)
    text = outcome_text(estimates.outcome(stored, link, buffer_packets))
    return text and f"with senders that react, by our published runs: {text}"
