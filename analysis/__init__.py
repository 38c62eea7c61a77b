# SPDX-License-Identifier: MIT
"""From the raw files of one repetition to its tables, summary, figures and report.

Rooms in data flow order: read, join, measure, judge, results, figures, report; replay runs them all.
"""
