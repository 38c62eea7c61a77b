# SPDX-License-Identifier: MIT
"""The build's progress: one line per phase. On a terminal the line is rewritten as the phase advances."""

from __future__ import annotations

import shutil
import time
from typing import TextIO

REDRAW_S = 0.2


class BuildProgress:
    """Use it as a context manager, whose exit ends the line."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.terminal = stream.isatty()
        self.phase_name = ""
        self.begin_s = self.phase_s = time.monotonic()
        self._drawn_s = 0.0

    def __enter__(self) -> BuildProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self._finish()

    def phase(self, name: str) -> None:
        """Begin a phase, and end the previous one."""
        self._finish()
        self.phase_name, self.phase_s, self._drawn_s = name, time.monotonic(), 0.0
        if self.terminal:
            self.advance("")
        else:
            print(f"kernel: {name}", file=self.stream, flush=True)

    def advance(self, detail: str) -> None:
        """Show the phase's progress. Cheap: most calls draw nothing."""
        now_s = time.monotonic()
        if self.terminal and now_s - self._drawn_s >= REDRAW_S:
            self._drawn_s = now_s
            self._draw(f"kernel: {self.phase_name}{', ' * bool(detail)}{detail}, {now_s - self.phase_s:.0f} s")

    def done(self, text: str) -> None:
        """Print the last line."""
        self._finish()
        print(f"kernel: {text}", file=self.stream, flush=True)

    def _draw(self, line: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        self.stream.write("\r\x1b[K" + line[:width])
        self.stream.flush()

    def _finish(self) -> None:
        if self.terminal and self.phase_name:
            self._draw(f"kernel: {self.phase_name}, {time.monotonic() - self.phase_s:.0f} s")
            self.stream.write("\n")
        self.phase_name = ""
