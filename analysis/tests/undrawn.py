# SPDX-License-Identifier: MIT
"""`bufferscope replay` without figures and pages, which take half of the processor time of a short run:
`python -m analysis.tests.undrawn replay WORD...`. For tests that look at neither.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

from analysis.replay import derive, replay
from bufferscope.__main__ import main


def leave_out(setattr_: Callable[..., None]) -> None:
    """Replaces the drawing functions by means of `setattr_`: the builtin setattr, or monkeypatch.setattr."""
    setattr_(derive, "draw_all", lambda *_: [])
    setattr_(derive, "render", lambda *_: "")
    setattr_(replay, "drawing_pool", contextlib.nullcontext)


if __name__ == "__main__":
    leave_out(setattr)
    sys.exit(main())
