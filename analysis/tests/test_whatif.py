# SPDX-License-Identifier: MIT
"""A run's arrivals through another queue: the run's own settings change nothing, and another queue gives the results of
an independent model.
"""

import html
import json
import os
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

from analysis.figures import common
from analysis.read import columns
from analysis.read.flows import Flows
from analysis.read.load import load
from analysis.tests import damages, simulate
from analysis.tests.documents import change_spec
from analysis.whatif import CAVEAT, departures, figure, open_loop, queue
from bufferscope.__main__ import main
from lib.errors import InputError
from softswitch.tests.fifo_model import fifo


def whatif(directory, *words) -> tuple[pl.DataFrame, dict]:
    assert main(["replay", f"RUN={directory}", *words]) == 0
    made = max(directory.glob("whatif-*"), key=lambda path: int(path.name.partition("-")[2]))
    return pl.read_parquet(made / "queue.parquet"), json.loads((made / "summary.json").read_text())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("two_flows", ["BUF=20p"]),
        ("ipv6_bytes", ["BUF=22000b"]),
        ("ecn", ["MODE=ecn"]),
        ("tiny_buffer", ["BUF=2p", "RATE=50mbit"]),
    ],
)
def test_own_queue__changes_nothing(fresh, name, words, capsys, blank, monkeypatch):
    for module, rows in ((queue, "SLAB_PACKETS"), (columns, "SLAB_ROWS")):
        monkeypatch.setattr(module, rows, 300)
    table, summary = whatif(fresh(name), *words)
    assert summary["same_as_the_run"] is True
    assert summary["whatif_measures"] == summary["run_measures"]
    for column in ("depth_packets", "depth_bytes", "sojourn_ns", "dropped", "ce_marked"):
        assert table[column].equals(table[f"{column}_run"], check_names=False)
    assert len(table) == summary["packets"]
    out = capsys.readouterr().out
    assert "every depth, time, drop and mark is unchanged" in out
    assert out.index(CAVEAT) < out.index("drops")
    assert f"the command that made the run, with {' '.join(words)}" in out


def test_another_queue__equals_a_model_of_it(fresh, known_runs, blank):
    directory, known = fresh(), known_runs("two_flows")
    begin_ns = simulate.START_NS + known.scenario.warmup_ns
    dropped = [
        bool(c["flags"] & simulate.CARD["POSTCARD_DROPPED"]) for c in known.truth.cards if c["enqueue_ns"] >= begin_ns
    ]
    for buffer, rate in ((7, 50_000_000), (12, 61_234_567), (100_000_000, 50_000_000)):
        table, summary = whatif(directory, f"BUF={buffer}p", f"RATE={rate}bit")
        arrivals = list(zip(table["enqueue_mono_ns"].to_list(), table["packet_bytes"].to_list(), strict=True))
        model = fifo(arrivals, rate, admits=lambda _, packets, size: packets < buffer)  # noqa: B023  called at once
        assert table["depth_packets"].to_list() == [packet.depth_packets for packet in model]
        assert table["dropped"].to_list() == [packet.dropped for packet in model]
        assert table["sojourn_ns"].to_list() == [
            0 if packet.departure_ns is None else packet.departure_ns - packet.arrival_ns for packet in model
        ]
        assert summary["same_as_the_run"] is False
        assert summary["run_measures"]["drops"] == sum(dropped)
    assert summary["whatif_measures"]["drops_of_the_whole_run"] == 0


def test_results__stand_beside_each_other_and_leave_the_run_alone(fresh, blank):
    directory = fresh()
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    whatif(directory, "BUF=0.5bdp")
    _, summary = whatif(directory, "MODE=ecn", "ECN_THRESHOLD=4p")
    assert summary["asked"] == {"MODE": "ecn", "ECN_THRESHOLD": "4p"}
    assert summary["ecn_capable_packets"] == 0
    # No packet is ECN-capable, so every packet that finds 4 packets is dropped instead of marked.
    assert summary["whatif_measures"]["queue_depth_packets"]["max"] == 4
    assert {path.name for path in directory.iterdir()} == {*before, "whatif-1", "whatif-2"}
    assert all((directory / name).read_bytes() == data for name, data in before.items())


def test_whatif__says_what_our_runs_give_with_senders_that_react(fresh, known_runs, capsys, blank):
    """Only where they tell: long flows of one algorithm, tail drop, a buffer that runs have."""
    directory = fresh()
    for words, is_said in ((["BUF=20p"], True), (["BUF=100000p"], False), (["BUF=20p", "MODE=ecn"], False)):
        whatif(directory, *words)
        assert ("with senders that react, by our published runs: " in capsys.readouterr().out) == is_said, words


def test_run_with_a_queue_that_a_replay_lacks__needs_a_mode(fresh, capsys, blank):
    directory = fresh()
    change_spec(directory, queue="codel target 5ms")
    assert main(["replay", f"RUN={directory}", "BUF=5p"]) == 1
    assert "MODE" in capsys.readouterr().err
    assert not list(directory.glob("*whatif*"))
    _, summary = whatif(directory, "BUF=5p", "MODE=tail-drop")
    assert "Linux's codel target 5ms" in summary["setting"]["run"]
    assert "codel" not in summary["setting"]["whatif"]


@pytest.mark.parametrize("slab_rows", [1, 7, columns.SLAB_ROWS])
def test_arrivals_sent_again__come_back_in_the_rows_of_the_run(fresh, monkeypatch, slab_rows):
    """Although another queue gives packets of one ns other depths, and a virtual machine wakes some ns apart."""
    monkeypatch.setattr(columns, "SLAB_ROWS", slab_rows)
    run = load(fresh("two_flows"))
    recorded = {name: column[:] for name, column in run.postcards.items()}
    packets = len(recorded["flags"])
    recorded["enqueue_mono_ns"] -= recorded["enqueue_mono_ns"] % 3_000_000  # so that several packets have the same ns
    path = run.directory / departures.FILE
    departures.write(path, run, recorded)
    sent = np.fromfile(path, departures.PACKET)
    assert (sent["due_ns"] == recorded["enqueue_mono_ns"] - recorded["enqueue_mono_ns"][0]).all()
    assert (sent["ip_bytes"] + 14 == recorded["packet_bytes"]).all()
    order = np.lexsort((-np.arange(packets), recorded["enqueue_mono_ns"]))  # those of one ns: backwards
    assert (recorded["flow"][order] != recorded["flow"]).any()
    back = {name: column[order] for name, column in recorded.items()} | {"flow": sent["flow"][order].astype(np.uint16)}
    back["enqueue_mono_ns"] = back["enqueue_mono_ns"] + 10**9 + back["enqueue_mono_ns"] // 3_000_000 % 2
    back["sojourn_ns"] = order
    words = np.array([[0], [0], [0], [0], [17 << 32 | 5201]], np.uint64) + np.zeros(len(run.flows) + 1, np.uint64)
    words[-1] += np.arange(len(run.flows) + 1, dtype=np.uint64) + np.uint64(4000) << np.uint64(16)
    again = replace(run, postcards=back, flows=Flows(words))
    cards = departures.postcards(again, 4000, 5201, run, recorded)
    rows = cards["sojourn_ns"][:]  # the row of the run's packet, or of one that looks the same
    assert (recorded["flow"][rows] == recorded["flow"]).all()
    assert (recorded["packet_bytes"][rows] == recorded["packet_bytes"]).all()
    assert (np.sort(rows) == np.arange(packets)).all()
    for lost in (
        replace(again, flows=Flows(words[:, :1])),
        replace(again, postcards=back | {"enqueue_mono_ns": order}),
    ):
        with pytest.raises(InputError):
            departures.postcards(lost, 4000, 5201, run, recorded)


def test_arrivals_sent_again__last_until_a_queue_without_a_limit_is_empty(fresh, monkeypatch):
    run = load(fresh("two_flows"))
    times, sizes = (run.postcards[name][:].tolist() for name in ("enqueue_mono_ns", "packet_bytes"))
    monkeypatch.setattr(columns, "SLAB_ROWS", 7)
    for rate_bps in (100_000, 10**7, 10**11):
        end_ns = 0
        for at_ns, size in zip(times, sizes, strict=True):
            end_ns = max(end_ns, at_ns - times[0]) - (-(size + 24) * 8 * 10**9 // rate_bps)
        assert departures.sent(run.postcards, rate_bps) == (max(sizes) - 14, end_ns)


@pytest.mark.filterwarnings("error")
def test_figure__of_a_queue_without_drops_has_room_for_its_panels(fresh):
    run = load(fresh())
    cards = {name: column[:] for name, column in run.postcards.items()}
    cards["flags"][:] = 0
    facts = {"text": "", "valid": True, "unit": common.unit_of(run.experiment), "warmup_s": 0.0, "end_s": 1.0}
    figure.draw(run.directory, facts, [("", 20, cards), ("", 20, run.postcards)], simulate.START_NS)


def test_figure__shows_the_whole_of_a_longer_queue_behind_a_buffer_that_it_never_fills(fresh, monkeypatch):
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    run = load(fresh("tiny_buffer"))
    longer = {name: column[:] for name, column in run.postcards.items()}
    longer["depth_packets"] *= 9
    facts = {"text": "", "valid": True, "unit": common.unit_of(run.experiment), "warmup_s": 0.0, "end_s": 1.0}
    figure.draw(run.directory, facts, [("", 2, run.postcards), ("", 10**6, longer)], simulate.START_NS)
    deepest = longer["depth_packets"].max()
    for ax in drawn[0].axes:
        assert deepest < ax.get_ylim()[1] < 2 * deepest


def test_whatif__names_each_mistake(fresh, capsys):
    directory = fresh()
    for words in (
        ["BUF=99999999999p"], ["BUF=20"], ["MODE=rde"], ["ECN_THRESHOLD=5p"], ["MODE=ecn", "ECN_THRESHOLD=99p"],
        ["MODE=ecn", "ECN_THRESHOLD=5kb"], ["BUF=2p..20p", "QUEUE=linux:codel"],
    ):  # fmt: skip
        assert main(["replay", f"RUN={directory}", *words]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert words[-1].partition("=")[0] in line or "(99999999999 packets" in line
        assert not list(directory.glob("*whatif*"))
    change_spec(directory, imported={"what": "x", "unknown_postcard_fields": ["sojourn_ns"]})
    assert main(["replay", f"RUN={directory}", "BUF=5p"]) == 1
    assert "was imported from postcards without arrival times" in capsys.readouterr().err


def test_whatif__whose_report_cannot_be_replaced_leaves_nothing(fresh, capsys, blank, monkeypatch):
    directory = fresh()
    assert main(["replay", f"RUN={directory}"]) == 0
    before = damages.files(directory)
    rename = os.rename

    def fails(name, *places, **how):
        if name == "report.html":
            raise OSError(28, "No space left on device")
        rename(name, *places, **how)

    monkeypatch.setattr(os, "rename", fails)
    assert main(["replay", f"RUN={directory}", "BUF=5p"]) == 1
    assert "No space left on device; nothing was written" in capsys.readouterr().err
    monkeypatch.undo()
    assert damages.files(directory) == before


def test_report__lists_what_ifs_and_a_replay_makes_the_same_page(fresh, capsys, blank):
    directory = fresh()
    whatif(directory, "BUF=5p")  # the run was never analysed, so it has no page to refresh
    assert not (directory / "report.html").exists()
    assert main(["replay", f"RUN={directory}"]) == 0
    assert (directory / "report.html").read_text().count("/queue.svg") == 1
    _, summary = whatif(directory, "BUF=0.5bdp", "RATE=60mbit")
    (directory / "whatif-7").mkdir()
    (directory / "whatif-7/summary.json").write_text(json.dumps(summary | {"whatif_measures": {"drops": "x"}}))
    assert main(["replay", f"RUN={directory}"]) == 0
    page = html.unescape((directory / "report.html").read_text())
    assert page.count("/queue.svg") == 2
    assert f'<td class="n">{summary["whatif_measures"]["drops"]}</td>' in page
    assert CAVEAT in page
    capsys.readouterr()
    assert main(["replay", f"RUN={directory}"]) == 0
    assert "files are byte for byte what they were" in capsys.readouterr().out


def test_curve__has_what_the_whatif_of_each_length_has(fresh, blank, capsys):
    directory = fresh()
    assert main(["replay", f"RUN={directory}", "BUF=2p..0.5bdp", "RATE=61234567bit"]) == 0
    out = capsys.readouterr().out
    points = json.loads((directory / "curve-1/summary.json").read_text())["points"]
    assert pl.read_csv(directory / "curve-1/curve.csv").to_dicts() == [pytest.approx(point) for point in points]
    assert out.index(CAVEAT) < out.index("link used")
    for point in (points[0], points[len(points) // 2], points[-1]):
        _, summary = whatif(directory, f"BUF={point['packets']}p", "RATE=61234567bit")
        measures = summary["whatif_measures"]
        assert (point["arrivals"], point["drops"]) == (measures["arrivals"], measures["drops"])
        assert point["utilization"] == pytest.approx(measures["utilization"]["mean"], rel=1e-5)
        for name in ("p50", "p99", "max"):
            assert point[f"delay_{name}_ms"] == pytest.approx(measures["queue_delay_ns"][name] / 1e6, rel=0.01)
    assert [p["loss"] for p in points] == sorted((p["loss"] for p in points), reverse=True)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["BUF=9p..2p"], "BUF=9p..2p is from 9 to 2 packets; allowed: the smaller first"),
        (["BUF=2p..9p", "MODE=ecn"], "MODE=ecn has no curve; allowed with BUF=2p..9p: MODE=tail-drop, or a single BUF"),
        (["BUF=2p.."], "BUF=2p.. is not a number with a unit"),
    ],
)
def test_curve__that_cannot_be_is_refused(fresh, words, problem, capsys):
    directory = fresh()
    assert main(["replay", f"RUN={directory}", *words]) == 1
    assert problem in capsys.readouterr().err
    assert not list(directory.glob("curve-*"))


def test_open_loop__tells_the_errors_of_the_nearest_runs():
    """The page has the numbers of the table."""
    rows = open_loop.near(5, 0.99, 0.1)
    assert {(row.flows, row.load) for row in rows} == {(4, 1)}
    assert open_loop.near(5, 0.7, 0.1)[0].load == 0.8
    spread = open_loop.spread(5, 0.99, 0.1)
    assert spread
    errors = [each.utilization - each.utilization_whatif for each in open_loop.rows() if each.flows]
    assert spread.utilization == (min(errors), max(errors))
    assert open_loop.shown(rows, "loss_whatif") in open_loop.text(rows)
    page = (open_loop.TABLE.parents[1] / "your-capture.md").read_text()
    for each in open_loop.rows():
        rows = open_loop.near(each.flows or 1, each.load, each.bdp)
        cells = [open_loop.shown(rows, name) for name in ("loss_whatif", "loss", "utilization_whatif", "utilization")]
        assert "| {}, {} | {}, {} |".format(*cells) in page
