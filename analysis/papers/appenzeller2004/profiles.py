# SPDX-License-Identifier: MIT
"""Both senders of this page: the paper's TCP (PROFILE=paper) and today's Linux (PROFILE=linux)."""

from analysis.figures.common import BLUE, ORANGE

PAPER, LINUX = "paper", "linux"
PROFILES = (PAPER, LINUX)
NAMES = {PAPER: "Reno as then", LINUX: "Reno as now"}
COLORS = {PAPER: BLUE, LINUX: ORANGE}
