# SPDX-License-Identifier: MIT
"""The peer of the virtual-time lab: the same scenario in ns-3 (simulator/), with the same raw files."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path

from experiments.machine.host import BUILD
from model.experiment import Experiment

SIMULATOR = BUILD / "simulator"
LIMIT_PACKETS = 1 << 20


def packet_us(spec: Experiment) -> float:
    """Wall time of the simulator, divided by the packets that arrived at the queue. `spec` is a run's resolved spec,
    with long flows of one group. Raises CalledProcessError.
    """
    (group,) = spec.long
    numbers = {
        "rate-bps": spec.rate_bps, "data-delay-ns": spec.rtt_ns // 2,
        "ack-delay-ns": spec.rtt_ns - spec.rtt_ns // 2, "mtu": spec.mtu_bytes,
        "threshold-packets": spec.buffer_packets, "limit-packets": LIMIT_PACKETS,
        "start-mono-ns": 60 * 10**9, "duration-ns": spec.warmup_ns + spec.duration_ns,
        "drain-ns": 100_000_000, "seed": max(1, spec.seed or 0),
    }  # fmt: skip
    flows = "".join(f"{group.cc} {30000 + number} 5201 0 0\n" for number in range(group.flows))
    with tempfile.TemporaryDirectory() as directory:
        options = [f"--{name}={value}" for name, value in numbers.items()]
        begin = time.monotonic()
        subprocess.run(
            [str(SIMULATOR), f"--mode={spec.mode}", *options, f"--directory={directory}"],
            input=flows, text=True, check=True, capture_output=True,
        )  # fmt: skip
        wall_s = time.monotonic() - begin
        return 1e6 * wall_s / json.loads((Path(directory) / "simulator.json").read_text())["arrivals"]
