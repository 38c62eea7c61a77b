# SPDX-License-Identifier: MIT
"""`make advise`: the buffer that each rule of the literature asks for on one link, whether its assumptions hold there,
and whether stored runs support it.

parameters: the question. link: its link. rules: one row per rule, from analysis/theory/. memory: the kind of memory
that holds a buffer. evidence: stored runs. judge: a rule judged by runs. brief: the answer in five lines. transfers,
loss_forms: with INPUT and FLOW_SIZES, the buffers for the fastest transfers instead of those five lines. show: table
and JSON. command: the order of these steps.
"""
