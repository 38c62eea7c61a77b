# SPDX-License-Identifier: MIT
"""Prepares hosts and switches before a run."""
