# SPDX-License-Identifier: MIT
"""Errors for the user, in one line: the action, its object, the reason, the remedy."""


class KernelError(Exception):
    """The kernel cannot be built; the message is complete."""
