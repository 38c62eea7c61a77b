# SPDX-License-Identifier: MIT
"""Words and formats of numbers, as pages, figures and the terminal show them."""
