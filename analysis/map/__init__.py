# SPDX-License-Identifier: MIT
"""The map: the least buffers of all papers' published runs in one figure, beside the papers' rules.

points: least buffers from the run tables. ratio: best buffers against the capacity ratio. rules: the papers' rules, and
where they held. figure: the drawing. build: the sequence, and the table of docs/results/README.md.
"""
