# SPDX-License-Identifier: MIT
"""Text for a terminal: control characters are escaped, thin spaces between thousands become plain spaces."""

import pytest

from lib.terminal import printable


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("a buffer of 5\u2009816 packets", "a buffer of 5 816 packets"),
        ("red\x1b[31m\n", "red\\x1b[31m\\n"),
        ("95 % of Gb/s, \u00b5s", "95 % of Gb/s, \u00b5s"),
    ],
)
def test_printable__escapes_what_controls_a_terminal(line: str, shown: str) -> None:
    assert printable(line) == shown
