# SPDX-License-Identifier: MIT
"""`make advise`: the buffer that each rule of the literature asks for on one link, whether its assumptions hold there,
and whether stored runs support it.

parameters: the question. link: its link. rules: one row per rule, from analysis/theory/. memory: the kind of memory
that holds a buffer. transfers, loss_forms: buffers for the fastest transfers, with INPUT and FLOW_SIZES. evidence:
stored runs. judge: a rule judged by runs. show: table and JSON. command: the sequence.
"""
