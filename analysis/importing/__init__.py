# SPDX-License-Identifier: MIT
"""The command `import`: other tools' captures as run directories. text.py and tables.py read a source into
columns of strings, captures.py into columns of numbers. fields.py parses strings and reports the line of a wrong one.
write.py writes the raw files, which the rest of the analysis reads like those of a recorded run.
"""
