# SPDX-License-Identifier: MIT
"""Arithmetic on columns: groups by flow, counters that wrap around, sums in any order, confidence intervals."""
