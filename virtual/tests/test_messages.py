# SPDX-License-Identifier: MIT
"""Messages through the kernel log: the lab sends them inside the machine, and the runner outside finds them among the
other lines of the console.
"""

from pathlib import Path

import pytest

from virtual.messages import MAX_BYTES, Speaker, parse_message


def test_message__may_carry_the_kernels_time_stamp_and_is_none_in_any_other_line() -> None:
    for prefix in ("", "[    1.000001] ", "[60.5]"):
        assert parse_message(f'{prefix}bufferscope: {{"end":0}}') == {"end": 0}
    noise = (
        "",
        "reboot: Power down",
        "bufferscope: {",
        "bufferscope: 1",
        'x bufferscope: {"end":0}',
        "bufferscope: {]}",
    )
    assert [line for line in (*noise, "[ ]{}") if parse_message(line) is not None] == []


def test_message__that_the_kernel_would_cut_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"at most {MAX_BYTES} fit"):
        Speaker(str(tmp_path / "kmsg")).say(text="x" * MAX_BYTES)
