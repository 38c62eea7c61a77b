# SPDX-License-Identifier: MIT
"""Matches the packets before a queue with the packets behind it: the queue of a switch that makes no postcards."""
