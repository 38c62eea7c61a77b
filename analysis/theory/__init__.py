# SPDX-License-Identifier: MIT
"""Closed forms that measurements are held against, one function a result, one module a subject.

Each docstring has the equation, where it is printed, what it assumes, units, and what is refused. "First paper" is
Spang, Arslan, McKeown 2021, Updating the Theory of Buffer Sizing; "second paper" is Appenzeller, Keslassy, McKeown
2004, Sizing Router Buffers. Buffers, windows and queues are packets, capacities packets/s, times s.

single_flow, many_flows: the rules for buffers. sawtooth: how a single flow's queue grows. queues: M/D/1 and M/G/1.
packet_sizes: what open-loop traffic draws.
"""
