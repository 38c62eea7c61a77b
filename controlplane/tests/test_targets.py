# SPDX-License-Identifier: MIT
"""The table of targets, and the refusal of other programs."""

from __future__ import annotations

import pytest

from controlplane.identity import committed_digest, refuse_other_program
from controlplane.soft import SoftSwitch
from controlplane.switch import ProgramIdentity, SwitchError
from controlplane.targets import TARGETS, connect


def test_connect__lists_the_allowed_targets() -> None:
    with pytest.raises(SwitchError, match="target 'netronome' is not known; allowed: soft"):
        connect("netronome", "nowhere")


@pytest.mark.parametrize("name", TARGETS)
def test_targets__have_the_name_of_their_capabilities(name: str) -> None:
    assert TARGETS[name].capabilities.name == name


@pytest.mark.parametrize(
    ("identity", "says"),
    [
        (ProgramIdentity("basic", None), "runs the program 'basic', not 'bufferscope'"),
        (ProgramIdentity("bufferscope", "0" * 64), r"another version of bufferscope \(000000000000\)"),
    ],
)
def test_refuse_other_program__names_the_running_program(identity: ProgramIdentity, says: str) -> None:
    class Named(SoftSwitch):
        def __init__(self) -> None:
            self.address = "/run/switch.sock"

    with pytest.raises(SwitchError, match=f"soft switch at /run/switch.sock: runs .*{says[5:]}"):
        refuse_other_program(Named(), identity)
    refuse_other_program(Named(), ProgramIdentity("bufferscope", committed_digest()))
