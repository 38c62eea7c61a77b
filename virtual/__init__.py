# SPDX-License-Identifier: MIT
"""The virtual-time machine: a User-Mode Linux kernel in time-travel mode, in which computing takes no time."""

from pathlib import Path

# Where the job's directory is inside, whatever it is outside.
RUN_DIRECTORY = Path("/run/bufferscope/run")
