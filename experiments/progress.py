# SPDX-License-Identifier: MIT
"""Shows a repetition while it runs: two lines in place on a terminal, a plain line every few seconds anywhere else.

The cursor is never hidden, so that not even SIGKILL leaves a terminal in another state than before.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType

from experiments.sample import Sample

PLAIN_EVERY_S = 5.0
BAR_CELLS = 24


class Progress:
    """What is being done, and how far it is. `expected_s` is the whole repetition's duration, the analysis included."""

    def __init__(self, title: str, expected_s: float) -> None:
        self.title = title
        self.expected_s = expected_s
        self.begin_s = time.monotonic()
        self.last_plain_s = 0.0
        self.live = None
        if sys.stdout.isatty():
            from rich.console import Console
            from rich.live import Live

            console = Console(highlight=False)
            self.live = Live("", console=console, auto_refresh=False, transient=True, redirect_stderr=False)

    def __enter__(self) -> Progress:
        if self.live:
            self.live.start()
            self.live.console.show_cursor(True)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.live:
            self.live.stop()

    def phase(self, text: str) -> None:
        """Says what is done now, before there is anything to measure."""
        self._show(f"{self.title}: {text}", "", always=not self.live)

    def expect(self, left_s: float) -> None:
        """The repetition will take that much longer, as is known by now."""
        self.expected_s = time.monotonic() - self.begin_s + left_s

    def sample(self, sample: Sample, what: str = "traffic") -> None:
        """Shows the state of the traffic."""
        self._show(f"{self.title}: {what}", describe(sample), always=False)

    def _show(self, head: str, detail: str, always: bool) -> None:
        elapsed_s = time.monotonic() - self.begin_s
        clock = f"{elapsed_s:.0f} of about {self.expected_s:.0f} s"
        if self.live:
            from rich.text import Text

            done = min(BAR_CELLS, int(BAR_CELLS * elapsed_s / self.expected_s))
            bar = "━" * done + "╌" * (BAR_CELLS - done)
            self.live.update(Text(f"{bar} {head}, {clock}\n{detail}", no_wrap=True, overflow="ellipsis"), refresh=True)
        elif always or time.monotonic() - self.last_plain_s >= PLAIN_EVERY_S:
            self.last_plain_s = time.monotonic()
            print(", ".join(part for part in (f"{head} ({clock})", detail) if part), flush=True)


def describe(sample: Sample) -> str:
    """One line: throughput, queue, drops, postcards, trace, lateness."""
    return (
        f"{sample.throughput_bps / 1e6:.1f} Mb/s, queue {sample.depth_packets} packets, "
        f"{sample.drops} drops so far, "
        f"postcards {sample.postcards_received} ({sample.postcards_missing} missing), "
        f"trace {sample.trace_records} ({sample.trace_lost} lost), "
        f"late p99 {sample.lateness_p99_us:.0f} us"
    )
