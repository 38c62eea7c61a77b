# SPDX-License-Identifier: MIT
"""`python -m analysis import`: captures of others as run directories of ours. A source becomes columns of strings
(text.py, tables.py) or of numbers (captures.py), fields.py makes numbers of strings or says in which line they are
wrong, and write.py makes raw files of both kinds: what the rest of the analysis reads, as if we had recorded it.
"""
