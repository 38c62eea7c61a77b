# SPDX-License-Identifier: MIT
"""The virtual-time machine: a User-Mode Linux kernel in time-travel mode, in which computing takes no time."""

from pathlib import Path

# For every Python inside: compiled modules are its own, never those that the host happens to have. Looking for a file
# that is not there takes virtual time, and every ns of that changes what the kernel draws at random.
PYTHON_ALONE = {"PYTHONPYCACHEPREFIX": "/run/pycache", "PYTHONNOUSERSITE": "1"}

# Where the job's directory is inside, whatever it is outside.
RUN_DIRECTORY = Path("/run/bufferscope/run")
