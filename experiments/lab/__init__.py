# SPDX-License-Identifier: MIT
"""Where repetitions are recorded: on this machine, in a virtual-time kernel, on a testbed."""
