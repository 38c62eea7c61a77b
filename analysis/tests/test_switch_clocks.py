# SPDX-License-Identifier: MIT
"""Switches whose clock cannot be read. Runs in virtual time, converted to a Tofino's postcards (as_tofino.py): the
analysis recovers depths and times. And a recorded run as one whose switch, sender and collector are three machines.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.exporting import telemetry_report
from analysis.join import join
from analysis.judge import trace_clock
from analysis.judge.analyse import Analysis, analyse
from analysis.read import complete_run, switch_clock
from analysis.read.documents import Switch
from analysis.read.load import _place_goodput, load
from analysis.read.postcards import NO_DATA_BYTES
from analysis.read.raw import Columns
from analysis.read.recount import recount
from analysis.replay.derive import derive
from analysis.tests import as_tofino, simulate
from analysis.tests.as_tofino import Clock, by_number
from analysis.tests.documents import change_spec
from analysis.tests.recordings import RECORDED
from analysis.tests.test_validity import unnamed
from analysis.whatif import queue
from analysis.whatif.results import what_if
from lib.errors import InputError
from model.experiment import Experiment
from wire import wire

CARD = wire.POSTCARD.const


def source(kind: str) -> Path:
    return RECORDED / kind / "rep-1"


@pytest.mark.parametrize(("kind", "chip"), [("virtual", "tofino"), ("ecn", "tofino2")])
def test_depths_and_sojourns__equal_those_of_the_soft_switch(tmp_path: Path, kind: str, chip: str) -> None:
    truth, told = analyse(source(kind)), analyse(as_tofino.convert(source(kind), tmp_path / "rep-1", chip))
    assert told.reasons == []
    mine, theirs = by_number(told), by_number(truth)
    for name in ("depth_packets", "depth_bytes", "card_seq", "packet_bytes"):
        assert np.array_equal(mine[name], theirs[name]), name
    # Exact to the ns, except for the error of the estimated drift. If no packet waits behind a packet, the analysis
    # assumes that its transmission takes bits / nominal rate.
    transmission_ns = 1538 * 8e9 / 6e6
    allowed = 1 + 0.5e-6 * theirs["sojourn_ns"].max() + 20e-6 * transmission_ns
    assert np.abs(mine["sojourn_ns"] - theirs["sojourn_ns"]).max() <= allowed
    clock = told.run.clock
    assert clock is not None
    assert clock.uncertainty_ns is not None
    off = np.abs(mine["enqueue_mono_ns"] - theirs["enqueue_mono_ns"])
    assert off[_admitted(theirs, told)].max() <= clock.uncertainty_ns + 1
    assert clock.uncertainty_ns < 2000
    assert clock.drift_ppm == pytest.approx(20, abs=0.5)
    assert told.utilization["mean"] == pytest.approx(truth.utilization["mean"], abs=1e-4)
    assert len(told.events) == len(truth.events)


def _admitted(cards: Columns, analysis: Analysis) -> np.ndarray:
    """The packets of the traffic that the queue admitted."""
    admitted = (cards["flags"] & CARD["POSTCARD_AT_INGRESS"]) == 0
    return admitted & (cards["enqueue_mono_ns"] >= analysis.window.traffic_start_ns)


def test_lost_postcard__is_found_and_depths_hold_outside_a_window(tmp_path: Path) -> None:
    truth = by_number(analyse(source("virtual")))
    inside = np.flatnonzero(truth["depth_packets"] > 3)
    lost = int(truth["card_seq"][inside[len(inside) // 2]])
    told = analyse(as_tofino.convert(source("virtual"), tmp_path / "rep-1", lose=lost))
    assert [reason.split(":")[0] for reason in told.reasons] == ["ledger", "ledger", "queue"]
    assert "1 postcard numbers are missing" in told.reasons[1]
    assert "1 packet without postcards; depths may be too low by as many in 1 window" in told.reasons[2]
    ((start, end),) = told.fidelity["depth_gaps_mono_ns"]
    mine = by_number(told)
    kept = (truth["card_seq"] != lost) | ((truth["flags"] & CARD["POSTCARD_AT_INGRESS"]) != 0)
    wrong = mine["depth_packets"] != truth["depth_packets"][kept]
    came = mine["enqueue_mono_ns"][wrong]
    assert len(came)
    assert start <= came.min()
    assert came.max() <= end
    sojourn = truth["sojourn_ns"][truth["card_seq"] == lost][0]
    assert end - start < 2 * sojourn + 10_000_000


def test_restart__is_seen_and_times_and_depths_hold_around_it(tmp_path: Path) -> None:
    # The restart is in the long pause between the idle path's echoes and the traffic.
    told = analyse(as_tofino.convert(source("virtual"), tmp_path / "rep-1", clock=Clock(restart_ns=30_000_000_000)))
    assert any("the switch's clock began anew (1 time, first 58." in reason for reason in told.reasons), told.reasons
    assert told.run.clock is not None
    truth = by_number(analyse(source("virtual")))
    mine = by_number(told, told.run.clock.restarts_mono_ns[0])
    with pytest.raises(InputError, match="the switch restarted, so the numbers of postcards are not unique"):
        complete_run.load_complete(told.run.directory)
    assert np.array_equal(mine["depth_packets"], truth["depth_packets"])
    assert np.abs(mine["enqueue_mono_ns"] - truth["enqueue_mono_ns"])[_admitted(truth, told)].max() < 2000


def test_clock_that_was_set__does_not_fit_a_line(tmp_path: Path) -> None:
    clock = Clock(steps_ns=(59_500_000_000, 400_000))
    told = analyse(as_tofino.convert(source("virtual"), tmp_path / "rep-1", clock=clock))
    assert told.run.clock is not None
    assert told.run.clock.misfit_ns > 150_000
    assert any("the switch's clock was set" in reason for reason in told.reasons)


def test_doubts__make_the_run_not_valid(tmp_path: Path) -> None:
    directory = as_tofino.convert(source("virtual"), tmp_path / "rep-1")
    doubts: list[tuple[tuple[str, ...], Any, str]] = [
        (("stats", "port.2.queue_drops"), 1046, "46 packets were refused by the switch's traffic manager, 47"),
        (("stats", "pipe.0.mirror_drops"), 1003, "3 mirrored copies were dropped by the switch"),
        (("stats", "port.3.queue_drops"), 1001, "1 packets were dropped by queues of other ports"),
        (("counters", "arrivals", "2", "packets"), 1815, "815 packets came to watched queues, 814 postcards were made"),
        (("front_panel", "speed_bps"), 10**7, "port 2 had a rate of 10000000 bit/s, spec.yaml asks for 6000000"),
        (("capabilities", "cell_bytes"), 100, "have another threshold (first: 240 cells) than spec.yaml"),
        (("capabilities", "cell_bytes"), None, "does not say cell_bytes"),
        (("stats",), {}, "does not say refused_packets, mirror_drops, other_queue_drops"),
        (("bottleneck_port",), [2, 3], "does not say switch_packets"),
        (("before",), None, "does not say switch_packets, postcards_sent, refused_packets"),
    ]
    assert unnamed(directory, [("switch", *doubt) for doubt in doubts]) == []
    (directory / "tcp.bst").unlink()
    told = analyse(directory)
    assert told.fidelity["clock_uncertainty_ns"] is None
    assert any("nothing bounds the switch's clock from below" in reason for reason in told.reasons)
    (directory / "postcards.bsp").write_bytes(b"")
    assert "queue: no packet arrived; see logs/" in analyse(directory).reasons


def test_few_postcards_or_random_stamps__leave_the_uncertainty_unknown(tmp_path: Path) -> None:
    tcp: Columns = {name: np.zeros(0, dtype=np.int64) for name in ("flow", "snd_nxt", "mono_ns")}
    tcp["unknown_fields"] = np.zeros(0, dtype=np.uint64)
    for count in (1, 2, 500):
        rng = np.random.default_rng(count)
        names = ("sojourn_ns", "flags", "flow", "tcp_seq", "packet_bytes")
        cards = {name: np.zeros(count, dtype=np.int64) for name in names}
        cards["rx_mono_ns"] = 10**12 + np.sort(rng.integers(0, 10**9, count))
        cards["enqueue_switch_ns"] = rng.integers(0, 1 << 48, count).astype(np.uint64)
        clock = switch_clock.place(cards, tcp, switch_clock.Sender(0), tmp_path)
        assert clock is not None
        assert clock.uncertainty_ns is None
        assert np.abs(cards["enqueue_mono_ns"] - cards["rx_mono_ns"]).max() < 2 * 10**9


def test_recount__equals_a_count_packet_by_packet(tmp_path: Path) -> None:
    """Random packets pass a traffic manager with room for 30 packets. Egress drops a packet if `threshold` packets or
    more wait behind it.
    """
    for seed, threshold in ((1, None), (2, None), (1, 20), (3, 20)):
        cards, depths = as_tofino.random_queue(seed, limit=30, egress_threshold=threshold)
        capabilities = {"cell_bytes": 80, "queued_extra_bytes": 22}
        spec = Experiment.model_construct(rtt_ns=1, mtu_bytes=1500, rate_bps=10**9)
        switch = Switch.model_validate({"capabilities": capabilities, "bottleneck_port": 2})
        found = recount(cards, spec, switch, tmp_path)
        assert np.array_equal(cards["depth_packets"], depths)
        assert found.gaps_mono_ns == []
        assert (
            found.errors_cells.values.max() <= 20
        )  # the packet in transmission, which the chip's depth does not count
        assert found.gaps
        assert found.gaps["gap_ns"].sum() == pytest.approx(8 * found.gaps["bytes"].sum(), rel=1e-3)


def test_exports_and_what_ifs__have_the_runs_times_and_depths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blank: None
) -> None:
    directory = as_tofino.convert(source("virtual"), tmp_path / "rep-1")
    derive(directory)
    exported: list[tuple[int, int]] = []

    def encode(cards: Columns, came: np.ndarray, *rest: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        exported.extend(zip(came.tolist(), cards["depth_packets"].tolist(), strict=True))
        assert (cards["depth_unit"] == CARD["POSTCARD_DEPTH_EXACT"]).all()
        return as_written(cards, came, *rest)

    as_written = telemetry_report.encode
    monkeypatch.setattr(telemetry_report, "encode", encode)
    telemetry_report.write(directory, tmp_path / "reports.pcapng")
    told = analyse(directory)
    queued = zip(told.queue["enqueue_mono_ns"].tolist(), told.queue["depth_packets"].tolist(), strict=True)
    assert sorted(exported) == sorted(queued)
    soft = Path(shutil.copytree(source("virtual"), tmp_path / "soft/rep-1"))
    setting = queue.Setting.of(told.run.experiment, told.run.rate)
    (_, of_chip), (_, of_soft) = (what_if(at, setting, {}) for at in (directory, soft))
    drops = "drops_of_the_whole_run"
    assert of_chip["run_measures"][drops] == of_chip["whatif_measures"][drops]
    for name in ("utilization", "queue_depth_packets"):
        assert of_chip["whatif_measures"][name] == pytest.approx(of_soft["whatif_measures"][name], rel=1e-3), name


# Three machines: the sender's files are rewritten to a clock that is hours ahead ------------------------------------

MACHINES = {"switch": "a", "sender": "b", "receiver": "c", "collector": "d"}
AHEAD_NS, PPM = 5 * 3600 * 10**9, 20
KIND = simulate.BLOCK["BLOCK_TCP"]


def on_sender(mono_ns: Any) -> Any:
    """The time that the sender's clock shows at `mono_ns`."""
    return AHEAD_NS + mono_ns + mono_ns * PPM // 10**6


def apart(directory: Path) -> Path:
    """The recorded run, with the sender's files on the sender's clock."""
    shutil.copytree(RECORDED / "real/rep-1", directory)
    change_spec(directory, machines=MACHINES)
    blocks = wire.read_blocks((directory / "tcp.bst").read_bytes(), KIND)
    records = np.concatenate([np.frombuffer(block.payload, wire.STORED_TCP_RECORD) for block in blocks])
    records["mono_ns"] = on_sender(records["mono_ns"].astype(np.int64))
    simulate.write_trace(directory, [record.tobytes() for record in records])
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
    assert clock.uncertainty_ns < 0.05 * told.run.experiment.rtt_ns
    for name in ("depth_packets", "depth_bytes"):
        assert np.array_equal(cards[name], truth[name]), name
    assert told.fidelity["depth_mismatches"] == 0
    assert clock.misspaced == 0
    assert abs(clock.drift_ppm + PPM) < 2 * clock.uncertainty_ns / np.ptp(truth["enqueue_mono_ns"]) * 1e6 + 1
    received = told.run.postcards["rx_mono_ns"] - told.run.postcards["enqueue_mono_ns"]
    assert 0 <= (received - told.run.postcards["sojourn_ns"]).min() < 1000


def test_clock_of_one_machine__is_taken_as_it_is(tmp_path: Path) -> None:
    """The sender is the switch's machine: its trace and the switch's stamps have one clock."""
    directory = Path(shutil.copytree(RECORDED / "real/rep-1", tmp_path / "rep-1"))
    change_spec(directory, machines=MACHINES | {"sender": "a"})
    run, truth = load(directory), load(RECORDED / "real/rep-1")
    assert run.clock is None
    assert np.array_equal(run.postcards["enqueue_mono_ns"], truth.postcards["enqueue_mono_ns"])


def test_goodput__of_another_machine_begins_when_the_first_data_arrive() -> None:
    run = load(RECORDED / "real/rep-1")
    for strange in (None, 0):  # a sink without an interval
        goodput = {"interval_mono_ns": np.array([10, 20])}
        _place_goodput(goodput, run.postcards, run.experiment, strange)
        assert goodput["interval_mono_ns"].tolist() == [10, 20]
    interval_ns = 10_000_000
    goodput = {"interval_mono_ns": np.array([7, 8, 9], dtype=np.int64) * interval_ns}
    _place_goodput(goodput, run.postcards, run.experiment, interval_ns)
    has_data = run.postcards["packet_bytes"] > NO_DATA_BYTES
    first = run.postcards["enqueue_mono_ns"][has_data].min() + run.experiment.rtt_ns // 2
    assert goodput["interval_mono_ns"][0] <= first < goodput["interval_mono_ns"][1]
    assert np.diff(goodput["interval_mono_ns"]).tolist() == [interval_ns, interval_ns]


def test_trace_on_another_clock_than_the_switch__is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a time namespace: BPF's stamps are the host's."""
    run = load(source("real"))
    assert trace_clock.reasons(run, run.postcards) == []
    for ahead_ns in (-100_000 * 10**9, -1_000_000, 300_000, 100_000 * 10**9):
        run.tcp["mono_ns"] += ahead_ns
        (reason,) = trace_clock.reasons(run, run.postcards)
        assert reason.startswith("clocks: ")
        difference_ns = trace_clock.difference_ns(run, run.postcards)
        assert abs(difference_ns - ahead_ns) < 200_000
        with monkeypatch.context() as small:
            small.setattr(join, "SLAB_PACKETS", 300)
            assert trace_clock.difference_ns(run, run.postcards) == difference_ns
        run.tcp["mono_ns"] -= ahead_ns
