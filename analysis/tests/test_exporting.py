# SPDX-License-Identifier: MIT
"""Exports have the data of the run, and other programs read them: DuckDB, Wireshark (tshark) and Flent."""

import gzip
import json
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest

from analysis import derive as derive_module
from analysis.capture import Capture
from analysis.exporting import flent, telemetry_report
from analysis.importing import captures
from analysis.packets import card_columns
from analysis.tests import simulate
from analysis.unwrap import switch_time
from bufferscope.__main__ import main
from wire import wire

ROOT = Path(__file__).resolve().parents[2]
TSHARK = shutil.which("tshark") or ""
FLENT = Path(sys.executable).with_name("flent")  # from requirements-dev.txt
CARD = simulate.CARD
# Columns whose names say enough, so schema.json has no meaning for them.
SPEAK_FOR_THEMSELVES = {
    "version", "ingress_port", "queue_id", "ip_protocol", "tcp_seq", "tcp_ack", "cpu", "packets_out",
    "retrans_out", "sacked_out", "lost_out", "snd_una", "cwnd_packets", "ssthresh_packets", "snd_wnd_bytes",
    "rcv_wnd_bytes", "mss_bytes", "rate_interval_us",
}  # fmt: skip


@pytest.fixture(scope="module")
def analysed(known_runs, tmp_path_factory):
    """A simulated repetition with its tables, but without figures and page."""
    patch = pytest.MonkeyPatch()
    patch.setattr(derive_module, "draw_all", lambda *_: [])
    patch.setattr(derive_module, "render", lambda *_: "")
    directory = Path(shutil.copytree(known_runs("two_flows").directory, tmp_path_factory.mktemp("export") / "rep-1"))
    derive_module.derive(directory)
    patch.undo()
    return directory


def query(text: str) -> list[tuple]:
    with duckdb.connect() as connection:
        return connection.execute(text).fetchall()


def export(run, kind, output) -> Path:
    assert main(["export", str(run), "--format", kind, "--output", str(output)]) == 0
    return Path(output)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables__are_all_there_with_their_meaning(analysed, tmp_path, kind):
    output = export(analysed.parent, kind, tmp_path / "out")  # a run with one repetition is that repetition
    schema = json.loads((output / "schema.json").read_text())
    assert set(schema) == {"postcards", "tcp", "joined", "distributions"}
    for name, table in schema.items():
        stored = pl.read_parquet(analysed / f"{name}.parquet")
        read = f"read_{kind}('{output / table['file']}')"
        ((count,),) = query(f"select count(*) from {read}")
        columns = [column for column, *_ in query(f"describe select * from {read}")]
        assert (count, columns) == (len(stored), stored.columns)
        assert list(table["columns"]) == columns
        unsaid = [column for column, about in table["columns"].items() if not about["meaning"]]
        assert set(unsaid) <= SPEAK_FOR_THEMSELVES
    ((total,),) = query(f"select sum(depth_packets) from read_{kind}('{output}/postcards.{kind}')")
    assert total == pl.read_parquet(analysed / "postcards.parquet")["depth_packets"].cast(pl.Int64).sum()


def test_pcapng__is_every_postcard_and_can_be_imported_again(analysed, tmp_path):
    output = export(analysed, "pcapng", tmp_path / "cards.pcapng")
    captured = captures.read(output)
    assert (captured.others, captured.damage) == (0, None)
    stored = np.frombuffer(
        b"".join(bytes(block.payload) for block in wire.read_blocks((analysed / "postcards.bsp").read_bytes(), 1)),
        wire.STORED_POSTCARD,
    )
    with Capture(output) as capture:
        real = np.concatenate([frames.real_ns for frames in capture.batches()])
    received = stored["rx_mono_ns"].astype(np.int64)
    assert np.array_equal(real, received + simulate.REALTIME_MINUS_MONO_NS)
    # The import takes the shortest transit time, here 30 us, as zero.
    assert np.array_equal(np.sort(captured.cards.columns["mono_ns"]), np.sort(received) - 30_000)
    for name in ("card_seq", "depth_packets", "tcp_seq"):
        assert sorted(captured.cards.columns[name]) == sorted(stored[name])


NUMBERS = (
    "utilization", "goodput_bps", "queue_depth_packets", "queue_delay_ns", "drops", "marks", "arrivals", "jain_index",
    "queue_nonempty_fraction", "buffer_packets", "bdp_packets", "measured_s",
)  # fmt: skip


def test_pcapng__imported_again_has_the_numbers_of_the_original(analysed, tmp_path, capsys):
    output = export(analysed, "pcapng", tmp_path / "cards.pcapng")
    assert main(["import", f"FROM={output}", f"OUTPUT={tmp_path / 'again'}"]) == 0
    assert "middle third" not in capsys.readouterr().out
    original, again = (
        json.loads((directory / "summary.json").read_text()) for directory in (analysed, tmp_path / "again/rep-1")
    )
    assert {name: again[name] for name in NUMBERS} == {name: original[name] for name in NUMBERS}
    # WARMUP and DURATION override the part that the file names.
    assert main(["import", f"FROM={output}", f"OUTPUT={tmp_path / 'part'}", "WARMUP=100ms", "DURATION=200ms"]) == 0
    assert json.loads((tmp_path / "part/rep-1/summary.json").read_text())["measured_s"] == pytest.approx(0.2)


def test_pcapng__its_description_yields_to_a_config_file_in_either_order(analysed, tmp_path, capsys):
    output, config = export(analysed, "pcapng", tmp_path / "cards.pcapng"), tmp_path / "config.json"
    config.write_text(json.dumps({"cc_algo": "bbr"}))
    for number, sources in enumerate(([output, config], [config, output])):
        again = tmp_path / f"again-{number}"
        assert main(["import", f"FROM={sources[0]},{sources[1]}", f"OUTPUT={again}"]) == 0
        assert (
            "the description in cards.pcapng is ignored, because FROM also names config.json" in capsys.readouterr().out
        )
        document = json.loads((again / "rep-1/environment.json").read_text())
        assert document["imported"]["experiment"] == {"cc_algo": "bbr"}


def test_pcapng__without_a_description_says_that_the_middle_third_counts(analysed, tmp_path, capsys):
    output = export(analysed, "pcapng", tmp_path / "cards.pcapng")
    data = output.read_bytes()
    size = int.from_bytes(data[4:8], "little")
    words = [(28).to_bytes(4, "little")] * 2
    output.write_bytes(data[:4] + words[0] + data[8:24] + words[1] + data[size:])  # drops the section header's options
    assert main(["import", f"FROM={output}", f"OUTPUT={tmp_path / 'again'}"]) == 0
    said = capsys.readouterr().out
    assert "only the middle third of the source counts" in said
    assert "the source states no rate: 10 Gb/s is assumed, and utilization and the BDP depend on it; set RATE= " in said
    assert "the source states no RTT: 1.2 ms is assumed, and the BDP depends on it; set RTT= " in said


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [(b'"rate_bps": ', b'"rate_bps":-', "rate_bps is -"), (b'{"rate_bps"', b'["rate_bps"', "is damaged; export"),
     (b'"window_ns": ', b'"window_ns":"', "is damaged; export")],
)  # fmt: skip
def test_pcapng__with_a_wrong_description_is_refused_in_one_line(analysed, tmp_path, capsys, old, new, says):
    output = export(analysed, "pcapng", tmp_path / "cards.pcapng")
    data = output.read_bytes()
    assert old in data
    at = data.index(old)
    changed = data[:at] + new + data[at + len(old) + (len(new) - len(old)) :]  # the file keeps its length
    output.write_bytes(changed)
    capsys.readouterr()
    assert main(["import", f"FROM={output}", f"OUTPUT={tmp_path / 'again'}"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line
    assert not (tmp_path / "again").exists()


def test_dissector__is_current():
    done = subprocess.run(
        [sys.executable, "-c", "from wire.dissector import lua; print(lua(), end='')"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (ROOT / "wire/postcard.lua").read_text() == done.stdout, "run: .venv/bin/python -m wire.dissector"


@pytest.mark.skipif(not TSHARK, reason="no tshark here (Debian: tshark)")
def test_dissector__shows_every_field_in_wireshark(analysed, tmp_path):
    output = export(analysed, "pcapng", tmp_path / "cards.pcapng")
    names = [name for name, bits in wire.POSTCARD.fields if bits != 128]
    wanted = [word for name in names for word in ("-e", f"bufferscope.{name}")]
    done = subprocess.run(
        [TSHARK, "-X", f"lua_script:{ROOT}/wire/postcard.lua", "-o", "ip.check_checksum:TRUE", "-r", output, "-T",
         "fields",
         "-e", "ip.checksum.status", "-e", "frame.time_epoch", "-e", "bufferscope.src_addr", *wanted],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    stored = [
        bytes(block.payload)[at : at + wire.STORED_POSTCARD.itemsize]
        for block in wire.read_blocks((analysed / "postcards.bsp").read_bytes(), 1)
        for at in range(0, len(block.payload), wire.STORED_POSTCARD.itemsize)
    ]
    assert len(rows) == len(stored)
    for row, card in list(zip(rows, stored, strict=True))[::97]:
        fields = wire.POSTCARD.decode(card[8:])
        assert [int(value, 0) for value in row[3:]] == [fields[name] for name in names]
        seconds, fraction = row[1].split(".")
        rx_ns = int.from_bytes(card[:8], "little")
        assert int(seconds) * 10**9 + int(fraction) == rx_ns + simulate.REALTIME_MINUS_MONO_NS
        assert row[0] == "1"  # the checksum is right
        assert row[2] == "::ffff:10.77.0.1"


def decode(report: bytes) -> dict[str, int]:
    """Decodes a telemetry report. Written from the specification alone, without the encoder's code."""
    group, node = struct.unpack_from(">II", report)
    words, bits, domain, domain_bits, status = struct.unpack_from(">IHHHH", report, 8)
    fields = {"version": group >> 28, "hw_id": group >> 22 & 63, "sequence": group & 0x3FFFFF, "node": node,
             "report_type": words >> 28, "inner_type": words >> 24 & 15, "report_words": words >> 16 & 255,
             "metadata_words": words >> 8 & 255, "dropped": words >> 7 & 1, "congested": words >> 6 & 1,
             "tracked": words >> 5 & 1, "rest": words & 31,
             "domain": domain | domain_bits | status}  # fmt: skip
    at = 20
    for bit, size, names in ((1, 4, (("in", 16), ("out", 16))), (2, 4, (("latency", 32),)),
                             (3, 4, (("queue", 8), ("occupancy", 24))), (4, 8, (("ingress_ns", 64),)),
                             (5, 8, (("egress_ns", 64),)),
                             (15, 4, (("drop_queue", 8), ("reason", 8), ("padding", 16)))):  # fmt: skip
        if bits >> (15 - bit) & 1:
            value, left = int.from_bytes(report[at : at + size], "big"), 8 * size
            for name, width in names:
                left -= width
                fields[name] = value >> left & (1 << width) - 1
            at += size
    assert bits & ~0b0111110000000001 == 0
    assert at == 20 + 4 * fields["metadata_words"]
    assert len(report) == 12 + 4 * fields["report_words"]
    return fields | {"inner": report[at:]}  # type: ignore[dict-item]


@pytest.mark.parametrize("name", ["two_flows", "ipv6_bytes", "ecn"])
def test_telemetry_report__has_the_fields_of_the_postcard(known_runs, name, tmp_path):
    known = known_runs(name)
    export(known.directory, "telemetry-report", tmp_path / "reports.pcapng")
    stored = simulate.stored_postcards(known.scenario, known.truth)
    rows = np.frombuffer(b"".join(card[8:] for card in stored), dtype=np.uint8).reshape(-1, wire.POSTCARD.length)
    rx = np.array([int.from_bytes(card[:8], "little") for card in stored])
    reports: dict[int, bytes] = {}
    cards = card_columns(rows)
    for at, made in telemetry_report.encode(cards, switch_time(cards["enqueue_switch_ns"], rx), (1 << 22) - 5):
        reports |= {int(row): bytes(report) for row, report in zip(at, made, strict=True)}
    assert len(reports) == len(stored)
    drops = 0
    for row, card in enumerate(stored):
        fields, report = wire.POSTCARD.decode(card[8:]), decode(reports[row])
        dropped = bool(fields["flags"] & CARD["POSTCARD_DROPPED"])
        drops += dropped
        assert (report["version"], report["report_type"], report["tracked"], report["rest"], report["domain"]) == (
            2,
            1,
            1,
            0,
            0,
        )
        assert report["sequence"] == ((1 << 22) - 5 + row) % (1 << 22)
        assert (report["node"], report["in"], report["out"]) == (1, 1, 2)
        assert report["occupancy"] == fields["depth_packets"]
        assert report["ingress_ns"] % (1 << 48) == fields["enqueue_switch_ns"]
        assert abs(report["ingress_ns"] + fields["sojourn_ns"] + 30_000 - rx[row]) == 0
        assert report["dropped"] == dropped
        assert report["congested"] == bool(fields["flags"] & (CARD["POSTCARD_CE_MARKED"] | CARD["POSTCARD_DROPPED"]))
        if dropped:
            assert report["reason"] == 71
            assert "egress_ns" not in report
        else:
            assert (report["latency"], report["egress_ns"] - report["ingress_ns"]) == (fields["sojourn_ns"],) * 2
        inner = report["inner"]
        assert isinstance(inner, bytes)
        ip = 40 if known.scenario.ipv6 else 20
        assert (report["inner_type"], inner[0] >> 4) == ((5, 6) if known.scenario.ipv6 else (4, 4))
        assert struct.unpack_from(">HHII", inner, ip) == tuple(
            fields[name] for name in ("src_port", "dst_port", "tcp_seq", "tcp_ack")
        )
        assert inner[ip + 13] == fields["tcp_flags"]
        length = struct.unpack_from(">H", inner, 4 if known.scenario.ipv6 else 2)[0]
        assert length + 14 + (40 if known.scenario.ipv6 else 0) == fields["packet_bytes"]
    assert drops > 0


def test_flent__has_the_goodput_of_every_flow(analysed, tmp_path):
    document = json.loads(gzip.decompress(export(analysed, "flent", tmp_path / "x.flent.gz").read_bytes()))
    summary = json.loads((analysed / "summary.json").read_text())
    assert (document["version"], document["metadata"]["NAME"]) == (4, "tcp_nup")
    assert all(len(series) == len(document["x_values"]) for series in document["results"].values())
    warmup = summary["spec"]["warmup_ns"] / 1e9
    inside = [x > warmup for x in document["x_values"]]
    total = np.array(document["results"]["TCP upload sum"])[inside].mean() * 1e6
    assert total == pytest.approx(summary["goodput_bps"], rel=0.02)
    ping = np.array(document["results"]["Ping (ms) ICMP"], dtype=float)[inside].mean()
    assert ping == pytest.approx((summary["spec"]["rtt_ns"] + summary["queue_delay_ns"]["mean"]) / 1e6, rel=0.05)
    again = export(analysed, "flent", tmp_path / "y.flent.gz")
    assert again.read_bytes() == (tmp_path / "x.flent.gz").read_bytes()


def test_flent__itself_reads_and_plots_it(analysed, tmp_path):
    path = export(analysed, "flent", tmp_path / "x.flent.gz")
    done = subprocess.run(
        [FLENT, "-i", path, "-f", "summary"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert re.search(r"TCP upload sum\s+:\s+\d+\.\d+", done.stdout + done.stderr)
    for plot in ("totals", "upload_with_ping_and_tcp_rtt", "tcp_cwnd"):
        subprocess.run([FLENT, "-i", path, "-p", plot, "-o", tmp_path / f"{plot}.png"], check=True, cwd=tmp_path)
        assert (tmp_path / f"{plot}.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["/nowhere", "--format", "csv", "--output", "x"], "/nowhere: is not a run; allowed: one repetition"),
        (["RUN=x", "FORMAT=xml", "OUTPUT=y"], "xml"),
        (["RUN=x", "FORMAT=flent", "OUTPUT=y.json"], "must end with .flent.gz"),
        (["RUN=x", "FORMAT=csv"], "OUTPUT is missing"),
    ],
)
def test_command__says_what_is_wrong(words, answer, capsys):
    assert main(["export", *words]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert answer in line


def test_command__never_writes_through_a_link_that_was_planted(analysed, tmp_path, capsys):
    (tmp_path / f".x.pcapng.{os.getpid()}").symlink_to(tmp_path / "target")
    assert main(["export", str(analysed), "--format", "pcapng", "--output", str(tmp_path / "x.pcapng")]) == 0
    assert not (tmp_path / "target").exists()
    assert capsys.readouterr().out.endswith(" postcards\n")


def test_command__leaves_nothing_half_written(analysed, tmp_path, capsys, monkeypatch):
    (tmp_path / "there.flent.gz").write_text("mine")
    assert main(["export", str(analysed), "--format", "flent", "--output", str(tmp_path / "there.flent.gz")]) == 1
    assert (tmp_path / "there.flent.gz").read_text() == "mine"
    bare = tmp_path / "bare/rep-1"
    shutil.copytree(analysed, bare, ignore=shutil.ignore_patterns("*.parquet", "*.bsp"))
    for kind in ("csv", "pcapng", "telemetry-report"):
        assert main(["export", str(bare), "--format", kind, "--output", str(tmp_path / "out")]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 4
    assert {path.name for path in tmp_path.iterdir()} == {"there.flent.gz", "bare"}
    assert flent.FORMAT_VERSION == 4
