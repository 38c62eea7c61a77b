# SPDX-License-Identifier: MIT
"""Closed forms to compare measurements with: one function per result, one module per subject.

Each docstring has the equation and its source, assumptions, units, and the refused arguments (ValueError, one line).
"Spang et al." is Spang, Arslan, McKeown 2021, Updating the Theory of Buffer Sizing; "Appenzeller et al." is
Appenzeller, Keslassy, McKeown 2004, Sizing Router Buffers. Buffers, windows and queues are in packets, capacities in
packets/s, times in s. docs/theory.md lists all functions beside the printed equations.

single_flow, many_flows, gaussian: long flows. sawtooth: growth of a single flow's queue. short_flows: bursts of slow
start. tiny_buffers: dozens of packets. capacity_ratio, loss_fits: the buffer with the fastest transfers. queues, mm1b:
M/D/1, M/G/1, M/M/1/B. batch_queues: M[X]/D/1. packet_sizes: sizes of open-loop traffic. checks: refused arguments.
"""
