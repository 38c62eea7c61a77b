# SPDX-License-Identifier: MIT
"""The virtual-time machine: a User-Mode Linux kernel in time-travel mode, in which computing takes no time."""

from pathlib import Path

# For every Python inside: nothing of the user's own is imported, and no compiled module is left behind.
PYTHON_ALONE = {"PYTHONNOUSERSITE": "1", "PYTHONDONTWRITEBYTECODE": "1"}

# Where the job's directory is inside, whatever it is outside.
RUN_DIRECTORY = Path("/run/bufferscope/run")
