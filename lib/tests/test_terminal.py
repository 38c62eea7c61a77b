# SPDX-License-Identifier: MIT
"""Lines about errors: each names a place and a reason, also if the error has neither."""

import os

from lib.terminal import located, one_line


def test_error__has_a_place_and_a_reason() -> None:
    for error, line in (
        (OSError(28, os.strerror(28)), "x: No space left on device"),
        (OSError(28, os.strerror(28), "y"), "y: No space left on device"),
        (OSError("of a\nlibrary"), "x: of a library"),
        (OSError(), "x: OSError"),
    ):
        assert located(error, "x") == line
    assert one_line(ValueError()) == "ValueError"
