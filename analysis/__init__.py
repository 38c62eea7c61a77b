# SPDX-License-Identifier: MIT
"""From the raw files of one repetition to its tables, summary, figures and report.

Pipeline order: load, unwrap, join, metrics, loss, theory, validity, summary, figures, report.
"""
