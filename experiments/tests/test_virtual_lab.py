# SPDX-License-Identifier: MIT
"""What the runner makes of what a virtual machine says, without booting one."""

import pytest

from experiments import virtual_lab


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([], None),
        ([(1.0, 0.0), (2.0, 0.0)], None),
        ([(1.0, 0.0), (2.0, 0.5)], None),
        ([(1.0, 0.0), (2.0, 0.5), (2.0, 0.5)], None),
        ([(1.0, 0.0), (2.0, 0.5), (4.0, 0.7), (12.0, 1.5)], 10.0),
    ],
)
def test_pace__is_wall_time_over_the_time_of_the_traffic(monkeypatch, samples, expected):
    pace = virtual_lab.Pace()
    pace.hear({"phase": "making the network"})
    for wall_s, traffic_s in samples:
        monkeypatch.setattr(virtual_lab.time, "monotonic", lambda at=wall_s: at)
        pace.hear({"sample": {}, "traffic_s": traffic_s})
    assert pace.wall_s_per_traffic_s() == expected
