# SPDX-License-Identifier: MIT
"""The link of Figures 13 and 14: 400 Mb/s, 80 ms, long flows with short ones beside them."""

STEM, ALONE = "mix", "mix-without"
RTT_S = 0.08
BDP_PACKETS = 400e6 * RTT_S / 8 / 1500
