# SPDX-License-Identifier: MIT
"""Windows of 0 show a stopped congestion control, except in ns-3's fast recovery, where they are usual."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis import stopped

OPEN = 0


@pytest.mark.parametrize(
    ("switch", "state", "share"),
    [("driver", OPEN, 0.5), ("driver", stopped.RECOVERY, 0.5), ("ns3", OPEN, 0.5), ("ns3", stopped.RECOVERY, 0.0)],
)
def test_windows_of_zero__count_except_in_fast_recovery_of_ns3(switch, state, share):
    tcp = {
        "mono_ns": np.arange(4), "flow": np.zeros(4, dtype=int), "cwnd_packets": np.array([0, 3, 0, 3]),
        "ca_state": np.array([state, OPEN, state, OPEN]), "unknown_fields": np.zeros(4, dtype=np.uint64),
    }  # fmt: skip
    run: Any = SimpleNamespace(tcp=tcp, spec={"switch": switch})
    assert stopped._zero_windows(run, [0], 0, 4) == share
