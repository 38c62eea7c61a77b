# SPDX-License-Identifier: MIT
"""Is the program on the switch ours, and of this checkout? Another one may mean other things by the same names."""

from __future__ import annotations

from controlplane.program import PROGRAM
from controlplane.schema_files import BUILD
from controlplane.switch import ProgramIdentity, Switch, SwitchError


def committed_digest() -> str:
    """Of the P4 sources that p4src/build was compiled from."""
    return (BUILD / f"{PROGRAM}.sha256").read_text().strip()


def refuse_other_program(switch: Switch, identity: ProgramIdentity, ours: str | None = None) -> None:
    """SwitchError unless name and, where the target knows it, digest are this checkout's (`ours`: that of a build)."""
    if identity.name != PROGRAM:
        raise SwitchError(f"{switch}: runs the program {identity.name!r}, not {PROGRAM!r}: nothing was changed on it")
    ours = ours or committed_digest()
    if identity.digest is not None and identity.digest != ours:
        raise SwitchError(
            f"{switch}: runs another version of {PROGRAM} ({identity.digest[:12]}) than this checkout ({ours[:12]}): "
            f"start it again with this one's build, or use the checkout that it came from"
        )
