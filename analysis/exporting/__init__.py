# SPDX-License-Identifier: MIT
"""The command `export`: a run in other tools' formats. tables.py, pcapng.py, flent.py, qlog.py and
telemetry_report.py write one format each; command.py selects one.
"""
