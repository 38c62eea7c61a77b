# SPDX-License-Identifier: MIT
"""Runs in virtual time, converted to a Tofino's postcards (as_tofino.py): the analysis recovers depths and times."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis import switch_clock, whole
from analysis.analyse import analyse
from analysis.derive import derive
from analysis.exporting import telemetry_report
from analysis.raw import Columns
from analysis.recount import recount
from analysis.tests import as_tofino
from analysis.tests.as_tofino import Clock, by_number
from analysis.tests.documents import change
from analysis.tests.recordings import RECORDED
from analysis.whatif import queue
from analysis.whatif.results import what_if
from lib.errors import InputError
from wire import wire

CARD = wire.POSTCARD.const
# Not egress-threshold: the soft switch drops at the end of a transmission, a Tofino at its start.
KINDS = ("virtual", "ecn")
CHIPS = tuple(as_tofino.CELL_BYTES)


def source(kind: str) -> Path:
    return RECORDED / kind / "rep-1"


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("kind", KINDS)
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
    admitted = (mine["flags"] & CARD["POSTCARD_AT_INGRESS"]) == 0
    during = theirs["enqueue_mono_ns"] >= told.window.traffic_start_ns
    assert off[admitted & during].max() <= clock.uncertainty_ns + 1
    assert clock.uncertainty_ns < 2000
    assert clock.drift_ppm == pytest.approx(20, abs=0.5)
    assert told.utilization["mean"] == pytest.approx(truth.utilization["mean"], abs=1e-4)
    assert len(told.events) == len(truth.events)


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
        whole.load_whole(told.run.directory)
    assert np.array_equal(mine["depth_packets"], truth["depth_packets"])
    traffic = truth["enqueue_mono_ns"] >= told.window.traffic_start_ns
    traffic &= (truth["flags"] & CARD["POSTCARD_AT_INGRESS"]) == 0
    assert np.abs(mine["enqueue_mono_ns"] - truth["enqueue_mono_ns"])[traffic].max() < 2000


def test_clock_that_was_set__does_not_fit_a_line(tmp_path: Path) -> None:
    directory = as_tofino.convert(
        source("virtual"), tmp_path / "rep-1", clock=Clock(steps_ns=(59_500_000_000, 400_000))
    )
    told = analyse(directory)
    assert told.run.clock is not None
    assert told.run.clock.misfit_ns > 150_000
    assert any("the switch's clock was set" in reason for reason in told.reasons)


def test_trace_without_snd_nxt__leaves_the_uncertainty_unknown(tmp_path: Path) -> None:
    directory = as_tofino.convert(source("virtual"), tmp_path / "rep-1")
    (directory / "tcp.bst").unlink()
    told = analyse(directory)
    assert told.fidelity["clock_uncertainty_ns"] is None
    assert any("nothing bounds the switch's clock from below" in reason for reason in told.reasons)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (
            ("stats", "port.2.queue_drops"),
            1046,
            "46 packets were refused by the switch's traffic manager, 47",
        ),
        (("stats", "pipe.0.mirror_drops"), 1003, "3 mirrored copies were dropped by the switch"),
        (("stats", "port.3.queue_drops"), 1001, "1 packets were dropped by queues of other ports"),
        (("counters", "arrivals", "2", "packets"), 1815, "815 packets came to watched queues, 814 postcards were made"),
        (("front_panel", "speed_bps"), 10**7, "port 2 had a rate of 10000000 bit/s, spec.yaml asks for 6000000"),
        (
            ("capabilities", "cell_bytes"),
            100,
            "postcards have another threshold (first: 240 cells) than spec.yaml",
        ),
        (("capabilities", "cell_bytes"), None, "does not say cell_bytes"),
        (("stats",), {}, "does not say refused_packets, mirror_drops, other_queue_drops"),
        (("bottleneck_port",), [2, 3], "does not say switch_packets"),
        (("before",), None, "does not say switch_packets, postcards_sent, refused_packets"),
    ],
)
def test_doubts__make_the_run_not_valid(tmp_path: Path, path: tuple[str, ...], value: Any, said: str) -> None:
    directory = as_tofino.convert(source("virtual"), tmp_path / "rep-1")
    change(directory, "switch", path, value)
    summary, _ = derive(directory)
    assert any(said in reason for reason in summary["reasons"]), summary["reasons"]


def test_run_without_postcards__is_not_valid(tmp_path: Path) -> None:
    directory = as_tofino.convert(source("virtual"), tmp_path / "rep-1")
    (directory / "postcards.bsp").write_bytes(b"")
    summary, _ = derive(directory)
    assert "queue: no packet arrived; see logs/" in summary["reasons"]


def test_few_postcards_or_random_stamps__leave_the_uncertainty_unknown() -> None:
    tcp = {name: np.zeros(0, dtype=np.int64) for name in ("flow", "snd_nxt", "mono_ns")}
    tcp["unknown_fields"] = np.zeros(0, dtype=np.uint64)
    for count in (1, 2, 500):
        rng = np.random.default_rng(count)
        cards = {name: np.zeros(count, dtype=np.int64) for name in ("sojourn_ns", "flags", "flow", "tcp_seq")}
        cards |= {
            "rx_mono_ns": 10**12 + np.sort(rng.integers(0, 10**9, count)),
            "packet_bytes": np.zeros(count, dtype=np.int64),
        }
        cards["enqueue_switch_ns"] = rng.integers(0, 1 << 48, count).astype(np.uint64)
        clock = switch_clock.place(cards, tcp, switch_clock.Sender(0))
        assert clock is not None
        assert clock.uncertainty_ns is None
        assert abs(clock.drift_ppm) <= 1000
        assert np.abs(cards["enqueue_mono_ns"] - cards["rx_mono_ns"]).max() < 2 * 10**9


@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("threshold", [None, 20])
def test_recount__equals_a_count_packet_by_packet(seed: int, threshold: int | None) -> None:
    """Random packets pass a traffic manager with room for 30 packets. Egress drops a packet if `threshold` packets or
    more wait behind it.
    """
    cards, depths = as_tofino.random_queue(seed, limit=30, egress_threshold=threshold)
    spec = {"mtu_bytes": 1500, "rate_bps": 10**9}
    found = recount(cards, spec, {"capabilities": {"cell_bytes": 80, "queued_extra_bytes": 22}, "bottleneck_port": 2})
    assert np.array_equal(cards["depth_packets"], depths)
    assert found.gaps_mono_ns == []
    assert found.errors_cells.max() <= 20  # the packet in transmission, which the chip's depth does not count
    assert found.gaps_ns.sum() == pytest.approx(found.ideal_gaps_ns.sum(), rel=1e-3)


def test_exports_and_what_ifs__have_the_runs_times_and_depths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    of_truth, told = analyse(source("virtual")), analyse(directory)
    queued = zip(told.queue["enqueue_mono_ns"].tolist(), told.queue["depth_packets"].tolist(), strict=True)
    assert sorted(exported) == sorted(queued)
    packets = queue.arrivals(directory, told.queue)
    assert np.array_equal(packets["arrival_ns"], told.queue["enqueue_mono_ns"])
    _, summary = what_if(directory, queue.Setting.of(told.run.spec), {})
    assert summary["run_measures"]["drops_of_the_whole_run"] == summary["whatif_measures"]["drops_of_the_whole_run"]
    _, of_soft = what_if(
        Path(shutil.copytree(source("virtual"), tmp_path / "soft/rep-1")), queue.Setting.of(of_truth.run.spec), {}
    )
    for name in ("utilization", "queue_depth_packets"):
        assert summary["whatif_measures"][name] == pytest.approx(of_soft["whatif_measures"][name], rel=1e-3), name
