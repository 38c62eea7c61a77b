# SPDX-License-Identifier: MIT
"""What is wrong, in one line for the user: doing what, to what, why, and what to do."""


class KernelError(Exception):
    """The kernel cannot be built as things are; the message is complete in itself."""
