# SPDX-License-Identifier: MIT
"""Runs whose switch, sender and collector are three machines: times of postcards are placed on the sender's clock.

The recorded run has one clock. The sender's files are rewritten to a clock that is hours ahead and 20 ppm fast, so the
truth is known for each packet.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from analysis.analyse import Analysis, analyse
from analysis.load import _place_goodput, load
from analysis.postcards import NO_DATA_BYTES
from analysis.tests import simulate
from analysis.tests.as_tofino import by_number
from analysis.tests.recordings import RECORDED
from wire import wire
from wire.wire import read_blocks

MACHINES = {"switch": "a", "sender": "b", "receiver": "c", "collector": "d"}
AHEAD_NS, PPM = 5 * 3600 * 10**9, 20
KIND = simulate.BLOCK["BLOCK_TCP"]


def on_sender(mono_ns: Any) -> Any:
    """The time that the sender's clock shows at `mono_ns`."""
    return AHEAD_NS + mono_ns + mono_ns * PPM // 10**6


def apart(directory: Path, kind: str = "real", machines: dict[str, str] | None = None) -> Path:
    """The recorded run, with the sender's files on the sender's clock."""
    shutil.copytree(RECORDED / kind / "rep-1", directory)
    spec = yaml.safe_load((directory / "spec.yaml").read_text()) | {"machines": machines or MACHINES}
    (directory / "spec.yaml").write_text(yaml.safe_dump(spec))
    blocks = read_blocks((directory / "tcp.bst").read_bytes(), KIND)
    records = np.concatenate([np.frombuffer(block.payload, wire.STORED_TCP_RECORD) for block in blocks])
    records["mono_ns"] = on_sender(records["mono_ns"].astype(np.int64))
    rows = [record.tobytes() for record in records]
    version = wire.TCP_RECORD.const["TCP_RECORD_VERSION"]
    (directory / "tcp.bst").write_bytes(simulate.blocks(KIND, version, rows))
    for name in ("traffic.json", "idle_rtt.json"):
        document = json.loads((directory / name).read_text())
        (directory / name).write_text(json.dumps(stretched(document)))
    shutil.copy(directory / "idle_rtt.json", directory / "idle_rtt_after.json")
    return directory


def stretched(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: stretched(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [stretched(inner, name) for inner in value]
    return on_sender(value) if name.endswith("_mono_ns") and value else value


def test_clocks_hours_apart__are_joined_within_the_stated_uncertainty(tmp_path: Path) -> None:
    truth = by_number(analyse(RECORDED / "real/rep-1"))
    told: Analysis = analyse(apart(tmp_path / "rep-1"))
    clock = told.run.clock
    assert clock
    assert clock.uncertainty_ns
    assert clock.misfit_ns == 0
    cards = by_number(told)
    error_ns = cards["enqueue_mono_ns"] - on_sender(truth["enqueue_mono_ns"])
    assert np.abs(error_ns).max() <= clock.uncertainty_ns
    assert clock.uncertainty_ns < 0.05 * told.run.spec["rtt_ns"]
    for name in ("depth_packets", "depth_bytes"):
        assert np.array_equal(cards[name], truth[name]), name
    assert told.fidelity["depth_mismatches"] == 0
    assert clock.misspaced == 0
    assert abs(clock.drift_ppm + PPM) < 2 * clock.uncertainty_ns / np.ptp(truth["enqueue_mono_ns"]) * 1e6 + 1
    received = told.run.postcards["rx_mono_ns"] - told.run.postcards["enqueue_mono_ns"]
    assert 0 <= (received - told.run.postcards["sojourn_ns"]).min() < 1000


def test_clock_of_one_machine__is_taken_as_it_is(tmp_path: Path) -> None:
    """The sender is the switch's machine: its trace and the switch's stamps have one clock."""
    directory = tmp_path / "rep-1"
    shutil.copytree(RECORDED / "real/rep-1", directory)
    spec = yaml.safe_load((directory / "spec.yaml").read_text())
    spec["machines"] = {"switch": "a", "sender": "a", "receiver": "c", "collector": "a"}
    (directory / "spec.yaml").write_text(yaml.safe_dump(spec))
    run, truth = load(directory), load(RECORDED / "real/rep-1")
    assert run.clock is None
    assert np.array_equal(run.postcards["enqueue_mono_ns"], truth.postcards["enqueue_mono_ns"])


def test_trace_that_is_lost__leaves_the_clock_unknown(tmp_path: Path) -> None:
    directory = apart(tmp_path / "rep-1")
    (directory / "tcp.bst").write_bytes(b"")
    told = analyse(directory)
    assert any("nothing bounds the switch's clock" in reason for reason in told.reasons)


@pytest.mark.parametrize("interval_ns", [None, 0, "x"])
def test_goodput__of_a_sink_without_an_interval_stays(interval_ns: Any) -> None:
    goodput = {"interval_mono_ns": np.array([10, 20])}
    _place_goodput(goodput, load(RECORDED / "real/rep-1").postcards, {"rtt_ns": 10}, interval_ns)
    assert goodput["interval_mono_ns"].tolist() == [10, 20]


def test_goodput__of_another_machine_begins_when_the_first_data_arrive() -> None:
    run = load(RECORDED / "real/rep-1")
    interval_ns = 10_000_000
    goodput = {"interval_mono_ns": np.array([7, 8, 9], dtype=np.int64) * interval_ns}
    _place_goodput(goodput, run.postcards, run.spec, interval_ns)
    has_data = run.postcards["packet_bytes"] > NO_DATA_BYTES
    first = run.postcards["enqueue_mono_ns"][has_data].min() + run.spec["rtt_ns"] // 2
    assert goodput["interval_mono_ns"][0] <= first < goodput["interval_mono_ns"][1]
    assert np.diff(goodput["interval_mono_ns"]).tolist() == [interval_ns, interval_ns]
