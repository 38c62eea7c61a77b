# SPDX-License-Identifier: MIT
"""Where repetitions are recorded: on this machine, in a virtual-time kernel, in ns-3, on a testbed."""
