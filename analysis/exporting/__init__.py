# SPDX-License-Identifier: MIT
"""`python -m analysis export`: a run in the formats of others. tables.py, pcapng.py, flent.py and telemetry_report.py
each write one; command.py chooses.
"""
