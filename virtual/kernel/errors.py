# SPDX-License-Identifier: MIT
"""Errors for the user, in one line: the action, its object, the reason, the remedy."""

from __future__ import annotations

from lib.errors import RunError


class KernelError(RunError):
    """The kernel cannot be built; the message is complete."""
