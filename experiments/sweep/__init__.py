# SPDX-License-Identifier: MIT
"""Sweeps: many runs from one spec, stopped and resumed at any time. README.md of experiments/ says how to use them."""
