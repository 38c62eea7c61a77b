# SPDX-License-Identifier: MIT
"""What a run measured: utilization, depths, losses, flows, and how exactly it was emulated."""
