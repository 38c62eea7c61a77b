# SPDX-License-Identifier: MIT
"""The two criteria by which this paper's sweeps search for the least buffer (Figure 5a and Table 1)."""

from analysis.papers.least_buffers import StoredSearch

# 5.1: "99 % of packets (or more) experienced a non-empty queue"
NONEMPTY = StoredSearch("least-buffer", "queue_nonempty_fraction", 0.99)
# In windows of 10 RTTs. BBR paces 1 % below the bandwidth that it measured, so it reaches 99 % only by chance
USED = StoredSearch("least-buffer-utilization", "utilization_p01", 0.98)
