# SPDX-License-Identifier: MIT
"""`python -m analysis export`: a run in other tools' formats. tables.py, pcapng.py, flent.py and telemetry_report.py
write one format each; command.py selects one.
"""
