# SPDX-License-Identifier: MIT
"""The figures and the table of "Updating the Theory of Buffer Sizing" (Spang, Arslan, McKeown 2021), the first seed
paper, from stored runs. One file a figure.
"""
