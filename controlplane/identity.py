# SPDX-License-Identifier: MIT
"""Refuses a switch whose P4 program is not this checkout's: in another program, equal names may have other meanings."""

from __future__ import annotations

from controlplane.program import PROGRAM, Switch
from controlplane.schema_files import BUILD
from controlplane.switch import ProgramIdentity, SwitchError
from p4src.compile.sources import read_digest


def committed_digest() -> str:
    """The digest of the P4 sources from which p4src/build was compiled."""
    return read_digest(BUILD / f"{PROGRAM}.sha256")


def refuse_other_program(switch: Switch, identity: ProgramIdentity, digest: str | None = None) -> None:
    """SwitchError unless name and digest (if known) are this checkout's. `digest`: the expected digest if the target
    has a build of its own (default: the digest of p4src/build).
    """
    if identity.name != PROGRAM:
        raise SwitchError(f"{switch}: runs the program {identity.name!r}, not {PROGRAM!r}: nothing was changed on it")
    digest = digest or committed_digest()
    if identity.digest is not None and identity.digest != digest:
        raise SwitchError(
            f"{switch}: runs another version of {PROGRAM} ({identity.digest[:12]}) than this checkout ({digest[:12]}): "
            f"start the switch with this checkout's build, or use the checkout that built its program"
        )
