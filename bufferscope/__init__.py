# SPDX-License-Identifier: MIT
"""The front door: every command as one program."""
