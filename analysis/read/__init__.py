# SPDX-License-Identifier: MIT
"""A repetition's raw files as typed records and columns, with all times on one clock."""
