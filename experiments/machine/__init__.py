# SPDX-License-Identifier: MIT
"""This machine and its processes: what it has, who may use it, the cell that a repetition runs in."""
