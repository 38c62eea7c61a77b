# SPDX-License-Identifier: MIT
"""Figures for any sweep, whatever its parameters. `registry.FIGURES` has them in the order of the page."""
