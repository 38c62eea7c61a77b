# SPDX-License-Identifier: MIT
"""Header and frame sizes are the same in C and in Python."""

import re
from pathlib import Path

from lib import frames

HEADER = Path(frames.__file__).with_suffix(".h")


def test_frames__c_and_python_agree() -> None:
    sizes: dict[str, int] = {}
    for name, formula in re.findall(r"^\t(\w+) = ([^,]+),", HEADER.read_text(), re.MULTILINE):
        words = re.sub(r"[A-Z]\w*", lambda word: str(sizes[word[0]]), formula)
        assert re.fullmatch(r"\d+( [+-] \d+)*", words), f"{name} = {formula}"
        sizes[name] = sum(int(term) for term in re.findall(r"[+-]?\d+", words.replace(" ", "")))
    shared = sizes.keys() & vars(frames).keys()
    assert {"ETHERNET_BYTES", "LEAST_FRAME_BYTES", "WIRE_EXTRA_BYTES", "LEAST_IP_BYTES"} <= shared
    assert {name: sizes[name] for name in shared} == {name: getattr(frames, name) for name in shared}
