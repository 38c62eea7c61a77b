# SPDX-License-Identifier: MIT
"""A small sweep, and a fixed description of the machine in place of a real probe."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.machine.host import Host
from experiments.spec.resolve import resolve
from experiments.sweep.spec import Sweep, read

SPEC = """\
name: small
about: Three algorithms with one and four flows.
keep: summary
reps: 2
seed: 7
base: {clock: virtual, rate: 100mbit, rtt: 4ms, duration: 50rtt, warmup: 20rtt, buf: 20pkt}
grid: {cc: [reno, cubic, bbr], flows: ['1', '4']}
smoke: {reps: 1, base: {rate: 50mbit}, grid: {flows: ['2']}}
"""


def probe(clock: str) -> Host:
    return Host(("bbr", "cubic", "reno"), netem=True, clock="virtual")


OF_RUN = resolve({"clock": "virtual", "cc": "reno"}, probe("virtual")).dump()
VALID: dict[str, Any] = {"valid": True, "spec": OF_RUN, "utilization": {}}  # a summary without numbers


@pytest.fixture
def write_spec(tmp_path: Path) -> Callable[..., Path]:
    """A function that makes a spec file from a text and (old, new) replacements in the text."""

    def write(*changes: tuple[str, str], text: str = SPEC) -> Path:
        for old, new in changes:
            assert old in text
            text = text.replace(old, new, 1)
        path = tmp_path / "spec.yaml"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def small(write_spec: Callable[..., Path]) -> Sweep:
    return read(write_spec(), {}, smoke=False)
