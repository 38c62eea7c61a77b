# SPDX-License-Identifier: MIT
"""The measurement window of an iperf3 run ends when the first flow has sent its last data, if that is before the end
of the traffic.
"""

from __future__ import annotations

import json
import shutil
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.analyse import analyse
from analysis.metrics import CARD, measurement_window
from analysis.tests.recordings import RECORDED

TCP, DROPPED = CARD["POSTCARD_HAS_TCP"], CARD["POSTCARD_DROPPED"]
# (flow, ns, tcp_seq, frame bytes, dropped): from 1000 ns on, flow 0 sends until 1900, flow 1 until 2100.
SENT = [(0, 1000, 0, 1514, 0), (1, 1100, 0, 1514, 0), (0, 1900, 1448, 1514, 0), (1, 2100, 1448, 1514, 0)]


def window(sent, generator="iperf3"):
    columns = np.array(sorted(sent, key=lambda packet: packet[1])).T
    queue = dict(zip(("flow", "enqueue_mono_ns", "tcp_seq", "packet_bytes", "flags"), columns, strict=True))
    queue["flags"] = queue["flags"] * DROPPED | TCP
    traffic = {"generator": generator, "start_mono_ns": 1000, "end_mono_ns": 2000}
    spec = {"warmup_ns": 100, "duration_ns": 900, "rtt_ns": 10_000}
    flows = [{"flow": 0}, {"flow": 1}, {"flow": -1}]
    run: Any = SimpleNamespace(documents={"traffic": traffic}, spec=spec, traffic=flows, flows=["0", "1"])
    return measurement_window(run, queue)


def test_window__ends_with_the_first_flow():
    ends = {
        "flow 0 ends first": window(SENT).end_ns,
        "its FIN comes later": window([*SENT, (0, 1950, 2896, 66, 0)]).end_ns,
        "a packet that was dropped came again": window([*SENT, (0, 1500, 1448, 1514, 1)]).end_ns,
        "both send until later": window([*SENT, (0, 2050, 2896, 1514, 0)]).end_ns,
        "a hole: flow 0 waits for its timer": window([*SENT, (0, 1950, 2896, 1514, 1)]).end_ns,
        "our own generator notes the end": window(SENT, "epoll").end_ns,
        "flow 0 ended in the warm-up": window([SENT[0], SENT[1], SENT[3]]).end_ns,
    }
    assert ends == {
        "flow 0 ends first": 1900,
        "its FIN comes later": 1900,
        "a packet that was dropped came again": 1900,
        "both send until later": 2000,
        "a hole: flow 0 waits for its timer": 2000,
        "our own generator notes the end": 2000,
        "flow 0 ended in the warm-up": 1100,
    }
    assert window(SENT).missing_ns == 100


def test_recorded_run__with_an_end_noted_late_is_measured_until_its_flows_ended(tmp_path):
    """The recorded flows stop 0.17 s after `end_mono_ns` of traffic.json. The test sets `end_mono_ns` 0.4 s later."""
    directory = shutil.copytree(RECORDED / "real/rep-1", tmp_path / "real/rep-1")
    traffic = json.loads((directory / "traffic.json").read_text())
    traffic["end_mono_ns"] += 400_000_000
    (directory / "traffic.json").write_text(json.dumps(traffic))
    text = (directory / "spec.yaml").read_text()
    (directory / "spec.yaml").write_text(text.replace("duration_ns: 2000000000", "duration_ns: 2400000000"))
    analysis = analyse(directory)
    assert analysis.window.missing_ns == pytest.approx(0.22e9, abs=0.02e9)
    assert analysis.utilization["mean"] == pytest.approx(1, abs=1e-3)
    assert [reason for reason in analysis.reasons if reason.startswith("traffic")] == []
