# SPDX-License-Identifier: MIT
"""Runs the repetitions of one experiment and shows them in the terminal."""
