# SPDX-License-Identifier: MIT
"""Shows a repetition while it runs."""

from __future__ import annotations

import time

from experiments.lab.run_state import RunState
from experiments.machine.terminal import Terminal

PLAIN_EVERY_S = 5.0


class RunProgress(Terminal):
    """The phase and the progress of a repetition. `expected_s` is the expected wall time, with or without the analysis,
    as the caller decides.
    """

    def __init__(self, title: str, expected_s: float) -> None:
        super().__init__(PLAIN_EVERY_S)
        self.title = title
        self.expected_s = expected_s

    def phase(self, text: str) -> None:
        """Shows the phase, while no traffic flows."""
        self._show(f"{self.title}: {text}", "", always=not self.live)

    def expect(self, left_s: float) -> None:
        """Corrects the expected duration: `left_s` from now."""
        self.expected_s = time.monotonic() - self.begin_s + left_s

    def show_state(self, state: RunState, what: str = "traffic") -> None:
        """Shows the state of the traffic."""
        self._show(f"{self.title}: {what}", describe(state), always=False)

    def _show(self, head: str, detail: str, always: bool) -> None:
        elapsed_s = time.monotonic() - self.begin_s
        clock = f"{elapsed_s:.0f} of about {self.expected_s:.0f} s"
        plain = ", ".join(part for part in (f"{head} ({clock})", detail) if part)
        self.write(elapsed_s / self.expected_s, f"{head}, {clock}", detail, plain, always)


def describe(state: RunState) -> str:
    """One line: throughput, queue, drops, postcards, trace, lateness."""
    of_queue = (
        f"queue {state.depth_packets} packets, {state.drops} drops so far, "
        f"postcards {state.postcards_received} ({state.postcards_missing} missing), "
    )
    return (
        f"{state.throughput_bps / 1e6:.1f} Mb/s, {'' if state.depth_packets is None else of_queue}"
        f"trace {state.trace_records} ({state.trace_lost} lost), "
        f"late p99 {state.lateness_p99_us:.0f} us"
    )
