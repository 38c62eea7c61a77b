# SPDX-License-Identifier: MIT
"""Compares the clock of the trace with the clock of the switch's times, over a whole run in real time.

No packet comes to the queue before a trace record in which it was not sent yet. No ACK comes back sooner than the
links' delays after its packet began to leave. A difference between the two clocks breaks one of these rules for some
packet as soon as it exceeds the time between a packet and its nearest record: if the trace is ahead, the first, else
the second. If the switch's clock cannot be read, switch_clock.py infers it from the same rules, and its misfit is the
difference.
"""

from __future__ import annotations

from analysis.measure.wall_clock import CLOCK_SLACK_NS
from analysis.read.load import Run
from analysis.read.raw import Columns
from analysis.read.switch_clock import DELAY_TOLERANCE, acked, is_free, not_sent


def difference_ns(run: Run, cards: Columns) -> int:
    """By how much the trace's clock is at least ahead of that of the switch of `cards` (negative: behind); 0 if they
    agree.
    """
    came = cards["enqueue_mono_ns"]
    # With netem at the sender's egress the delay comes before the queue: after the queue, no least delay is known.
    links_ns = 0 if run.experiment.tc_at == "sender-egress" else run.experiment.idle_rtt_ns
    packets, records_ns = not_sent(cards, run.tcp, came)
    ahead = int((records_ns - came[packets]).max(initial=0))
    packets, acks_ns = acked(cards, run.tcp, came)
    least_ns = came[packets] + cards["sojourn_ns"][packets] + links_ns - int(links_ns * DELAY_TOLERANCE)
    behind = int((least_ns - acks_ns).max(initial=0))
    return ahead if ahead >= behind else -behind


def reasons(run: Run, cards: Columns) -> list[str]:
    """One line if the clocks of the trace and of one queue's `cards` differ; none in virtual time, where there is one
    clock.
    """
    if run.experiment.in_virtual_time or is_free(run.experiment):
        return []
    difference = difference_ns(run, cards)
    if abs(difference) <= CLOCK_SLACK_NS:
        return []
    where = "ahead of" if difference > 0 else "behind"
    return [
        f"clocks: the trace's clock is {abs(difference) / 1e3:.0f} us or more {where} the switch's; allowed are "
        f"{CLOCK_SLACK_NS / 1e3:.0f} us: windows do not belong to the packets beside them"
    ]
