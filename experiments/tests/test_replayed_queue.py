# SPDX-License-Identifier: MIT
"""A run's arrivals, sent again in a virtual machine, through queues that only an experiment has."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from bufferscope.__main__ import main
from experiments.run import replayed_queue
from experiments.tests.test_virtual import SHORT
from runs.spec_file import load_spec

pytestmark = [pytest.mark.long, pytest.mark.virtual]


@pytest.fixture(scope="module")
def repetition(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("results")
    assert main(["experiment", *SHORT, "QUEUE=linux:pfifo limit 12", f"RESULTS={results}"]) == 0
    return results.resolve() / "latest/rep-1"


def replayed(repetition: Path, *words: str) -> tuple[pl.DataFrame, dict]:
    assert main(["replay", f"RUN={repetition}", *words]) == 0
    made = max(repetition.glob("whatif-*"), key=lambda path: int(path.name.partition("-")[2]))
    assert not (repetition / replayed_queue.DIRECTORY).exists()
    return pl.read_parquet(made / "queue.parquet"), json.loads((made / "summary.json").read_text())


def test_replay__through_the_runs_own_qdisc_changes_nothing(repetition: Path) -> None:
    table, summary = replayed(repetition, "QUEUE=linux:pfifo limit 12")
    assert summary["run_measures"]["drops_of_the_whole_run"] > 0
    for column in ("depth_packets", "depth_bytes", "dropped", "ce_marked"):
        assert table[column].equals(table[f"{column}_run"], check_names=False)
    assert ((table["sojourn_ns"] - table["sojourn_ns_run"]).abs() < 100).all()


def test_replay__through_tail_drop_in_the_core_and_through_pfifo_is_the_same(repetition: Path) -> None:
    """A qdisc does not count the packet on the link."""
    core, _ = replayed(repetition, "MODE=tail-drop", "BUF=7p")
    qdisc, _ = replayed(repetition, "QUEUE=linux:pfifo limit 6")
    for column in ("depth_packets", "dropped"):
        assert core[column].equals(qdisc[column])
    assert core["dropped"].sum() > core["dropped_run"].sum()


@pytest.mark.parametrize("words", [("MODE=codel", "POLICY=target=1ms"), ("QUEUE=linux:fq_codel target 1ms",)])
def test_replay__through_an_aqm_has_each_packet_once(repetition: Path, words: tuple[str, ...]) -> None:
    table, summary = replayed(repetition, *words, "RATE=40mbit")
    assert len(table) == summary["packets"]
    assert summary["whatif_measures"]["drops_of_the_whole_run"] > 0
    assert "40 Mb/s" in summary["setting"]["whatif"]


def test_queue__of_a_capture_with_any_rtt_and_mtu_is_an_experiments(repetition: Path) -> None:
    captured = load_spec(repetition).model_copy(update={"rtt_ns": 2914, "mtu_bytes": 65535})
    queue = replayed_queue.experiment(captured, {"queue": "linux:codel"}, 10**9)
    assert (queue.queue, queue.rate_bps, queue.mtu_bytes) == ("codel", 10**9, 9000)


def test_replay__through_a_slow_deep_queue_waits_until_it_is_empty(repetition: Path) -> None:
    table, summary = replayed(repetition, "QUEUE=linux:pfifo limit 100000", "RATE=2mbit")
    assert len(table) == summary["packets"]
    assert table["dropped"].sum() == 0
    assert (table["sojourn_ns"] > 14 * 10**9).any()
