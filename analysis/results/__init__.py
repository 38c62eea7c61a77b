# SPDX-License-Identifier: MIT
"""The derived tables and summary.json."""
