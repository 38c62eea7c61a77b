# SPDX-License-Identifier: MIT
"""From raw files to all derived files."""
