# SPDX-License-Identifier: MIT
"""Captures of others become runs: what they told is there, what they did not is null, what is broken is named."""

import contextlib
import gzip
import importlib
import json
import os
import random
import shutil
import socket
import struct
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from analysis import derive as derive_module
from analysis.__main__ import main
from analysis.exporting import pcapng
from analysis.figures import names
from analysis.figures.spang2021.runs import Runs
from analysis.importing import captures, command, sources, text
from analysis.raw import InputError
from analysis.tests import foreign, simulate
from wire import wire

CONDITIONS = ["RATE=50mbit", "RTT=10ms"]
EXPERIMENT = f"EXPERIMENT={foreign.EXPERIMENT}"
POSTGRES = max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("/nowhere"))


@pytest.fixture(autouse=True)
def no_figures(monkeypatch):
    monkeypatch.setattr(derive_module, "draw_all", lambda *_: [])
    monkeypatch.setattr(derive_module, "render", lambda *_: "")
    monkeypatch.setattr("analysis.__main__.drawing_pool", contextlib.nullcontext)


@pytest.fixture(scope="module")
def recorded():
    """A simulated scenario and what happened in it."""
    scenario = simulate.Scenario()
    return scenario, simulate.Simulation(scenario).run()


def imported(source, output, *words) -> Path:
    assert main(["import", f"FROM={source}", f"OUTPUT={output}", *CONDITIONS, *words]) == 0
    return Path(output) / "rep-1"


def check(repetition: Path, recorded, exact_time: bool) -> dict:
    """A run directory against the truth."""
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
    assert main([str(repetition)]) == 0  # and it can be replayed
    assert "byte for byte" in capsys.readouterr().out


def test_tables__as_csv_and_as_a_dump_are_the_same_run(tmp_path, recorded):
    found = foreign.tables(*recorded)
    foreign.write_csv(tmp_path / "csv", found)
    foreign.write_dump(tmp_path / "cc_traces.db", found)
    one = imported(tmp_path / "csv", tmp_path / "one", EXPERIMENT)
    other = imported(tmp_path / "cc_traces.db", tmp_path / "other", EXPERIMENT)
    for directory in (one, other):
        check(directory, recorded, exact_time=True)
    for name in ("postcards.bsp", "tcp.bst", "joined.parquet", "distributions.parquet"):
        assert (one / name).read_bytes() == (other / name).read_bytes()
    assert json.loads((other / "environment.json").read_text())["imported"]["experiment"]["note"] == "a\tnote"


def test_tables__say_which_experiments_there_are(tmp_path, recorded, capsys):
    foreign.write_csv(tmp_path / "csv", foreign.tables(*recorded))
    assert main(["import", f"FROM={tmp_path}/csv", f"OUTPUT={tmp_path}/out"]) == 1
    assert (
        f"has 2 experiments ({foreign.EXPERIMENT}, another...); say which: EXPERIMENT=id, or all"
        in capsys.readouterr().err
    )
    assert main(["import", f"FROM={tmp_path}/csv", f"OUTPUT={tmp_path}/out", "EXPERIMENT=third"]) == 1
    assert "has no experiment 'third'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_figures__are_drawn_from_what_was_imported(tmp_path, recorded):
    foreign.write_csv(tmp_path / "csv", {name: (c, r[:1] if name == "experiments" else r) for name, (c, r)
                                         in foreign.tables(*recorded).items()})  # fmt: skip
    sweep = tmp_path / "results/spang2021-reno-depth"
    assert main(["import", f"FROM={tmp_path}/csv", f"OUTPUT={sweep}", "EXPERIMENT=all", *CONDITIONS]) == 0
    runs = Runs(tmp_path / "results")
    (run,) = runs.select("reno-depth", cc="reno", flows=recorded[0].flows)
    assert (run["valid"], run.is_imported, run.name) == (False, True, foreign.EXPERIMENT)
    depths, counts = run.distribution("queue_depth_packets")
    assert counts.sum() == run.summary["arrivals"]
    assert depths.max() == run.summary["queue_depth_packets"]["max"]
    assert runs.provenance()["imported"] == 1
    assert main(["import", f"FROM={tmp_path}/csv", f"OUTPUT={sweep}", "EXPERIMENT=all", *CONDITIONS]) == 0  # goes on


def test_histogram__that_counts_otherwise_is_told(tmp_path, recorded):
    found = foreign.tables(*recorded)
    columns, rows = found["queue_depth_histograms"]
    at = columns.index("count")
    rows[0][at] = int(str(rows[0][at])) + 7
    foreign.write_csv(tmp_path / "csv", found)
    repetition = imported(tmp_path / "csv", tmp_path / "out", EXPERIMENT)
    total = len(recorded[1].cards)
    reasons = json.loads((repetition / "summary.json").read_text())["reasons"]
    assert reasons[1:] == [f"queue_depth_histograms counts {total + 7} packets, postcard_traces has {total}"]


LEFT_OUT = {  # tables of an experiment that the published data no longer have
    "histogram alone": ("postcard_traces", "traces", "retransmits"),
    "histogram and windows": ("postcard_traces",),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_histogram__alone_is_a_run_that_says_what_it_lacks(tmp_path, recorded, name):
    scenario, truth = recorded
    found = {table: rows for table, rows in foreign.tables(*recorded).items() if table not in LEFT_OUT[name]}
    foreign.write_csv(tmp_path / "csv", found)
    repetition = imported(tmp_path / "csv", tmp_path / "results/runs/one", EXPERIMENT)
    depths = np.array([card["depth_packets"] for card in truth.cards])
    summary = json.loads((repetition / "summary.json").read_text())
    assert summary["reasons"][1:] == [
        f"no postcard_traces: queue_depth_histograms alone tells how deep the queue was that {len(depths)} packets of "
        "the whole run left, and no times, drops, utilization or goodput"
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
    has_windows = "traces" in found
    assert (summary["almost_fairness"]["window_p50_packets"] is not None) == has_windows
    drawn = {"queue_depth_distribution"} | ({"queue_and_windows", "window_distribution"} if has_windows else set())
    assert set(names(summary["spec"])) == drawn

    runs = Runs(tmp_path / "results")
    (run,) = runs.select("reno-depth", needs=("depth_p01_packets",), cc="reno", flows=scenario.flows)
    values, counts = run.distribution("queue_depth_packets")
    assert dict(zip(values.tolist(), counts.tolist(), strict=True)) == dict(enumerate(np.bincount(depths)))
    (panel,) = importlib.import_module("analysis.figures.spang2021.figure_04").prepare(runs)["panels"]
    assert panel["rows"][0]["p01"].value == percentiles[0]
    assert runs.select("reno-depth", needs=("utilization_p01",)) == []
    assert runs.provenance()["left_out"][0][1] == "tells no utilization_p01"


BAD_HISTOGRAMS = [
    ("12", "a few", "line 2: count is 'a few'; allowed: a whole number from 0 to 4294967295"),
    ("12", "-3", "line 2: count is '-3'; allowed: a whole number from 0"),
    ("deep", "12", "line 2: queue_depth_packets is 'deep'; allowed: a number from 0, as 166.67"),
]


@pytest.mark.parametrize(("depth", "count", "answer"), BAD_HISTOGRAMS)
def test_histogram__that_is_broken_gets_one_line(tmp_path, recorded, capsys, depth, count, answer):
    found = {name: rows for name, rows in foreign.tables(*recorded).items() if name != "postcard_traces"}
    columns, rows = found["queue_depth_histograms"]
    rows[0][columns.index("queue_depth_packets")], rows[0][columns.index("count")] = depth, count
    foreign.write_csv(tmp_path / "csv", found)
    assert main(["import", f"FROM={tmp_path}/csv", f"OUTPUT={tmp_path}/out", EXPERIMENT, *CONDITIONS]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert f"queue_depth_histograms.csv, {answer}" in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", ["", "queue_depth_packets,count\n-1,2\n", "queue_depth_packets,count\n1,x\n"])
def test_histogram__that_was_changed_later_is_named(tmp_path, recorded, capsys, content):
    left_out = LEFT_OUT["histogram alone"]
    found = {name: rows for name, rows in foreign.tables(*recorded).items() if name not in left_out}
    foreign.write_csv(tmp_path / "csv", found)
    repetition = imported(tmp_path / "csv", tmp_path / "out", EXPERIMENT)
    (repetition / "queue_depth_histogram.csv").write_text(content)
    capsys.readouterr()
    assert main([str(repetition)]) == 1
    err = capsys.readouterr().err
    assert (err.count("\n"), "is no histogram" in err) == (1, True)


@pytest.fixture
def server(tmp_path_factory):
    """A PostgreSQL of our own in a temporary directory, on a Unix socket: no network, gone afterwards."""
    if not POSTGRES.is_dir():
        pytest.skip("no PostgreSQL here (Debian: postgresql)")
    directory = tmp_path_factory.mktemp("pg", numbered=True)
    short = Path("/tmp") / f"bufferscope-pg-{os.getpid()}"
    shutil.rmtree(short, ignore_errors=True)
    short.mkdir(mode=0o777)
    user: dict = {}
    if os.geteuid() == 0:  # it refuses root
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

    found = foreign.tables(*recorded)
    foreign.write_csv(tmp_path / "csv", found)
    whole = ("data_len", "snd_nxt", "snd_una", "snd_cwnd", "sport", "dport", "src_port", "dst_port", "seq_no",
             "num_flows",
             "queue_depth_cells", "was_dropped", "egress_port", "count", "srtt_us")  # fmt: skip
    with psycopg.connect(server) as connection:
        for name, (columns, rows) in found.items():
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
    one = imported(server, tmp_path / "one", EXPERIMENT)
    other = imported(tmp_path / "cc_traces.db", tmp_path / "other", EXPERIMENT)
    summary = json.loads((one / "summary.json").read_text())
    assert summary["arrivals"] > 1000
    for name in ("postcards.bsp", "tcp.bst", "joined.parquet"):
        assert (one / name).read_bytes() == (other / name).read_bytes()
    cards = pl.read_parquet(one / "postcards.parquet")
    assert sorted(cards["depth_packets"]) == sorted(card["depth_packets"] for card in recorded[1].cards)
    error = np.abs(cards["enqueue_mono_ns"].to_numpy() - np.array([ns for ns, _ in foreign.cards(recorded[1])]))
    assert error.max() < 1000  # what a double keeps of a time


def pcap(path: Path, datagrams: list[tuple[int, bytes]], port: int, kept=lambda number: 65535) -> Path:
    """A capture of UDP datagrams, ns. `kept`: at most how many bytes of each frame."""
    frames = [struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)]
    for number, (ns, payload) in enumerate(datagrams):
        udp = struct.pack(">HHHH", 4444, port, 8 + len(payload), 0) + payload
        ip = struct.pack(
            ">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes(4), socket.inet_aton("10.0.0.9")
        )
        frame = bytes(12) + b"\x08\x00" + ip + udp
        captured = frame[: kept(number)]
        frames += [struct.pack("<IIII", ns // 10**9, ns % 10**9, len(captured), len(frame)), captured]
    path.write_bytes(b"".join(frames))
    return path


def test_capture__of_our_own_postcards_has_all_that_they_tell(tmp_path, recorded, known_runs):
    scenario, truth = recorded
    stored = simulate.stored_postcards(scenario, truth)
    cards = [(int.from_bytes(card[:8], "little"), card[8:]) for card in stored]
    cards[5:5] = [(cards[5][0], b"no postcard"), (cards[5][0], bytes([9]) + cards[5][1][1:])]  # of a version unknown
    path = pcap(tmp_path / "own.pcap", cards, wire.POSTCARD.const["POSTCARD_UDP_PORT"])
    repetition = imported(path, tmp_path / "out")
    own = known_runs("two_flows").analysis.run.postcards
    found = pl.read_parquet(repetition / "postcards.parquet")
    for name, values in own.items():
        if name not in ("flow", "rx_mono_ns"):
            assert np.array_equal(found[name], values), name
    summary = json.loads((repetition / "summary.json").read_text())
    assert summary["queue_delay_ns"]["mean"] > 0
    assert summary["in_flight_from"] is None


def test_capture__that_was_exported_is_the_same_run_again(tmp_path, fresh):
    """Its times are CLOCK_REALTIME, its postcards' CLOCK_MONOTONIC: they differ by what nobody told."""
    path, directory = tmp_path / "cards.pcapng", fresh()
    assert main([str(directory)]) == 0
    before = json.loads((directory / "summary.json").read_text())
    assert main(["export", str(directory), "--format", "pcapng", "--output", str(path)]) == 0
    start, end = before["measurement_window_mono_ns"]
    cards = pl.read_parquet(directory / "postcards.parquet")
    full = cards.filter(pl.col("packet_bytes") == pl.col("packet_bytes").max())
    first = (full["enqueue_mono_ns"] + full["sojourn_ns"]).min()
    window = (f"WARMUP={start - first}ns", f"DURATION={end - start}ns")
    repetition = imported(path, tmp_path / "out", *window, "BUF=20p", "MTU=1500", "CC=reno")
    after = json.loads((repetition / "summary.json").read_text())
    assert (after["arrivals"] > 1000, after["drops"] > 0) == (True, True)
    same = ("arrivals", "drops", "queue_depth_packets", "queue_delay_ns", "utilization", "measurement_window_mono_ns")
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    assert after["reasons"] == ["imported: no ledger, so nobody knows whether everything was recorded"]


ARTIFACT_PADDING = wire.ARTIFACT_POSTCARD.const["ARTIFACT_POSTCARD_PADDING_BYTES"]


@pytest.mark.parametrize("kind", ["ours", "the artifact's"])
def test_capture__that_kept_too_little_is_a_reason(tmp_path, recorded, capsys, kind):
    stored = [card[8:] for card in simulate.stored_postcards(*recorded)][:600]
    theirs = wire.ARTIFACT_POSTCARD.encode(is_mirrored=1, src_addr=1, dst_addr=2, egress_port=2)
    cards = stored if kind == "ours" else [theirs + bytes(ARTIFACT_PADDING)] * 600
    times = [10**18 + 1000 * number for number in range(600)]
    port = 5577 if kind == "ours" else 4444
    datagrams = list(zip(times, cards, strict=True))
    half = pcap(tmp_path / "half.pcap", datagrams, port, lambda number: 65535 if number % 2 else 60)
    reasons = json.loads((imported(half, tmp_path / "out") / "summary.json").read_text())["reasons"]
    assert "300 postcards in half.pcap are cut short, and left out: too few bytes were captured" in reasons

    half.write_bytes(half.read_bytes()[:-10])
    capsys.readouterr()
    assert main(["import", f"FROM={half}", f"OUTPUT={tmp_path}/cut", *CONDITIONS]) == 3
    assert f"error: {half}: damaged or cut off" in capsys.readouterr().err
    reasons = json.loads((tmp_path / "cut/rep-1/summary.json").read_text())["reasons"]
    assert [reason for reason in reasons if reason.startswith("half.pcap: damaged or cut off")]

    none = pcap(tmp_path / "none.pcap", datagrams, port, lambda number: 60)
    assert main(["import", f"FROM={none}", f"OUTPUT={tmp_path}/none", *CONDITIONS]) == 1
    assert "600 postcards of which too few bytes were captured, and no whole one" in capsys.readouterr().err


def test_capture__is_put_on_the_clock_of_most_postcards(tmp_path, recorded):
    """Whatever the delays; one of a clock far away comes first here, and has no say."""
    stored = simulate.stored_postcards(*recorded)
    chance = random.Random(5)
    stray = wire.POSTCARD.encode(**wire.POSTCARD.decode(stored[0][8:]) | {"enqueue_switch_ns": 1 << 40})
    left = [int.from_bytes(card[:8], "little") - 30_000 for card in stored]
    cards = [(10**18 + ns + 5000 + chance.randrange(10**6), card[8:]) for ns, card in zip(left, stored, strict=True)]
    cards += [(10**18 + left[50] + 5000, stored[50][8:]), (10**18 + left[0], stray)]
    found = captures.read(pcap(tmp_path / "p", cards, wire.POSTCARD.const["POSTCARD_UDP_PORT"]))
    expected = sorted(ns - 10**18 - 5000 for ns, _ in cards)
    turns = {int(ours - theirs) for ours, theirs in zip(found.cards.columns["mono_ns"], expected, strict=True)}
    assert len(turns) == 1
    assert turns.pop() % (1 << 48) == 0


@pytest.mark.parametrize("uptime_ns", [0, 3 << 48, 5 << 47])
def test_capture__meets_a_trace_of_a_host_that_is_up_for_long(tmp_path, recorded, uptime_ns):
    """A trace has all bits of CLOCK_MONOTONIC, a postcard 48. The last trace is of another host's clock."""
    stored = simulate.stored_postcards(*recorded)
    cards = [(10**18 + int.from_bytes(card[:8], "little"), card[8:]) for card in stored]
    path, trace = pcap(tmp_path / "own.pcap", cards, 5577), tmp_path / "trace.tr"
    records = [dict(record, mono_ns=record["mono_ns"] + uptime_ns) for record in recorded[1].records]
    trace.write_text("\n".join(foreign.trace_lines(simulate.Truth(records=records))) + "\n")
    summary = json.loads((imported(f"{path},{trace}", tmp_path / "out", "DURATION=1s") / "summary.json").read_text())
    meet = uptime_ns % (1 << 48) == 0
    assert any("no time in common" in reason for reason in summary["reasons"]) != meet
    assert not meet or summary["almost_fairness"]["window_p50_packets"] > 1
    assert not meet or summary["join"]["with_window"] > 1000


def test_capture__of_a_switch_that_counts_cells_says_so(tmp_path, recorded):
    stored = [wire.POSTCARD.decode(card[8:]) for card in simulate.stored_postcards(*recorded)[:300]]
    cells = {"depth_unit": wire.POSTCARD.const["POSTCARD_DEPTH_CELLS"], "depth_cells": 7}
    cards = [(10**18 + 1000 * n, wire.POSTCARD.encode(**fields | cells)) for n, fields in enumerate(stored)]
    path = pcap(tmp_path / "own.pcap", cards, 5577)
    reasons = json.loads((imported(path, tmp_path / "out") / "summary.json").read_text())["reasons"]
    assert "300 postcards tell no depth in packets and bytes" in reasons[-1]


def test_postcards__of_which_none_is_measured_are_a_reason(tmp_path, recorded):
    foreign.write_text(tmp_path / "run", *recorded)
    repetition = imported(tmp_path / "run", tmp_path / "out", "WARMUP=20s")
    summary = json.loads((repetition / "summary.json").read_text())
    assert (summary["arrivals"], summary["drops"]) == (0, 0)
    assert f"none of the {len(recorded[1].cards)} postcards is of the part that is measured" in summary["reasons"][-1]


def test_trace__alone_gives_windows_and_nothing_of_a_queue(tmp_path, recorded):
    path = tmp_path / "tcp_probe.log"
    path.write_text("\n".join(["CPU:3 [LOST 12 EVENTS]", *foreign.trace_lines(recorded[1])]) + "\n")
    repetition = imported(path, tmp_path / "out", "CC=reno")
    summary = json.loads((repetition / "summary.json").read_text())
    assert summary["reasons"][1:] == ["the kernel lost 12 events of the trace"]
    assert (summary["utilization"]["mean"], summary["drops"], summary["goodput_bps"]) == (None, None, None)
    assert all(flow["cwnd_packets_mean"] > 1 for flow in summary["flows"])
    assert summary["almost_fairness"]["window_p50_packets"] > 1


@pytest.mark.parametrize(
    "line",
    [
        "  <idle>-0     [003] ..s2 12.000001: tcp_probe: family=AF_INET src=10.0.0.1:5 dest=10.0.0.2:6 mark=0x0 "
        "data_len=0 snd_nxt=0x35a5a298 snd_una=0x35a4a298 snd_cwnd=10 ssthresh=2147483647 snd_wnd=65536 srtt=105 "
        "rcv_wnd=65536 "
        "sock_cookie=ab41 skbaddr=00000000deadbeef skaddr=00000000deadbeef",  # Linux 6
        "  a b-7  ( 123) [003] 12.000001: tcp_probe: src=[fd00::1]:5 dest=[fd00::2]:6 mark=0x0 "
        "data_len=0 snd_nxt=0x35a5a298 snd_una=0x35a4a298 snd_cwnd=10 ssthresh=2147483647 snd_wnd=65536 srtt=105 "
        "rcv_wnd=65536",  # 4.16
    ],
)
def test_trace__of_other_kernels_is_read(tmp_path, line):
    (tmp_path / "t").write_text(line + "\n")
    events = text.read_trace(tmp_path / "t")
    assert {name: int(values[0]) for name, values in events.columns.items() if name != "socket_cookie"} == {
        "mono_ns": 12_000_001_000, "event": 1, "data_bytes": 0, "snd_nxt": 0x35A5A298, "snd_una": 0x35A4A298,
        "cwnd_packets": 10, "ssthresh_packets": 2147483647, "snd_wnd_bytes": 65536, "rcv_wnd_bytes": 65536,
        "srtt_us": 105,
    }  # fmt: skip
    assert (events.addresses.src_port[0], events.addresses.dst_port[0]) == (5, 6)


BREAKS = [  # what is changed in the text files, and the one line that it is answered with
    ("trace.tr", "snd_cwnd=10 ", "snd_cwnd=ten ",
     "trace.tr, line 3: snd_cwnd is 'ten'; allowed: a whole number from 0 to 4294967295"),
    ("trace.tr", " snd_una=",  " una=",
     "trace.tr, line 3: snd_una is nothing; allowed: a hexadecimal number of at most 32 bits"),
    ("trace.tr", "src=10.77.0.1:", "src=10.77.0.999:", "trace.tr, line 3: '10.77.0.999' is no IP address"),
    ("trace.tr", "[000] ..s2 ", "[000",
     "is no such line; allowed: a line of trace_pipe: comm-pid [cpu] flags seconds: event: fields"),
    ("postcards.tr", "dst_port=5201", "dst_port=75201",
     "postcards.tr, line 1: dst_port is '75201'; allowed: a whole number from 0 to 65535"),
    ("postcards.tr", ": postcard: ", ": postcart: ", "postcards.tr, line 1: "),
    ("config.json", '"id"', "id", "config.json: is no JSON: "),
]  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new", "answer"), BREAKS)
def test_text__that_is_broken_gets_one_line(tmp_path, recorded, capsys, name, old, new, answer):
    foreign.write_text(tmp_path / "run", *recorded)
    path = tmp_path / "run" / name
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new, 1))
    assert main(["import", f"FROM={tmp_path}/run", f"OUTPUT={tmp_path}/out"]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert answer in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ((), ["FROM is missing", "OUTPUT is missing"]),
        (("FROM=/nowhere", "OUTPUT=x"), ["/nowhere: is not there; allowed: a directory with trace.tr"]),
        (("FROM=x", "OUTPUT=x", "RATE=fast", "SPEED=1"), ["RATE", "SPEED is no parameter of import; allowed: FROM"]),
        (
            ("FROM=x", "OUTPUT=x", "RATE=0bit", "RTT=1ns", "BUF=0p", "CC=m$x$"),
            ["1bit to 1000tbit", "1us to 1000s", "1p to 1000000000p", "as in cubic"],
        ),
        (("FROM=x", "OUTPUT=x", "RATE=999999999999999999tbit"), ["RATE=999999999999999999tbit is out of bounds"]),
        (("FROM=postgresql:///x?host=/nowhere", "OUTPUT=x"), ["allowed: a running PostgreSQL"]),
    ],
)
def test_command__says_what_is_wrong(words, answer, capsys):
    assert command.main(list(words)) == 1
    err = capsys.readouterr().err
    assert len(err.splitlines()) == len(answer)
    assert all(part in err for part in answer)


def refused(source, output, capsys, *words) -> str:
    """The one line that it is refused with; nothing is left."""
    assert main(["import", f"FROM={source}", f"OUTPUT={output}", *CONDITIONS, *words]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), err.startswith("error: ")) == ("", 1, True)
    assert not Path(output).exists()
    return err


def test_files__that_are_there_twice_are_refused(tmp_path, recorded, capsys):
    run, out = tmp_path / "run", tmp_path / "out"
    foreign.write_text(run, *recorded)
    shutil.copytree(run, tmp_path / "copy")
    assert f"{run}/trace.tr: FROM names it, or a copy" in refused(f"{run}/trace.tr,{run}/trace.tr", out, capsys)
    (tmp_path / "copy/config.json").unlink()
    both = f"{run}/trace.tr,{tmp_path}/copy/trace.tr"
    assert "copy/trace.tr: FROM names it, or a copy of it, twice" in refused(both, out, capsys)
    (run / "trace.tr.gz").write_bytes(gzip.compress((run / "trace.tr").read_bytes()))
    assert "has trace.tr and trace.tr.gz; allowed: one of them" in refused(run, out, capsys)
    foreign.write_csv(tmp_path / "csv", foreign.tables(*recorded))
    (tmp_path / "csv/traces.csv.gz").write_bytes(gzip.compress((tmp_path / "csv/traces.csv").read_bytes()))
    assert "has traces as traces.csv and traces.csv.gz" in refused(tmp_path / "csv", out, capsys, EXPERIMENT)


@pytest.mark.parametrize("end", [".csv", ".csv.gz"])
def test_tables__of_a_directory_whose_name_is_a_pattern_are_its_own(tmp_path, recorded, end, monkeypatch):
    scratch = tmp_path / "it's [1]* tmp"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    for name in ("run?", "run1", "q[1]*", "q1"):
        foreign.write_csv(tmp_path / name, foreign.tables(*recorded))
        if end.endswith(".gz"):
            for path in (tmp_path / name).iterdir():
                path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
                path.unlink()
        (found,) = sources.read(sources.Asked([str(tmp_path / name)], tmp_path, foreign.EXPERIMENT))
        assert found.cards is not None
        assert len(found.cards.columns["mono_ns"]) == len(recorded[1].cards)


BAD_TABLES = [  # table, what becomes of its lines, the line that it is answered with
    ("postcard_traces", lambda text: text[:-4], "its last line has no end, so it was cut off; allowed: what"),
    ("postcard_traces", lambda text: "", "is empty; allowed: what"),
    ("traces", lambda text: text.replace("experiment_id", "experiment"), "traces has no column experiment_id; allowed"),
    (
        "experiments",
        lambda text: text.replace("another", foreign.EXPERIMENT),
        "is of 2 rows; allowed: one row for each",
    ),
    ("experiments", lambda text: text.replace("another", ""), "id None is of 1 rows; allowed: one row for each id"),
]


@pytest.mark.parametrize(("table", "change", "answer"), BAD_TABLES)
def test_tables__that_are_broken_get_one_line(tmp_path, recorded, capsys, table, change, answer):
    foreign.write_csv(tmp_path / "csv", foreign.tables(*recorded))
    path = tmp_path / f"csv/{table}.csv"
    path.write_text(change(path.read_text()))
    found = refused(tmp_path / "csv", tmp_path / "out", capsys, "EXPERIMENT=all")
    assert f"error: {path}" in found
    assert answer in found


def test_files__that_are_damaged_get_one_line(tmp_path, recorded, capsys):
    out = tmp_path / "out"
    foreign.write_text(tmp_path / "run", *recorded)
    whole = gzip.compress((tmp_path / "run/trace.tr").read_bytes())
    path = tmp_path / "trace.tr.gz"
    for damaged in (whole[:2000], whole[:30], whole[:2000] + b"????" + whole[2004:], whole[:12] + b"\xff" * 40):
        path.write_bytes(damaged)
        assert f"error: {path}: " in refused(path, out, capsys)
    found = foreign.tables(*recorded)
    foreign.write_dump(tmp_path / "dump", found)
    (tmp_path / "dump").write_text((tmp_path / "dump").read_text().replace("experiment_id", "experiment"))
    assert "traces has no column experiment_id" in refused(tmp_path / "dump", out, capsys, EXPERIMENT)
    foreign.write_csv(tmp_path / "csv", found)
    packed = gzip.compress((tmp_path / "csv/traces.csv").read_bytes())
    (tmp_path / "csv/traces.csv").unlink()
    (tmp_path / "csv/traces.csv.gz").write_bytes(packed[:-9])
    assert "traces.csv.gz: damaged: " in refused(tmp_path / "csv", out, capsys, EXPERIMENT)


def test_capture__with_a_time_beyond_all_is_used_up_to_there(tmp_path, recorded):
    """Of an interface whose times are in seconds."""
    cards = [(10**18, card[8:]) for card in simulate.stored_postcards(*recorded)[:9]]
    with (tmp_path / "c.pcapng").open("wb") as file:
        pcapng.write_head(file)
        frames = pcapng.datagrams(np.frombuffer(b"".join(c for _, c in cards), np.uint8).reshape(9, -1), 5577)
        times = np.array([10**9] * 8 + [1 << 60])
        file.write(pcapng.packets(frames, times).tobytes())
    data = bytearray((tmp_path / "c.pcapng").read_bytes())
    at = data.index(struct.pack("<HHB", 9, 1, 9))
    data[at + 4] = 0
    (tmp_path / "c.pcapng").write_bytes(data)
    found = captures.read(tmp_path / "c.pcapng")
    assert len(found.cards.columns["mono_ns"]) == 8
    assert "damaged or cut off: a time of" in str(found.damage)


CONFIGS = [
    ("mtu_bytes", "n/a", "a whole number from 576 to 65535"),
    ("mtu_bytes", 0.5, "a whole number from 576 to 65535"),
    ("num_flows", "two", "a whole number from 1 to 65535"),
    ("num_flows", True, "a whole number from 1 to 65535"),
    ("max_queue_depth_packets", "many", "a number from 0.001 to 1000000000"),
    ("action", "explode", "drop, ecn"),
    ("algorithm", "$\\frac$", "as in cubic"),
]


@pytest.mark.parametrize(("name", "value", "allowed"), CONFIGS)
def test_config__with_a_wrong_value_is_refused_by_its_name(tmp_path, recorded, capsys, name, value, allowed):
    foreign.write_text(tmp_path / "run", *recorded)
    path = tmp_path / "run/config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))
    assert main(["import", f"FROM={tmp_path}/run", f"OUTPUT={tmp_path}/out"]) == 1
    assert capsys.readouterr() == ("", f"error: {path}: {name} is {value!a}; allowed: {allowed}\n")
    assert not (tmp_path / "out").exists()


def test_source__without_any_data_is_refused(tmp_path, recorded, capsys):
    foreign.write_text(tmp_path / "run", *recorded)
    (tmp_path / "trace.tr").write_text("# tracer: nop\n")
    for source in (tmp_path / "run/config.json", tmp_path / "trace.tr"):
        assert main(["import", f"FROM={source}", f"OUTPUT={tmp_path}/out"]) == 1
        assert "neither postcards, nor events of a trace" in capsys.readouterr().err
        assert not (tmp_path / "out").exists()


def test_postcard__of_another_year_is_refused_and_the_directory_is_as_before(tmp_path, recorded, capsys):
    foreign.write_text(tmp_path / "run", *recorded)
    path = tmp_path / "run/postcards.tr"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, f"31600000.5{lines[-1][lines[-1].index(':') :]}"]) + "\n")
    words = ["import", f"FROM={tmp_path}/run", f"OUTPUT={tmp_path}/new/out", *CONDITIONS]
    assert main(words) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), "RTTs; allowed: at most 10000000: check RTT" in err) == ("", 1, True)
    assert not (tmp_path / "new").exists()
    assert main([*words, "WARMUP=200ms", "DURATION=1s"]) == 0
    summary = json.loads((tmp_path / "new/out/rep-1/summary.json").read_text())
    assert summary["arrivals"] > 1000


def test_analysis__that_fails_leaves_nothing(tmp_path, recorded, monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device")

    foreign.write_text(tmp_path / "run", *recorded)
    monkeypatch.setattr(derive_module, "render", full)
    words = ["import", f"FROM={tmp_path}/run", f"OUTPUT={tmp_path}/new/out", *CONDITIONS]
    assert main(words) == 1
    assert f"analysis: {tmp_path}/new/out/rep-1: cannot write: No space left" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    monkeypatch.setattr(derive_module, "render", lambda *_: "")
    assert main(words) == 0


def test_parsers__survive_anything(tmp_path, recorded):
    """Bytes changed, cut out and doubled at random: what comes of it is a run's data, or one line."""
    scenario, truth = recorded
    foreign.write_text(tmp_path / "run", scenario, truth)
    found = {name: (columns, rows[:30]) for name, (columns, rows) in foreign.tables(scenario, truth).items()}
    foreign.write_dump(tmp_path / "dump", found)
    foreign.write_csv(tmp_path / "csv", found)
    originals = {
        "trace.tr": (tmp_path / "run/trace.tr").read_bytes()[:4000],
        "postcards.tr": (tmp_path / "run/postcards.tr").read_bytes()[:4000],
        "cc.db": (tmp_path / "dump").read_bytes(),
        "own.pcap": pcap(
            tmp_path / "p", [(1, card[8:]) for card in simulate.stored_postcards(scenario, truth)[:20]], 5577
        ).read_bytes(),
    }
    chance = random.Random(11)
    read = refused = 0
    lines: list[str] = []
    for turn in range(240):
        name = list(originals)[turn % len(originals)]
        data = bytearray(originals[name])
        for _ in range(chance.randrange(1, 4)):
            at, size = chance.randrange(len(data)), chance.randrange(1, 40)
            kind = chance.randrange(4)
            if kind == 0:
                data[at] = chance.randrange(256)
            elif kind == 1:
                del data[at : at + size]
            elif kind == 2:
                data[at:at] = data[max(0, at - size) : at]
            else:
                data[at:at] = chance.choice([b"\t", b"\n", b"=", b"99999999999999999999", b"\\N", b"\x00", b"-1"])
        (tmp_path / name).write_bytes(data)
        try:
            for one in sources.read(sources.Asked([str(tmp_path / name)], tmp_path, foreign.EXPERIMENT)):
                parts = (one.cards, one.events, one.depths, one.conditions, one.source)
                command.write.write(_empty(tmp_path / "fuzzed"), *parts)
            read += 1
        except InputError as error:
            refused += 1
            lines.append(str(error))
    assert read > 40
    assert refused > 40
    assert [line for line in lines if "\n" in line] == []


def _empty(directory: Path) -> Path:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    return directory
