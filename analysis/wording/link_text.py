# SPDX-License-Identifier: MIT
"""The bottleneck's link in a few words, from a run's spec. Imports nothing large, as traffic_text."""

from __future__ import annotations

from analysis.wording.formats import si
from model.experiment import Experiment

MOST_STEPS = 4  # that are named


def rate_text(spec: Experiment) -> str:
    """The rate; of one that changes the first rates, or the file."""
    first = si(spec.rate_bps, "b/s")
    if spec.rate_trace:
        return f"the trace {spec.rate_trace.file}"
    steps = (spec.rate_steps or ())[1:]
    named = [f"{si(bps, 'b/s') if bps else 'none'} from {si(at_ns / 1e9, 's')}" for at_ns, bps in steps[:MOST_STEPS]]
    return ", ".join([first, *named, *["..."] * (len(steps) > MOST_STEPS)])


def changes_text(spec: Experiment) -> str:
    """Loss and jitter behind the queue, each after a comma; "" without."""
    texts = []
    if spec.loss:
        kind = "in bursts" if spec.loss.to_bad else "at random"
        texts.append(f"{100 * float(spec.loss.of_link.mean):.3g} % lost {kind}")
    if spec.jitter:
        texts.append(f"{spec.jitter.distribution} jitter to {si(spec.jitter.most_ns / 1e9, 's')}")
    return "".join(f", {text}" for text in texts)
