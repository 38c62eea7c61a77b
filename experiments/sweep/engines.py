# SPDX-License-Identifier: MIT
"""The names of the engines that run a sweep's jobs: GNU parallel on this machine and remote labs, or Slurm."""

PARALLEL, SLURM = ENGINES = ("parallel", "slurm")
