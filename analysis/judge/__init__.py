# SPDX-License-Identifier: MIT
"""Whether a run can be trusted: the ledger of packets, the reasons against it, the verdict."""
