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

from analysis.arithmetic.unwrap import switch_time
from analysis.exporting import flent, telemetry_report
from analysis.importing.text import CARDS_UNKNOWN
from analysis.replay.derive import derive
from analysis.tests import simulate
from analysis.tests.documents import change
from analysis.tests.test_exporting import decode
from analysis.tests.test_target_limits import OFFSET_NS, as_bmv2
from bufferscope.__main__ import main
from lib import parquet
from wire import wire

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture
def analysed(fresh, undrawn):
    """A simulated repetition with tables, but without figures. Like runs of earlier versions, it has no digests."""
    directory = fresh()
    derive(directory)
    (directory / "digests.json").unlink()
    return directory


def export(run, kind, output) -> int:
    return main(["export", str(run), "--format", kind, "--output", str(output)])


def imported(directory: Path, unknown: list[str]) -> Path:
    spec = yaml.safe_load((directory / "spec.yaml").read_text())
    spec |= {"target": "imported", "imported": {"what": "x", "unknown_postcard_fields": unknown, "cell_bytes": None}}
    (directory / "spec.yaml").write_text(yaml.safe_dump(spec))
    return directory


def torn(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 6 // 10])


def test_damaged_files__are_refused_where_they_are_needed(analysed, tmp_path, capsys):
    def refused(kind, name, said):
        assert export(analysed, kind, tmp_path / name) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert said in line
        assert {path.name for path in tmp_path.iterdir()} == {"run"}

    raw = analysed / "postcards.bsp"
    whole = raw.read_bytes()
    torn(raw)
    for kind, name in (("pcapng", "x"), ("telemetry-report", "x"), ("flent", "x.flent.gz")):
        refused(kind, name, "postcards.bsp: damaged or cut off at byte ")
    raw.write_bytes(whole[:3000] + b"\xff\xfe\xfd\xfc" + whole[3004:])
    refused("pcapng", "x", "postcards.bsp: damaged or cut off at byte ")
    assert main(["replay", f"RUN={analysed}", "BUF=5p"]) == 1
    assert "postcards.bsp: damaged or cut off at byte " in capsys.readouterr().err
    assert not list(analysed.glob("*whatif*"))
    raw.write_bytes(whole)
    torn(table := analysed / "joined.parquet")
    for kind, name in (("csv", "x"), ("flent", "x.flent.gz")):
        refused(kind, name, f"error: {table}: is not a whole table: ")
    torn(analysed / "tcp.bst")
    refused("flent", "x.flent.gz", "tcp.bst: damaged or cut off at byte ")
    assert export(analysed, "pcapng", tmp_path / "x.pcapng") == 0  # a pcapng file needs no TCP trace


def test_damaged_documents__are_refused_instead_of_guessing_a_value(analysed, tmp_path, capsys):
    for name, content, said in (
        ("traffic.json", "[]", "traffic.json: is not a JSON object"),
        ("traffic.json", {"end_mono_ns": None, "flows": None}, "traffic.json: does not say end_mono_ns, flows"),
        ("traffic.json", {"flows": [7]}, "traffic.json: flows.0: "),
        ("switch.json", {"bottleneck_port": None}, "switch.json: does not say bottleneck_port"),
        ("environment.json", "", "environment.json: not readable as JSON: "),
    ):
        path = analysed / name
        whole = path.read_text()
        path.write_text(content if isinstance(content, str) else json.dumps(json.loads(whole) | content))
        assert export(analysed, "flent", tmp_path / "x.flent.gz") == 1
        assert main(["replay", f"RUN={analysed}", "BUF=5p"]) == 1
        lines = capsys.readouterr().err.splitlines()
        assert [said in line for line in lines] == [True, True], lines
        assert {path.name for path in tmp_path.iterdir()} == {"run"}
        assert not list(analysed.glob("*whatif*"))
        path.write_text(whole)


def test_switch_with_its_own_clock__is_exported_on_the_hosts_clock_or_refused(fresh, tmp_path, capsys):
    directory = as_bmv2(fresh())
    assert main(["replay", f"RUN={directory}"]) == 0
    # A capture imported again has the measurement window.
    assert export(directory, "pcapng", path := tmp_path / "cards.pcapng") == 0
    assert main(["import", f"FROM={path}", f"OUTPUT={tmp_path / 'again'}", "RATE=50mbit", "RTT=10ms"]) == 0
    summaries = [json.loads((each / "summary.json").read_text()) for each in (directory, tmp_path / "again" / "rep-1")]
    assert summaries[0]["arrivals"] == summaries[1]["arrivals"] > 1000
    assert export(directory, "telemetry-report", tmp_path / "x.pcapng") == 0
    rows, rx = cards(directory)
    fields = wire.POSTCARD.columns(rows)
    for at, reports in telemetry_report.encode(fields, switch_time(fields["enqueue_switch_ns"], rx, OFFSET_NS), 0):
        came = np.array([decode(bytes(report))["ingress_ns"] for report in reports])
        assert (rx[at] - came > 0).all()
        assert (rx[at] - came < simulate.Scenario().rtt_ns).all()
    change(directory, "switch", ("clock",), {"offset_ns": 0})
    (directory / "digests.json").unlink()
    assert export(directory, "telemetry-report", tmp_path / "other.pcapng") == 0
    assert (tmp_path / "x.pcapng").read_bytes() != (tmp_path / "other.pcapng").read_bytes()
    for clock in ({}, {"offset_ns": None}, {"offset_ns": "7"}, 7):
        change(directory, "switch", ("clock",), clock)
        capsys.readouterr()
        for kind, name in (("telemetry-report", "y"), ("flent", "y.flent.gz")):
            assert export(directory, kind, tmp_path / name) == 1
            (line,) = capsys.readouterr().err.splitlines()
            assert "switch.json" in line
            assert "clock" in line


def test_runs_not_valid__are_exported_with_a_warning(analysed, tmp_path, capsys):
    path = analysed / "summary.json"
    whole = json.loads(path.read_text())
    for text, said in (
        (json.dumps(whole | {"valid": False, "reasons": ["lost", "late"]}), "NOT VALID: lost (and 1 more)"),
        ("{", "summary.json cannot be read: "),
        (json.dumps(whole), ""),
    ):
        path.write_text(text)
        assert export(analysed, "csv", tmp_path / f"out-{len(text)}") == 0
        lines = capsys.readouterr().err.splitlines()
        (note,) = (line for line in lines if "has no digests of its raw files" in line)
        lines.remove(note)
        assert [said in line for line in lines] == [True] * bool(said)


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


def cards(directory: Path) -> tuple[np.ndarray, np.ndarray]:
    """Postcards as bytes, and when each was received."""
    blocks = wire.read_blocks((directory / "postcards.bsp").read_bytes(), 1)
    rows = np.frombuffer(b"".join(bytes(block.payload) for block in blocks), dtype=np.uint8)
    rows = rows.reshape(-1, wire.STORED_POSTCARD.itemsize)
    return rows[:, 8:], rows[:, :8].copy().view("<i8")[:, 0]


def test_fields_unknown_to_the_source__are_left_out_or_refused(fresh, tmp_path, capsys):
    unknown = imported(fresh(), sorted(CARDS_UNKNOWN))
    assert export(unknown, "telemetry-report", tmp_path / "x.pcapng") == 0
    rows, rx = cards(unknown)
    dropped = 0
    for _, reports in telemetry_report.encode(wire.POSTCARD.columns(rows), rx, 0, CARDS_UNKNOWN):
        for report in reports[::50]:
            decoded = decode(bytes(report))
            assert not decoded.keys() & {"in", "out", "latency", "ingress_ns", "egress_ns"}
            assert decoded["queue"] == 255
            dropped += decoded["dropped"]
    assert dropped > 0
    assert export(unknown, "pcapng", tmp_path / "y.pcapng") == 1
    assert "imported from postcards without " in capsys.readouterr().err


def test_flent__of_a_run_without_delays_or_flows(analysed, tmp_path, capsys):
    assert flent.data(analysed)["raw_values"][flent.PING]
    table = pl.read_parquet(analysed / "joined.parquet")
    table.with_columns(sojourn_ns=pl.lit(None, pl.Int64)).write_parquet(analysed / "joined.parquet")
    imported(analysed, ["sojourn_ns"])
    assert export(analysed, "flent", tmp_path / "x.flent.gz") == 0
    document = json.loads(gzip.decompress((tmp_path / "x.flent.gz").read_bytes()))
    assert set(document["results"][flent.PING]) == {None}
    change(analysed, "traffic", ("flows",), [])
    (analysed / "tcp.bst").write_bytes(b"")
    assert export(analysed, "flent", tmp_path / "y.flent.gz") == 1
    assert "no flows" in capsys.readouterr().err
