# SPDX-License-Identifier: MIT
"""HTML pages: of a run, of a sweep."""
