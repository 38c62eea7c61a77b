# SPDX-License-Identifier: MIT
"""The settings in which two runs differ: those that a user gave, not those that follow from them."""

from typing import Any

import pytest

from analysis.setting_differences import differences

SPEC: dict[str, Any] = {
    "name": "x", "clock": "virtual", "switch": "driver", "generator": "epoll", "delay": "switch", "mode": "tail-drop",
    "groups": [{"cc": "cubic", "flows": 16}], "rate_bps": 200_000_000, "rtt_ns": 10_000_000, "mtu_bytes": 1500,
    "wire_bytes": 1538, "bdp_packets": 163, "buffer_given": "1bdp", "buffer_packets": 163, "threshold_bytes": None,
    "ecn_threshold_packets": None, "duration_ns": 10_000_000_000, "warmup_ns": 2_000_000_000,
    "start_spread_ns": 10_000_000, "seed": 1, "reps": 1, "repetition": 1,
}  # fmt: skip
REAL = {"clock": "real", "switch": "process", "generator": "iperf3"}
OTHER_RTT = {
    "rtt_ns": 20_000_000, "bdp_packets": 325, "buffer_packets": 325, "duration_ns": 20_000_000_000,
    "warmup_ns": 4_000_000_000, "start_spread_ns": 20_000_000,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"seed": 2, "name": "y", "reps": 3}, []),
        ({"buffer_given": "163p"}, []),
        ({"buffer_given": "0.1bdp", "buffer_packets": 16}, [("BUF", "1 BDP (163 packets)", "0.1 BDP (16 packets)")]),
        (OTHER_RTT, [("RTT", "10 ms", "20 ms")]),
        ({"rate_bps": 400_000_000, "bdp_packets": 325, "buffer_packets": 325}, [("RATE", "200 Mb/s", "400 Mb/s")]),
        (REAL, [("CLOCK", "virtual", "real")]),
        ({"groups": [{"cc": "bbr", "flows": 16}]}, [("CC", "Cubic", "BBR")]),
        ({"groups": [{"cc": "cubic", "flows": 4}]}, [("FLOWS", "16", "4")]),
        (
            {"groups": [{"cc": "cubic", "flows": 8}, {"cc": "bbr", "flows": 8}]},
            [("CC", "Cubic", "Cubic, BBR"), ("FLOWS", "16", "8, 8")],
        ),
        ({"mode": "ecn", "ecn_threshold_packets": 81}, [("MODE", "tail-drop", "ecn")]),
        ({"duration_ns": 5_000_000_000}, [("DURATION", "10 s", "5 s")]),
        ({"pacing": "fq"}, [("PACING", "none", "fq")]),
        (
            REAL | {"groups": [{"cc": "reno", "flows": 1}]},
            [("CLOCK", "virtual", "real"), ("CC", "Cubic", "Reno"), ("FLOWS", "16", "1")],
        ),
    ],
)
def test_differences__are_the_users_settings(changes: dict[str, Any], found: list[tuple[str, str, str]]) -> None:
    assert [tuple(each) for each in differences(SPEC, SPEC | changes)] == found


def test_differences__of_imported_runs_include_the_buffer() -> None:
    imported = {key: value for key, value in SPEC.items() if key != "buffer_given"}
    found = differences(imported, imported | {"buffer_packets": 16})
    assert [tuple(each) for each in found] == [("BUF", "163 packets", "16 packets")]
