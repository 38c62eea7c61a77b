# SPDX-License-Identifier: MIT
"""Closed forms that measurements are held against, one function a result, one module a subject.

Each docstring has the equation, where it is printed, what it assumes, units, and what is refused (ValueError, one
line). "First paper" is Spang, Arslan, McKeown 2021, Updating the Theory of Buffer Sizing; "second paper" is
Appenzeller, Keslassy, McKeown 2004, Sizing Router Buffers; the others are named. Buffers, windows and queues are
packets, capacities packets/s, times s. docs/theory.md lists them all, with what each paper prints.

single_flow, many_flows, gaussian: long flows. sawtooth: how a single flow's queue grows. short_flows: bursts of slow
start. tiny_buffers: dozens of packets. capacity_ratio, loss_fits: what makes transfers fastest. queues, mm1b: M/D/1,
M/G/1, M/M/1/B. packet_sizes: what open-loop traffic draws. checks: what is refused.
"""
