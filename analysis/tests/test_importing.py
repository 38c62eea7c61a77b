# SPDX-License-Identifier: MIT
"""Imported traces and tables become runs: fields of the source are kept, and missing fields are null."""

import gzip
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from analysis.figures import names
from analysis.importing import tables, text
from analysis.papers.paper_runs import PaperRuns
from analysis.papers.spang2021 import PAPER
from analysis.read import columns
from analysis.tests import foreign, simulate
from analysis.tests.imports import CONDITIONS, EXPERIMENT, imported, pcap, refused
from bufferscope.__main__ import main
from experiments.commands import figures
from runs import verdict

pytestmark = pytest.mark.usefixtures("undrawn")


def check(repetition: Path, recorded, exact_time: bool) -> dict:
    """Compares a run directory with the simulation. Returns its summary."""
    scenario, truth = recorded
    cards, tcp = (pl.read_parquet(repetition / f"{name}.parquet") for name in ("postcards", "tcp"))
    expected = foreign.cards(truth)
    assert cards["enqueue_mono_ns"].to_list() == [ns for ns, _ in expected]
    assert sorted(cards["tcp_seq"]) == sorted(int(str(row["seq_no"])) for _, row in expected)
    assert sorted(cards["depth_packets"]) == sorted(card["depth_packets"] for card in truth.cards)
    for name in ("sojourn_ns", "depth_bytes", "threshold", "policy", "card_seq", "switch_id"):
        assert cards[name].null_count() == len(cards), name
    in_order = [card for card in truth.cards if card["tcp_flags"] == 0x10]
    assert abs(int((cards["packet_bytes"] == scenario.frame_bytes).sum()) - len(in_order)) <= 2 * scenario.flows
    times = sorted(record["mono_ns"] if exact_time else record["mono_ns"] // 1000 * 1000 for record in truth.records)
    assert tcp["mono_ns"].to_list() == times
    assert sorted(tcp["cwnd_packets"].drop_nulls()) == sorted(
        record["cwnd_packets"] for record in truth.records if record["event"] == simulate.EVENT["TCP_EVENT_PROBE"]
    )
    summary = json.loads((repetition / "summary.json").read_text())
    assert summary["reasons"][0].startswith("imported: no ledger")
    assert summary["queue_delay_ns"] == dict.fromkeys(("mean", "p50", "p99", "max"))
    known = {"valid": False, "in_flight_from": "snd_nxt - snd_una", "marks": None, "buffer_packets": scenario.threshold}
    assert summary.items() >= known.items()
    assert len(summary["flows"]) == scenario.flows
    return summary


def write_tables(directory: Path, recorded, *left_out: str) -> Path:
    """The experiment as CSV files, without some tables and without the second experiment."""
    data_set = foreign.together([foreign.tables(*recorded)])
    foreign.write_csv(directory, {name: rows for name, rows in data_set.items() if name not in left_out})
    return directory


def replace_cell(path: Path, column: str, value: str) -> None:
    """Changes a cell of the first row of a CSV file."""
    columns, first, *rest = path.read_text().splitlines()
    cells = first.split(",")
    cells[columns.split(",").index(column)] = value
    path.write_text("\n".join([columns, ",".join(cells), *rest]) + "\n")


def test_text__of_the_artifact_is_a_run(tmp_path, recorded, capsys):
    foreign.write_text(tmp_path / "their run", *recorded)
    repetition = imported(tmp_path / "their run", tmp_path / "out")
    summary = check(repetition, recorded, exact_time=False)
    assert summary["reasons"][1:] == ["the last line of the trace is not whole, and left out"]
    start, end = summary["measurement_window_mono_ns"]
    sent = [card for card in recorded[1].cards if not card["flags"] & simulate.CARD["POSTCARD_DROPPED"]]
    inside = [card for card in sent if start <= card["enqueue_ns"] + card["sojourn_ns"] < end]
    bits = sum(8 * (card["packet_bytes"] + 24) for card in inside)
    used = bits / recorded[0].rate_bps / summary["measured_s"]
    assert summary["utilization"]["mean"] == pytest.approx(used, abs=2e-3)
    files = json.loads((repetition / "environment.json").read_text())["imported"]["files"]
    assert {file["name"] for file in files} == {"trace.tr", "postcards.tr", "config.json"}
    assert "lines of other events" in capsys.readouterr().out
    assert main(["replay", str(repetition)]) == 0  # the imported run can be replayed
    assert "byte for byte" in capsys.readouterr().out


def test_tables__as_csv_gzipped_and_as_parquet_are_the_same_run(tmp_path, recorded):
    foreign.write_csv(tmp_path / "csv", foreign.tables(*recorded))
    runs = []
    for kind in ("csv", "gz", "parquet"):
        (tmp_path / kind).mkdir(exist_ok=True)
        for path in (tmp_path / "csv").glob("*.csv") if kind != "csv" else ():
            if kind == "gz":
                (tmp_path / kind / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
            else:
                pl.read_csv(path).write_parquet(tmp_path / kind / f"{path.stem}.parquet")
        runs.append(imported(tmp_path / kind, tmp_path / f"of_{kind}", EXPERIMENT))
        check(runs[-1], recorded, exact_time=True)
        for name in ("postcards.bsp", "tcp.bst", "joined.parquet", "distributions.parquet"):
            assert (runs[-1] / name).read_bytes() == (runs[0] / name).read_bytes(), (kind, name)
        assert json.loads((runs[-1] / "environment.json").read_text())["imported"]["experiment"]["note"] == "a\tnote"


def test_source__in_small_slabs_is_the_same_run(tmp_path, recorded, monkeypatch):
    foreign.write_text(tmp_path / "text", *recorded)
    foreign.write_csv(tmp_path / "tables", foreign.tables(*recorded))
    cards = [(10**18 + number, card[8:]) for number, card in enumerate(simulate.stored_postcards(*recorded))]
    pcap(tmp_path / "twice", [*cards, *cards], simulate.CARD["POSTCARD_UDP_PORT"])
    for output in ("whole", "in slabs"):
        for source in ("text", "tables", "twice"):
            imported(tmp_path / source, tmp_path / output / source, *[EXPERIMENT] * (source == "tables"))
        monkeypatch.setattr(columns, "SLAB_ROWS", 700)
        monkeypatch.setattr(text, "BLOCK_BYTES", 20_000)
        monkeypatch.setattr(tables, "BATCH_ROWS", 300)
    for source in ("text", "tables", "twice"):
        for name in ("postcards.bsp", "tcp.bst", "spec.yaml", "joined.parquet", "summary.json"):
            whole, in_slabs = (tmp_path / output / source / "rep-1" / name for output in ("whole", "in slabs"))
            assert whole.read_bytes() == in_slabs.read_bytes(), (source, name)


def test_experiments__are_listed_and_imported_one_by_one(tmp_path, recorded, capsys):
    data_set = foreign.tables(*recorded)
    data_set["experiments"][1].reverse()  # the experiment without packets comes first
    foreign.write_csv(tmp_path / "csv", data_set)
    words = ["import", f"FROM={tmp_path}/csv", f"OUTPUT={tmp_path}/out", *CONDITIONS]
    for more, said in (((), foreign.EXPERIMENT), (("EXPERIMENT=third",), "has no experiment 'third'")):
        assert main([*words, *more]) == 1
        assert said in capsys.readouterr().err
        assert not (tmp_path / "out").exists()
    for _ in range(2):  # a second import skips the run that exists already
        assert main([*words, "EXPERIMENT=all"]) == 2
        first, last = capsys.readouterr().err.splitlines()
        assert first.startswith(f"error: experiment another: {tmp_path}/csv: has nothing of experiment another in")
        assert last == "error: 1 of 2 experiments were not imported"
        assert [path.name for path in (tmp_path / "out/runs").iterdir()] == [foreign.EXPERIMENT]
    assert (tmp_path / f"out/runs/{foreign.EXPERIMENT}/rep-1/summary.json").exists()


def test_histogram__that_disagrees_is_a_reason_and_a_broken_one_is_refused(tmp_path, recorded, capsys):
    directory = write_tables(tmp_path / "csv", recorded)
    path = directory / "queue_depth_histograms.csv"
    whole = path.read_text()
    for column, value in (("count", "a few"), ("count", "-3"), ("queue_depth_packets", "deep")):
        replace_cell(path, column, value)
        line = refused(directory, tmp_path / "out", capsys, EXPERIMENT)
        assert f"queue_depth_histograms.csv, line 2: {column} is '{value}'" in line
        path.write_text(whole)
    replace_cell(path, "count", "100000")
    repetition = imported(directory, tmp_path / "out", EXPERIMENT)
    (reason,) = json.loads((repetition / "summary.json").read_text())["reasons"][1:]
    assert reason.startswith("queue_depth_histograms counts 10")
    assert reason.endswith(f"packets, postcard_traces has {len(recorded[1].cards)}")


@pytest.mark.parametrize("has_windows", [True, False])
def test_histogram__without_postcards_is_a_run_with_a_note(tmp_path, recorded, has_windows):
    scenario, truth = recorded
    left_out = ("postcard_traces", *(() if has_windows else ("traces", "retransmits")))
    directory = write_tables(tmp_path / "csv", recorded, *left_out)
    repetition = imported(directory, tmp_path / "results/runs/one", EXPERIMENT)
    depths = np.array([card["depth_packets"] for card in truth.cards])
    summary = json.loads((repetition / "summary.json").read_text())
    (reason,) = summary["reasons"][1:]
    assert reason.startswith(f"no postcard_traces: queue_depth_histograms has the depths of {len(depths)} packets")
    percentiles = np.percentile(depths, (1, 50, 99), method="inverted_cdf")
    assert summary["queue_depth_packets"] == {
        "mean": pytest.approx(depths.mean()), "max": depths.max(), "time_mean": None,
        **dict(zip(("p01", "p50", "p99"), percentiles, strict=True)),
    }  # fmt: skip
    unknown = ("arrivals", "drops", "marks", "goodput_bps", "queue_nonempty_fraction", "jain_index")
    assert [summary[key] for key in unknown] == [None] * len(unknown)
    assert (summary["utilization"]["mean"], summary["loss"]["events"]) == (None, None)
    assert (summary["almost_fairness"]["window_p50_packets"] is not None) == has_windows
    drawn = {"queue_depth_distribution"} | ({"queue_and_windows", "window_distribution"} if has_windows else set())
    assert set(names(verdict.experiment(summary))) == drawn

    runs = PaperRuns(PAPER, tmp_path / "results", conditions=figures.conditions(PAPER))
    (run,) = runs.select("reno-depth", needs=("depth_p01_packets",), cc="reno", flows=scenario.flows)
    values, counts = run.distribution("queue_depth_packets")
    assert dict(zip(values.tolist(), counts.tolist(), strict=True)) == dict(enumerate(np.bincount(depths)))
    assert runs.select("reno-depth", needs=("utilization_p01",)) == []
    assert runs.provenance()["left_out"][0].reason == "has no utilization_p01"
