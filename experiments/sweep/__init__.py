# SPDX-License-Identifier: MIT
"""Sweeps: many runs from one spec, stopped and resumed at any time. docs/sweeps.md says how to use them."""
