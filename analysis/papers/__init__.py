# SPDX-License-Identifier: MIT
"""Figures and tables of papers, drawn from stored runs: one package for each paper, and modules that papers share."""
