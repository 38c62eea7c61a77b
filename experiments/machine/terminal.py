# SPDX-License-Identifier: MIT
"""Shows progress: on a terminal two lines in place, the first with a bar; otherwise a plain line now and then.

The cursor stays visible, because nobody would show a hidden cursor again after SIGKILL.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, ClassVar, Self

from lib.terminal import printable, say

BAR_CELLS = 24


class Terminal:
    """Base class of progress displays. Plain lines are at least `plain_every_s` apart."""

    told: ClassVar[Callable[[dict[str, Any]], None] | None] = None  # gets what is shown, too

    def __init__(self, plain_every_s: float) -> None:
        self.plain_every_s = plain_every_s
        self.begin_s = time.monotonic()
        self.last_plain_s = float("-inf")
        self.live = None
        if sys.stdout.isatty():
            from rich.console import Console
            from rich.live import Live

            console = Console(highlight=False)
            self.live = Live("", console=console, auto_refresh=False, transient=True, redirect_stderr=False)

    def __enter__(self) -> Self:
        if self.live:
            self.live.start()
            self.live.console.show_cursor(True)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.live:
            self.live.stop()

    def write(self, done: float, head: str, detail: str, plain: str, always: bool = False) -> None:
        """On a terminal, updates a bar for the share `done`, with `head` and `detail`. Elsewhere prints `plain`, if
        `always` or if the last line is old enough.
        """
        if Terminal.told:
            elapsed_s = time.monotonic() - self.begin_s
            Terminal.told({"done": done, "elapsed_s": elapsed_s, "head": head, "detail": detail})
        if self.live:
            from rich.text import Text

            cells = min(BAR_CELLS, int(BAR_CELLS * done))
            bar = "━" * cells + "╌" * (BAR_CELLS - cells)
            self.live.update(
                Text(f"{bar} {printable(head)}\n{printable(detail)}", no_wrap=True, overflow="ellipsis"), refresh=True
            )
        elif always or time.monotonic() - self.last_plain_s >= self.plain_every_s:
            self.last_plain_s = time.monotonic()
            say(plain)
