# SPDX-License-Identifier: MIT
"""The settings in which two runs differ: those that a user gave, not those that follow from them."""

from typing import Any

from analysis.report.setting_differences import differences
from hosts.tune.tcp_options import LINUX, PAPER
from model.experiment import Experiment

SPEC: dict[str, Any] = {
    "spec_version": 1, "target": "soft", "name": "x", "clock": "virtual", "switch": "driver", "generator": "epoll",
    "delay": "switch", "mode": "tail-drop",
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


def test_differences__are_the_users_settings() -> None:
    imported = {key: value for key, value in SPEC.items() if key != "buffer_given"}
    small = {"buffer_given": "0.1bdp", "buffer_packets": 16}
    mixed = {"groups": [{"cc": "cubic", "flows": 8}, {"cc": "bbr", "flows": 8}]}
    cases: list[tuple[dict[str, Any], dict[str, Any], list[tuple[str, str, str]]]] = [
        (SPEC, {"seed": 2, "name": "y", "reps": 3, "buffer_given": "163p"}, []),
        (SPEC, small, [("BUF", "1 BDP (163 packets)", "0.1 BDP (16 packets)")]),
        (imported, {"buffer_packets": 16}, [("BUF", "163 packets", "16 packets")]),
        (SPEC, OTHER_RTT, [("RTT", "10 ms", "20 ms")]),
        (SPEC, {"rate_bps": 400_000_000, "bdp_packets": 325}, [("RATE", "200 Mb/s", "400 Mb/s")]),
        (SPEC, mixed, [("CC", "Cubic", "Cubic, BBR"), ("FLOWS", "16", "8, 8")]),
        (SPEC, {"mode": "ecn", "ecn_threshold_packets": 81}, [("MODE", "tail-drop", "ecn")]),
        (SPEC, {"duration_ns": 5_000_000_000}, [("DURATION", "10 s", "5 s")]),
        (SPEC, {"tcp": PAPER}, [("PROFILE", "linux", "paper")]),
        (SPEC, {"tcp": LINUX | {"initcwnd": 3}}, [("INITCWND", "10", "3")]),
        (SPEC, {"offloads": {"nic_rate_bps": 10**10, "coalesce_us": None}}, [("NIC_RATE", "none", "10 Gb/s")]),
        (SPEC, {"machines": {"sender": "a"}}, [("SENDER", "none", "a")]),
        (
            SPEC,
            REAL | {"groups": [SPEC["groups"][0] | {"pacing": "fq"}]},
            [("CLOCK", "virtual", "real"), ("PACING", "none", "fq")],
        ),
    ]
    for spec, changes, found in cases:
        both = (Experiment.model_validate(each) for each in (spec, spec | changes))
        assert [tuple(each) for each in differences(*both)] == found, changes
