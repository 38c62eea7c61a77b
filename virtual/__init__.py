# SPDX-License-Identifier: MIT
"""The virtual-time machine: a User-Mode Linux kernel in time-travel mode, in which computation takes no time."""

from pathlib import Path

# For every Python inside: no imports from the user's site-packages, no compiled modules written, a fixed order of sets.
PYTHON_ALONE = {"PYTHONNOUSERSITE": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}

# Every program inside gets this PATH, not the user's: memory addresses depend on the environment.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# The job's directory as seen from inside.
RUN_DIRECTORY = Path("/run/bufferscope/run")
