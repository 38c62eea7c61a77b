# SPDX-License-Identifier: MIT
"""The names of what runs a sweep's jobs: GNU parallel on this machine and remote labs, or Slurm."""

PARALLEL, SLURM = ENGINES = ("parallel", "slurm")
