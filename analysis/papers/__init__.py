# SPDX-License-Identifier: MIT
"""Figures and tables of papers, drawn from stored runs: one package a paper; beside them what all papers need."""
