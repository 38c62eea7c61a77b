# SPDX-License-Identifier: MIT
"""Exports and what-ifs of runs that are damaged, not valid, or lack fields: each is refused or noted, never silent."""

import gzip
import json
import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml

from analysis import derive as derive_module
from analysis.exporting import flent, telemetry_report
from analysis.importing.text import CARDS_UNKNOWN
from analysis.packets import card_columns
from analysis.tests import simulate
from analysis.tests.test_exporting import decode
from analysis.tests.test_targets import OFFSET_NS, as_bmv2
from analysis.unwrap import switch_time
from bufferscope.__main__ import main
from lib import parquet
from wire import wire


@pytest.fixture
def analysed(fresh, monkeypatch):
    """A simulated repetition with tables, but without figures. Like runs of earlier versions, it has no digests."""
    monkeypatch.setattr(derive_module, "draw_all", lambda *_: [])
    monkeypatch.setattr(derive_module, "render", lambda *_: "")
    directory = fresh()
    derive_module.derive(directory)
    (directory / "digests.json").unlink()
    return directory


def export(run, kind, output) -> int:
    return main(["export", str(run), "--format", kind, "--output", str(output)])


def imported(directory: Path, unknown: list[str]) -> Path:
    spec = yaml.safe_load((directory / "spec.yaml").read_text())
    spec |= {"target": "imported", "imported": {"what": "x", "unknown_postcard_fields": unknown, "cell_bytes": None}}
    (directory / "spec.yaml").write_text(yaml.safe_dump(spec))
    return directory


def torn(data: bytes) -> bytes:
    return data[: len(data) * 6 // 10]


def overwritten(data: bytes) -> bytes:
    return data[:3000] + b"\xff\xfe\xfd\xfc" + data[3004:]


@pytest.mark.parametrize("damage", [torn, overwritten])
def test_damaged_postcards__are_refused_by_every_export_and_what_if(analysed, tmp_path, capsys, damage):
    raw = analysed / "postcards.bsp"
    raw.write_bytes(damage(raw.read_bytes()))
    for kind, name in (("pcapng", "x"), ("telemetry-report", "x"), ("flent", "x.flent.gz")):
        assert export(analysed, kind, tmp_path / name) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert "postcards.bsp: damaged or cut off at byte " in line
        assert not (tmp_path / name).exists()
    assert main(["replay", f"RUN={analysed}", "BUF=5p"]) == 1
    assert "postcards.bsp: damaged or cut off at byte " in capsys.readouterr().err
    assert not list(analysed.glob("*whatif*"))


def test_damaged_trace__is_refused_where_windows_are_shown(analysed, tmp_path, capsys):
    raw = analysed / "tcp.bst"
    raw.write_bytes(torn(raw.read_bytes()))
    assert export(analysed, "flent", tmp_path / "x.flent.gz") == 1
    assert "tcp.bst: damaged or cut off at byte " in capsys.readouterr().err
    assert export(analysed, "pcapng", tmp_path / "x.pcapng") == 0  # a pcapng file needs no TCP trace


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("traffic.json", "{", "traffic.json: not readable as JSON: "),
        ("traffic.json", "[]", "traffic.json: is not a JSON object"),
        ("traffic.json", None, "traffic.json: missing"),
        ("traffic.json", {"start_mono_ns": "soon"}, "traffic.json: does not say start_mono_ns"),
        ("traffic.json", {"end_mono_ns": None, "flows": {}}, "traffic.json: does not say end_mono_ns, flows"),
        ("traffic.json", {"flows": [7]}, "traffic.json: a flow is malformed"),
        ("switch.json", "{", "switch.json: not readable as JSON: "),
        ("switch.json", {"bottleneck_port": None}, "switch.json: does not say bottleneck_port"),
        ("environment.json", "", "environment.json: not readable as JSON: "),
        ("tcp.bst", None, "tcp.bst: missing"),
    ],
)
def test_damaged_documents__are_refused_instead_of_guessing_a_value(analysed, tmp_path, capsys, name, content, said):
    path = analysed / name
    if content is None:
        path.unlink()
    else:
        text = content if isinstance(content, str) else json.dumps(json.loads(path.read_text()) | content)
        path.write_text(text)
    assert json.loads((analysed / "summary.json").read_text())["valid"]  # written before the damage
    assert export(analysed, "flent", tmp_path / "x.flent.gz") == 1
    assert main(["replay", f"RUN={analysed}", "BUF=5p"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [said in line for line in lines] == [True, True], lines
    assert {path.name for path in tmp_path.iterdir()} == {"run"}
    assert not list(analysed.glob("*whatif*"))


def test_switch_with_its_own_clock__is_refused_without_the_clocks_offset(fresh, tmp_path, capsys):
    directory = as_bmv2(fresh())
    path = directory / "switch.json"
    switch = json.loads(path.read_text())
    for clock in ({}, {"offset_ns": None}, {"offset_ns": "7"}, 7):
        path.write_text(json.dumps(switch | {"clock": clock}))
        for kind, name in (("telemetry-report", "x"), ("flent", "x.flent.gz")):
            assert export(directory, kind, tmp_path / name) == 1
            (line,) = capsys.readouterr().err.splitlines()
            assert "switch.json" in line
            assert "what the switch's clock showed" in line


def test_imported_run__with_a_damaged_document_is_one_line(analysed, tmp_path, capsys):
    imported(analysed, [])
    for name in ("collector", "tracer", "switch", "idle_rtt"):  # an importer writes none of these
        (analysed / f"{name}.json").unlink()
    assert export(analysed, "flent", tmp_path / "x.flent.gz") == 0
    derive_module.derive(analysed, force=True)
    sound = json.loads((analysed / "summary.json").read_text())["reasons"]
    (analysed / "traffic.json").write_text("{")
    assert export(analysed, "flent", tmp_path / "y.flent.gz") == 1
    assert "traffic.json: not readable as JSON" in capsys.readouterr().err
    derive_module.derive(analysed, force=True)
    reasons = json.loads((analysed / "summary.json").read_text())["reasons"]
    assert [reason.partition(":")[0] for reason in reasons if reason not in sound] == ["traffic.json"]


@pytest.mark.parametrize(
    ("summary", "said"),
    [
        ({"valid": False, "reasons": ["lost", "late"]}, "NOT VALID: lost (and 1 more)"),
        ("{", "summary.json cannot be read: "),
        (None, "is not analysed, so its validity is unknown"),
        ({"valid": True, "reasons": []}, None),
    ],
)
def test_runs_not_valid__are_exported_with_a_warning(analysed, tmp_path, capsys, summary, said):
    (analysed / "report.html").unlink()
    path = analysed / "summary.json"
    if summary is None:
        path.unlink()
    else:
        path.write_text(summary if isinstance(summary, str) else json.dumps(json.loads(path.read_text()) | summary))
    assert export(analysed, "csv", tmp_path / "out") == 0
    assert main(["replay", f"RUN={analysed}", "BUF=5p"]) == 0
    lines = capsys.readouterr().err.splitlines()
    notes = [line for line in lines if line.startswith("note: ")]
    assert ["has no digests of its raw files" in line for line in notes] == [True, True]
    lines = [line for line in lines if line not in notes]
    assert [said in line for line in lines] == [True, True] if said else lines == []


def test_pcapng__of_a_switch_with_its_own_clock_has_the_measurement_window(fresh, tmp_path):
    directory, path = as_bmv2(fresh()), tmp_path / "cards.pcapng"
    assert main(["replay", f"RUN={directory}"]) == 0
    assert export(directory, "pcapng", path) == 0
    words = ("RATE=50mbit", "RTT=10ms")
    assert main(["import", f"FROM={path}", f"OUTPUT={tmp_path / 'again'}", *words]) == 0
    summaries = [json.loads((each / "summary.json").read_text()) for each in (directory, tmp_path / "again" / "rep-1")]
    assert summaries[0]["arrivals"] == summaries[1]["arrivals"] > 1000


@pytest.mark.parametrize("kind", ["csv", "parquet", "flent"])
def test_tables__that_were_cut_off_are_one_line(analysed, tmp_path, capsys, kind):
    table = analysed / "joined.parquet"
    table.write_bytes(torn(table.read_bytes()))
    assert export(analysed, kind, tmp_path / "x.flent.gz") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {table}: is not a whole table: ")
    assert {path.name for path in tmp_path.iterdir()} == {"run"}


def test_tables__with_any_byte_flipped_are_read_or_refused(analysed):
    """Some damage makes polars panic, and a panic is not an Exception. Without digests, nothing else detects damage."""
    table, chance = analysed / "joined.parquet", random.Random(1)
    whole, refused = table.read_bytes(), 0
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(8):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        table.write_bytes(data)
        try:
            parquet.read(table)
        except pl.exceptions.PolarsError:
            refused += 1
    assert refused > 100


def test_flent__of_a_run_without_flows_is_one_line(analysed, tmp_path, capsys):
    traffic = json.loads((analysed / "traffic.json").read_text())
    (analysed / "traffic.json").write_text(json.dumps(traffic | {"flows": []}))
    (analysed / "tcp.bst").write_bytes(b"")
    assert export(analysed, "flent", tmp_path / "x.flent.gz") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "no flows" in line


def test_telemetry_report__has_times_of_the_hosts_clock(fresh, tmp_path, capsys):
    directory = as_bmv2(fresh())
    assert export(directory, "telemetry-report", tmp_path / "x.pcapng") == 0
    (switch := directory / "switch.json").write_text(
        json.dumps(json.loads(switch.read_text()) | {"clock": {"offset_ns": 0}})
    )
    assert export(directory, "telemetry-report", tmp_path / "other.pcapng") == 0
    assert (tmp_path / "x.pcapng").read_bytes() != (tmp_path / "other.pcapng").read_bytes()
    rows, rx = cards(directory)
    fields = card_columns(rows)
    for at, reports in telemetry_report.encode(fields, switch_time(fields["enqueue_switch_ns"], rx, OFFSET_NS), 0):
        came = np.array([decode(bytes(report))["ingress_ns"] for report in reports])
        assert (rx[at] - came > 0).all()
        assert (rx[at] - came < simulate.Scenario().rtt_ns).all()
    switch.write_text("{}")
    assert export(directory, "telemetry-report", tmp_path / "third.pcapng") == 1
    assert "switch.json: does not say what the switch's clock showed" in capsys.readouterr().err


def cards(directory: Path) -> tuple[np.ndarray, np.ndarray]:
    """Postcards as bytes, and when each was received."""
    blocks = wire.read_blocks((directory / "postcards.bsp").read_bytes(), 1)
    rows = np.frombuffer(b"".join(bytes(block.payload) for block in blocks), dtype=np.uint8)
    rows = rows.reshape(-1, wire.STORED_POSTCARD.itemsize)
    return rows[:, 8:], rows[:, :8].copy().view("<i8")[:, 0]


def test_telemetry_report__leaves_out_fields_unknown_to_the_source(fresh, tmp_path):
    unknown = imported(fresh(), sorted(CARDS_UNKNOWN))
    assert export(unknown, "telemetry-report", tmp_path / "x.pcapng") == 0
    rows, rx = cards(unknown)
    dropped = 0
    for _, reports in telemetry_report.encode(card_columns(rows), rx, 0, CARDS_UNKNOWN):
        for report in reports[::50]:
            decoded = decode(bytes(report))
            assert not decoded.keys() & {"in", "out", "latency", "ingress_ns", "egress_ns"}
            assert decoded["queue"] == 255
            dropped += decoded["dropped"]
    assert dropped > 0


def test_pcapng__of_postcards_with_unknown_fields_is_refused(fresh, tmp_path, capsys):
    assert export(imported(fresh(), ["sojourn_ns", "policy"]), "pcapng", tmp_path / "x.pcapng") == 1
    assert "imported from postcards without policy, sojourn_ns" in capsys.readouterr().err


def test_flent__has_no_ping_without_the_queueing_delay(analysed, tmp_path):
    assert flent.data(analysed)["raw_values"][flent.PING]
    table = pl.read_parquet(analysed / "joined.parquet")
    table.with_columns(sojourn_ns=pl.lit(None, pl.Int64)).write_parquet(analysed / "joined.parquet")
    imported(analysed, ["sojourn_ns"])
    assert export(analysed, "flent", tmp_path / "x.flent.gz") == 0
    document = json.loads(gzip.decompress((tmp_path / "x.flent.gz").read_bytes()))
    assert set(document["results"][flent.PING]) == {None}
    assert document["raw_values"][flent.PING] == []
