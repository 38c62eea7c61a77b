# SPDX-License-Identifier: MIT
"""The program's commands about experiments, one module each."""
