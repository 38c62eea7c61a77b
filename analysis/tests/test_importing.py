# SPDX-License-Identifier: MIT
"""Imported traces and tables become runs: fields of the source are kept, and missing fields are null."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from analysis.figures import names
from analysis.papers.spang2021 import PAPER
from analysis.papers.stored_runs import StoredRuns
from analysis.tests import foreign, simulate
from analysis.tests.imports import CONDITIONS, EXPERIMENT, imported
from bufferscope.__main__ import main
from experiments import figures

pytestmark = pytest.mark.usefixtures("undrawn")
POSTGRES = max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("/nowhere"))


def check(repetition: Path, recorded, exact_time: bool) -> dict:
    """Compares a run directory with the simulation. Returns its summary."""
    scenario, truth = recorded
    cards, tcp = (pl.read_parquet(repetition / f"{name}.parquet") for name in ("postcards", "tcp"))
    expected = foreign.cards(truth)
    assert cards["enqueue_mono_ns"].to_list() == [ns for ns, _ in expected]
    assert sorted(cards["tcp_seq"]) == sorted(int(str(row["seq_no"])) for _, row in expected)
    cells = cards["depth_cells"].to_numpy()
    assert np.array_equal(cards["depth_packets"], np.rint(cells * foreign.CELL_BYTES / foreign.MTU))
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
    assert tcp["packets_out"].null_count() == len(tcp)
    summary = json.loads((repetition / "summary.json").read_text())
    assert summary["valid"] is False
    assert summary["reasons"][0].startswith("imported: no ledger")
    assert summary["in_flight_from"] == "snd_nxt - snd_una"
    assert summary["queue_delay_ns"] == dict.fromkeys(("mean", "p50", "p99", "max"))
    assert (summary["marks"], summary["buffer_packets"], len(summary["flows"])) == (
        None,
        scenario.threshold,
        scenario.flows,
    )
    assert (repetition / "distributions.parquet").exists()
    return summary


def test_text__of_the_artifact_is_a_run(tmp_path, recorded, capsys):
    foreign.write_text(tmp_path / "their run", *recorded)
    repetition = imported(tmp_path / "their run", tmp_path / "out")
    summary = check(repetition, recorded, exact_time=False)
    assert summary["reasons"][1:] == ["the last line of the trace is not whole, and left out"]
    scenario, truth = recorded
    window = summary["measurement_window_mono_ns"]
    inside = [card for card in truth.cards if window[0] <= card["enqueue_ns"] + card["sojourn_ns"] < window[1]]
    bits = sum(
        8 * (card["packet_bytes"] + 24) for card in inside if not card["flags"] & simulate.CARD["POSTCARD_DROPPED"]
    )
    assert summary["utilization"]["mean"] == pytest.approx(bits / scenario.rate_bps / summary["measured_s"], abs=2e-3)
    files = json.loads((repetition / "environment.json").read_text())["imported"]["files"]
    assert {file["name"] for file in files} == {"trace.tr", "postcards.tr", "config.json"}
    assert "lines of other events" in capsys.readouterr().out
    assert main(["replay", str(repetition)]) == 0  # the imported run can be replayed
    assert "byte for byte" in capsys.readouterr().out


def test_tables__as_csv_and_as_a_dump_are_the_same_run(tmp_path, recorded):
    data_set = foreign.tables(*recorded)
    foreign.write_csv(tmp_path / "csv", data_set)
    foreign.write_dump(tmp_path / "cc_traces.db", data_set)
    run = imported(tmp_path / "csv", tmp_path / "one", EXPERIMENT)
    other = imported(tmp_path / "cc_traces.db", tmp_path / "other", EXPERIMENT)
    for directory in (run, other):
        check(directory, recorded, exact_time=True)
    for name in ("postcards.bsp", "tcp.bst", "joined.parquet", "distributions.parquet"):
        assert (run / name).read_bytes() == (other / name).read_bytes()
    assert json.loads((other / "environment.json").read_text())["imported"]["experiment"]["note"] == "a\tnote"


def test_tables__list_their_experiments(tmp_path, recorded, capsys):
    foreign.write_csv(tmp_path / "csv", foreign.tables(*recorded))
    assert main(["import", f"FROM={tmp_path}/csv", f"OUTPUT={tmp_path}/out"]) == 1
    assert (
        f"has 2 experiments ({foreign.EXPERIMENT}, another...); say which: EXPERIMENT=id, or all"
        in capsys.readouterr().err
    )
    assert main(["import", f"FROM={tmp_path}/csv", f"OUTPUT={tmp_path}/out", "EXPERIMENT=third"]) == 1
    assert "has no experiment 'third'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_experiment_that_cannot_be_imported__does_not_prevent_the_import_of_others(tmp_path, recorded, capsys):
    data_set = foreign.tables(*recorded)
    data_set["experiments"][1].reverse()  # the experiment without packets comes first
    foreign.write_csv(tmp_path / "csv", data_set)
    assert main(["import", f"FROM={tmp_path}/csv", f"OUTPUT={tmp_path}/out", "EXPERIMENT=all", *CONDITIONS]) == 2
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith(f"error: experiment another: {tmp_path}/csv: has nothing of experiment another in")
    assert last == "error: 1 of 2 experiments were not imported"
    assert [path.name for path in (tmp_path / "out/runs").iterdir()] == [foreign.EXPERIMENT]
    assert (tmp_path / f"out/runs/{foreign.EXPERIMENT}/rep-1/summary.json").exists()


def test_figures__are_drawn_from_imported_runs(tmp_path, recorded):
    foreign.write_csv(tmp_path / "csv", {name: (c, r[:1] if name == "experiments" else r) for name, (c, r)
                                         in foreign.tables(*recorded).items()})  # fmt: skip
    sweep = tmp_path / "results/spang2021-reno-depth"
    assert main(["import", f"FROM={tmp_path}/csv", f"OUTPUT={sweep}", "EXPERIMENT=all", *CONDITIONS]) == 0
    runs = StoredRuns(PAPER, tmp_path / "results")
    (run,) = runs.select("reno-depth", cc="reno", flows=recorded[0].flows)
    assert (run["valid"], run["imported"], run.name) == (False, True, foreign.EXPERIMENT)
    depths, counts = run.distribution("queue_depth_packets")
    assert counts.sum() == run.summary["arrivals"]
    assert depths.max() == run.summary["queue_depth_packets"]["max"]
    assert runs.provenance()["imported"] == 1
    # A second import skips the runs that exist already.
    assert main(["import", f"FROM={tmp_path}/csv", f"OUTPUT={sweep}", "EXPERIMENT=all", *CONDITIONS]) == 0


def test_histogram__with_another_count_than_the_postcards_is_reported(tmp_path, recorded):
    data_set = foreign.tables(*recorded)
    columns, rows = data_set["queue_depth_histograms"]
    at = columns.index("count")
    rows[0][at] = int(str(rows[0][at])) + 7
    foreign.write_csv(tmp_path / "csv", data_set)
    repetition = imported(tmp_path / "csv", tmp_path / "out", EXPERIMENT)
    total = len(recorded[1].cards)
    reasons = json.loads((repetition / "summary.json").read_text())["reasons"]
    assert reasons[1:] == [f"queue_depth_histograms counts {total + 7} packets, postcard_traces has {total}"]


LEFT_OUT = {  # tables of an experiment that the published data set may lack
    "histogram alone": ("postcard_traces", "traces", "retransmits"),
    "histogram and windows": ("postcard_traces",),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_histogram__without_postcards_is_a_run_with_a_note(tmp_path, recorded, name):
    scenario, truth = recorded
    data_set = {table: rows for table, rows in foreign.tables(*recorded).items() if table not in LEFT_OUT[name]}
    foreign.write_csv(tmp_path / "csv", data_set)
    repetition = imported(tmp_path / "csv", tmp_path / "results/runs/one", EXPERIMENT)
    depths = np.array([card["depth_packets"] for card in truth.cards])
    summary = json.loads((repetition / "summary.json").read_text())
    assert summary["reasons"][1:] == [
        f"no postcard_traces: queue_depth_histograms has the depths of {len(depths)} packets of the whole run; times, "
        "drops, utilization and goodput are unknown"
    ]
    percentiles = np.percentile(depths, (1, 50, 99), method="inverted_cdf")
    assert summary["queue_depth_packets"] == {
        "mean": pytest.approx(depths.mean()), "max": depths.max(), "time_mean": None,
        **dict(zip(("p01", "p50", "p99"), percentiles, strict=True)),
    }  # fmt: skip
    unknown = ("arrivals", "drops", "marks", "goodput_bps", "queue_nonempty_fraction", "jain_index")
    assert [summary[key] for key in unknown] == [None] * len(unknown)
    assert summary["utilization"]["mean"] is None
    assert (summary["loss"]["events"], summary["buffer_packets"]) == (None, scenario.threshold)
    has_windows = "traces" in data_set
    assert (summary["almost_fairness"]["window_p50_packets"] is not None) == has_windows
    drawn = {"queue_depth_distribution"} | ({"queue_and_windows", "window_distribution"} if has_windows else set())
    assert set(names(summary["spec"])) == drawn

    runs = StoredRuns(PAPER, tmp_path / "results", conditions=figures.conditions(PAPER))
    (run,) = runs.select("reno-depth", needs=("depth_p01_packets",), cc="reno", flows=scenario.flows)
    values, counts = run.distribution("queue_depth_packets")
    assert dict(zip(values.tolist(), counts.tolist(), strict=True)) == dict(enumerate(np.bincount(depths)))
    (figure_04,) = PAPER.choose("4")
    (panel,) = figure_04.prepare(runs)["panels"]
    assert panel["rows"][0]["p01"].value == percentiles[0]
    assert runs.select("reno-depth", needs=("utilization_p01",)) == []
    assert runs.provenance()["left_out"][0].reason == "has no utilization_p01"


BAD_HISTOGRAMS = [
    ("12", "a few", "line 2: count is 'a few'; allowed: a whole number from 0 to 4294967295"),
    ("12", "-3", "line 2: count is '-3'; allowed: a whole number from 0"),
    ("deep", "12", "line 2: queue_depth_packets is 'deep'; allowed: a number from 0, as 166.67"),
]


@pytest.mark.parametrize(("depth", "count", "answer"), BAD_HISTOGRAMS)
def test_histogram__that_is_broken_gets_one_line(tmp_path, recorded, capsys, depth, count, answer):
    data_set = {name: rows for name, rows in foreign.tables(*recorded).items() if name != "postcard_traces"}
    columns, rows = data_set["queue_depth_histograms"]
    rows[0][columns.index("queue_depth_packets")], rows[0][columns.index("count")] = depth, count
    foreign.write_csv(tmp_path / "csv", data_set)
    assert main(["import", f"FROM={tmp_path}/csv", f"OUTPUT={tmp_path}/out", EXPERIMENT, *CONDITIONS]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert f"queue_depth_histograms.csv, {answer}" in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", ["", "queue_depth_packets,count\n-1,2\n", "queue_depth_packets,count\n1,x\n"])
def test_histogram__that_was_changed_later_is_named(tmp_path, recorded, capsys, content):
    left_out = LEFT_OUT["histogram alone"]
    data_set = {name: rows for name, rows in foreign.tables(*recorded).items() if name not in left_out}
    foreign.write_csv(tmp_path / "csv", data_set)
    repetition = imported(tmp_path / "csv", tmp_path / "out", EXPERIMENT)
    (repetition / "queue_depth_histogram.csv").write_text(content)
    capsys.readouterr()
    for words, said in (([], "histogram.csv: damaged, or of another run"), (["--force"], "is not a histogram")):
        assert main(["replay", str(repetition), *words]) == 1
        err = capsys.readouterr().err
        assert (err.count("\n"), said in err) == (1, True)


@pytest.fixture
def server(tmp_path_factory):
    """A PostgreSQL server of this test alone, in a temporary directory and on a Unix socket: it needs no network."""
    if not POSTGRES.is_dir():
        pytest.skip("no PostgreSQL here (Debian: postgresql)")
    directory = tmp_path_factory.mktemp("pg", numbered=True)
    short = Path("/tmp") / f"bufferscope-pg-{os.getpid()}"
    shutil.rmtree(short, ignore_errors=True)
    short.mkdir(mode=0o777)
    user: dict = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        user = {"user": "nobody", "group": "nogroup", "extra_groups": []}
        shutil.chown(short, "nobody", "nogroup")
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    log = (directory / "log").open("w")

    def run(*words):
        subprocess.run(
            [str(word) for word in words], check=True, stdout=log, stderr=log, env=environment, cwd="/", **user
        )

    run(POSTGRES / "initdb", "-D", short / "data", "-U", "postgres", "--auth=trust", "--no-sync", "-E", "UTF8")
    run(
        POSTGRES / "pg_ctl",
        "-D",
        short / "data",
        "-w",
        "-o",
        f"-k {short} -c listen_addresses='' -F",
        "-l",
        short / "log",
        "start",
    )
    try:
        yield f"postgresql:///postgres?host={short}&user=postgres"
    finally:
        run(POSTGRES / "pg_ctl", "-D", short / "data", "-m", "immediate", "stop")
        shutil.rmtree(short)


def test_tables__of_a_real_server_and_of_its_dump_are_the_same_run(tmp_path, recorded, server):
    import psycopg

    data_set = foreign.tables(*recorded)
    foreign.write_csv(tmp_path / "csv", data_set)
    whole = ("data_len", "snd_nxt", "snd_una", "snd_cwnd", "sport", "dport", "src_port", "dst_port", "seq_no",
             "num_flows",
             "queue_depth_cells", "was_dropped", "egress_port", "count", "srtt_us")  # fmt: skip
    with psycopg.connect(server) as connection:
        for name, (columns, rows) in data_set.items():
            kinds = [
                "bigint" if c in whole else "double precision" if "timestamp" in c and "post" not in c else "text"
                for c in columns
            ]
            listed = ", ".join(f'"{column}" {kind}' for column, kind in zip(columns, kinds, strict=True))
            connection.execute(f"create table {name} ({listed})")
            with connection.cursor().copy(f"copy {name} from stdin") as copy:
                for row in rows:
                    copy.write_row([None if value is None else str(value) for value in row])
    dump = subprocess.run([POSTGRES / "pg_dump", server], check=True, capture_output=True).stdout
    (tmp_path / "cc_traces.db").write_bytes(dump)
    run = imported(f"{server}&password=hunter2", tmp_path / "one", EXPERIMENT)
    for name in ("spec.yaml", "environment.json"):
        assert "tables of postgres" in (run / name).read_text()
    assert not [path for path in run.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()]
    other = imported(tmp_path / "cc_traces.db", tmp_path / "other", EXPERIMENT)
    summary = json.loads((run / "summary.json").read_text())
    assert summary["arrivals"] > 1000
    for name in ("postcards.bsp", "tcp.bst", "joined.parquet"):
        assert (run / name).read_bytes() == (other / name).read_bytes()
    cards = pl.read_parquet(run / "postcards.parquet")
    assert sorted(cards["depth_packets"]) == sorted(card["depth_packets"] for card in recorded[1].cards)
    error = np.abs(cards["enqueue_mono_ns"].to_numpy() - np.array([ns for ns, _ in foreign.cards(recorded[1])]))
    assert error.max() < 1000  # ns; a double resolves even UNIX times in seconds to 238 ns
