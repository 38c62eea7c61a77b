# SPDX-License-Identifier: MIT
"""Exports have the data of the run, and other programs read them: Wireshark (tshark) and Flent. Exports and what-ifs of
runs that are damaged, not valid, or lack fields are refused or noted, never silent.
"""

import csv
import gzip
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from analysis.arithmetic.unwrap import switch_time
from analysis.exporting import flent, qlog, telemetry_report
from analysis.importing.text import CARDS_UNKNOWN
from analysis.read import columns
from analysis.replay.derive import derive
from analysis.tests import simulate
from analysis.tests.documents import change, change_spec
from analysis.tests.test_target_limits import OFFSET_NS, as_bmv2
from analysis.tests.undrawn import leave_out
from bufferscope.__main__ import main
from lib import parquet
from wire import dissector, wire

pytestmark = pytest.mark.usefixtures("undrawn")
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
    directory = Path(shutil.copytree(known_runs("two_flows").directory, tmp_path_factory.mktemp("export") / "rep-1"))
    with pytest.MonkeyPatch.context() as patch:
        leave_out(patch.setattr)
        derive(directory)
    return directory


def status_of(run, kind, output) -> int:
    return main(["export", str(run), "--format", kind, "--output", str(output)])


def export(run, kind, output) -> Path:
    assert status_of(run, kind, output) == 0
    return Path(output)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables__are_all_there_with_their_meaning(analysed, tmp_path, kind, monkeypatch):
    monkeypatch.setattr(parquet, "SLAB_ROWS", 1000)
    output = export(analysed.parent, kind, tmp_path / "out")  # a run with one repetition is that repetition
    schema = json.loads((output / "schema.json").read_text())
    assert set(schema) == {"postcards", "tcp", "joined", "distributions"}
    for name, table in schema.items():
        stored = pl.read_parquet(analysed / f"{name}.parquet")
        if kind == "parquet":
            assert (output / table["file"]).read_bytes() == (analysed / f"{name}.parquet").read_bytes()
        else:
            with (output / table["file"]).open(newline="") as file:
                names, *rows = csv.reader(file)
            assert names == stored.columns
            whole = stored.select(pl.selectors.integer().cast(pl.String).fill_null(""))
            assert pl.DataFrame(rows, schema=names, orient="row").select(whole.columns).equals(whole)
        assert list(table["columns"]) == stored.columns
        unsaid = [column for column, about in table["columns"].items() if not about["meaning"]]
        assert set(unsaid) <= SPEAK_FOR_THEMSELVES


NUMBERS = (
    "utilization", "goodput_bps", "queue_depth_packets", "queue_delay_ns", "drops", "marks", "arrivals", "jain_index",
    "queue_nonempty_fraction", "buffer_packets", "bdp_packets", "measured_s",
)  # fmt: skip


def test_pcapng__imported_again_has_the_numbers_of_the_original(analysed, tmp_path, capsys):
    output, config = export(analysed, "pcapng", tmp_path / "cards.pcapng"), tmp_path / "config.json"
    assert main(["import", f"FROM={output}", f"OUTPUT={tmp_path / 'again'}"]) == 0
    assert "middle third" not in capsys.readouterr().out
    original, again = (
        json.loads((directory / "summary.json").read_text()) for directory in (analysed, tmp_path / "again/rep-1")
    )
    assert {name: again[name] for name in NUMBERS} == {name: original[name] for name in NUMBERS}
    # WARMUP and DURATION override the part that the file names, and a config file overrides its description.
    config.write_text(json.dumps({"cc_algo": "bbr"}))
    for number, sources in enumerate((f"{output},{config}", f"{config},{output}")):
        part = tmp_path / f"part-{number}"
        assert main(["import", f"FROM={sources}", f"OUTPUT={part}", "WARMUP=100ms", "DURATION=200ms"]) == 0
        assert "the description in cards.pcapng is ignored" in capsys.readouterr().out
        document = json.loads((part / "rep-1/environment.json").read_text())
        assert document["imported"]["experiment"] == {"cc_algo": "bbr"}
        assert json.loads((part / "rep-1/summary.json").read_text())["measured_s"] == pytest.approx(0.2)


def test_pcapng__without_a_description_says_what_is_assumed(analysed, tmp_path, capsys):
    output = export(analysed, "pcapng", tmp_path / "cards.pcapng")
    data = output.read_bytes()
    size = int.from_bytes(data[4:8], "little")
    words = [(28).to_bytes(4, "little")] * 2
    output.write_bytes(data[:4] + words[0] + data[8:24] + words[1] + data[size:])  # drops the section header's options
    assert main(["import", f"FROM={output}", f"OUTPUT={tmp_path / 'again'}"]) == 0
    said = capsys.readouterr().out
    assert all(words in said for words in ("only the middle third", "set RATE= ", "set RTT= "))
    for old, new in ((b'"rate_bps": ', b'"rate_bps":-'), (b'{"rate_bps"', b'["rate_bps"')):  # a damaged description
        assert data.count(old) == 1
        output.write_bytes(data.replace(old, new))
        assert main(["import", f"FROM={output}", f"OUTPUT={tmp_path / 'damaged'}"]) == 1
        assert len(capsys.readouterr().err.splitlines()) == 1
        assert not (tmp_path / "damaged").exists()


def test_dissector__is_current():
    assert (ROOT / "wire/postcard.lua").read_text() == dissector.lua(), "run: .venv/bin/python -m wire.dissector"


@pytest.mark.skipif(not TSHARK, reason="no tshark here (Debian: tshark)")
def test_dissector__shows_every_field_in_wireshark(analysed, tmp_path):
    output = export(analysed, "pcapng", tmp_path / "cards.pcapng")
    names = [name for name, bits in wire.POSTCARD.fields if bits != 128]
    shown = ["ip.checksum.status", "frame.time_epoch", *(f"bufferscope.{name}" for name in ("src_addr", *names))]
    done = subprocess.run(
        [TSHARK, "-X", f"lua_script:{ROOT}/wire/postcard.lua", "-o", "ip.check_checksum:TRUE", "-r", output, "-T",
         "fields", *(word for name in shown for word in ("-e", name))],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows, stored = [line.split("\t") for line in done.stdout.splitlines()], simulate.read_postcards(analysed)
    assert len(rows) == len(stored)
    for row, card in list(zip(rows, stored, strict=True))[::97]:
        fields = wire.POSTCARD.decode(card[8:])
        assert [int(value, 0) for value in row[3:]] == [fields[name] for name in names]
        rx_real_ns = int.from_bytes(card[:8], "little") + simulate.REALTIME_MINUS_MONO_NS
        assert row[:3] == ["1", f"{rx_real_ns // 10**9}.{rx_real_ns % 10**9:09d}", "::ffff:10.77.0.1"]


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


@pytest.mark.parametrize("name", ["ipv6_bytes", "ecn"])
def test_telemetry_report__has_the_fields_of_the_postcard(known_runs, name, tmp_path):
    known = known_runs(name)
    export(known.directory, "telemetry-report", tmp_path / "reports.pcapng")
    stored = simulate.stored_postcards(known.scenario, known.truth)
    rows = np.frombuffer(b"".join(card[8:] for card in stored), dtype=np.uint8).reshape(-1, wire.POSTCARD.length)
    rx = np.array([int.from_bytes(card[:8], "little") for card in stored])
    reports: dict[int, bytes] = {}
    cards = wire.POSTCARD.columns(rows)
    for at, made in telemetry_report.encode(cards, switch_time(cards["enqueue_switch_ns"], rx), (1 << 22) - 5):
        reports |= {int(row): bytes(report) for row, report in zip(at, made, strict=True)}
    assert len(reports) == len(stored)
    drops, is_ipv6 = 0, known.scenario.ipv6
    for row, card in enumerate(stored):
        fields, report = wire.POSTCARD.decode(card[8:]), decode(reports[row])
        dropped = bool(fields["flags"] & CARD["POSTCARD_DROPPED"])
        drops += dropped
        assert report.items() >= {
            "version": 2, "report_type": 1, "tracked": 1, "rest": 0, "domain": 0, "node": 1, "in": 1, "out": 2,
            "sequence": ((1 << 22) - 5 + row) % (1 << 22), "occupancy": fields["depth_packets"], "dropped": dropped,
            "congested": bool(fields["flags"] & (CARD["POSTCARD_CE_MARKED"] | CARD["POSTCARD_DROPPED"])),
            "ingress_ns": int(rx[row]) - fields["sojourn_ns"] - 30_000, "inner_type": 5 if is_ipv6 else 4,
        }.items()  # fmt: skip
        if dropped:
            assert report["reason"] == 71
            assert "egress_ns" not in report
        else:
            assert (report["latency"], report["egress_ns"] - report["ingress_ns"]) == (fields["sojourn_ns"],) * 2
        inner = report["inner"]
        assert isinstance(inner, bytes)
        ip = 40 if is_ipv6 else 20
        assert inner[0] >> 4 == (6 if is_ipv6 else 4)
        assert struct.unpack_from(">HHII", inner, ip) == tuple(
            fields[name] for name in ("src_port", "dst_port", "tcp_seq", "tcp_ack")
        )
        assert inner[ip + 13] == fields["tcp_flags"]
        length = struct.unpack_from(">H", inner, 4 if is_ipv6 else 2)[0]
        assert length + 14 + (40 if is_ipv6 else 0) == fields["packet_bytes"]
    assert drops > 0


def test_flent__has_the_goodput_of_every_flow_and_plots_it(analysed, tmp_path, monkeypatch):
    path = export(analysed, "flent", tmp_path / "x.flent.gz")
    monkeypatch.setattr(parquet, "SLAB_ROWS", 1000)  # more slabs change nothing
    monkeypatch.setattr(columns, "SLAB_ROWS", 300)
    assert export(analysed, "flent", tmp_path / "y.flent.gz").read_bytes() == path.read_bytes()
    document = json.loads(gzip.decompress(path.read_bytes()))
    summary = json.loads((analysed / "summary.json").read_text())
    assert (document["version"], document["metadata"]["NAME"]) == (4, "tcp_nup")
    units = {name: series["UNITS"] for name, series in document["metadata"]["SERIES_META"].items()}
    assert {units.pop("TCP upload fairness"), units.pop("Ping (ms) ICMP"), *units.values()} == {"Idx", "ms", "Mbits/s"}
    assert all(len(series) == len(document["x_values"]) for series in document["results"].values())
    inside = [x > summary["spec"]["warmup_ns"] / 1e9 for x in document["x_values"]]
    total = np.array(document["results"]["TCP upload sum"])[inside].mean() * 1e6
    assert total == pytest.approx(summary["goodput_bps"], rel=0.02)
    ping = np.array(document["results"]["Ping (ms) ICMP"], dtype=float)[inside].mean()
    assert ping == pytest.approx((summary["spec"]["rtt_ns"] + summary["queue_delay_ns"]["mean"]) / 1e6, rel=0.05)


@pytest.mark.long  # `make test` does not install Flent
def test_flent__plots_our_file_and_shows_its_own_units(analysed, tmp_path):
    path = export(analysed, "flent", tmp_path / "x.flent.gz")
    shown = subprocess.run([FLENT, "-i", path], check=True, cwd=tmp_path, capture_output=True, text=True).stdout
    assert re.search("TCP upload fairness .* Idx ", shown)
    words = [FLENT, "-i", path, "-p", "upload_with_ping_and_tcp_rtt", "-o", tmp_path / "plot.png"]
    subprocess.run(words, check=True, cwd=tmp_path)
    assert (tmp_path / "plot.png").stat().st_size > 5000


# Names of draft-ietf-quic-qlog-main-schema-02 and -quic-events-02: members of the file, trace and event, and of each
# event's data. All others would be ours.
QLOG_FILE = {"qlog_version", "qlog_format", "title", "description", "trace"}
QLOG_TRACE = {"title", "description", "configuration", "common_fields", "vantage_point"}
QLOG_COMMON = {"time_format", "reference_time", "protocol_type", "group_id"}
QLOG_DATA = {
    "transport:packet_sent": {"header", "raw"},
    "recovery:packet_lost": {"header"},
    "recovery:metrics_updated": {
        "min_rtt", "smoothed_rtt", "latest_rtt", "rtt_variance", "pto_count", "congestion_window", "bytes_in_flight",
        "ssthresh", "packets_in_flight", "pacing_rate",
    },
}  # fmt: skip


@pytest.mark.parametrize("rows", [qlog.ROWS, 100])
def test_qlog__has_the_schemas_names_and_every_packet_loss_and_window(analysed, tmp_path, monkeypatch, rows):
    monkeypatch.setattr(qlog, "ROWS", rows)
    monkeypatch.setattr(parquet, "SLAB_ROWS", max(rows // 2, 1))
    output = tmp_path / "run.sqlog"
    assert status_of(analysed, "qlog", output) == 0
    first, *texts = output.read_text().split("\x1e")[1:]  # RFC 7464
    head, events = json.loads(first), [json.loads(text) for text in texts]
    assert all(text.endswith("\n") for text in texts)
    assert (head["qlog_version"], head["qlog_format"]) == ("0.3", "JSON-SEQ")
    assert set(head) <= QLOG_FILE
    assert set(head["trace"]) <= QLOG_TRACE
    assert set(head["trace"]["common_fields"]) <= QLOG_COMMON
    assert all(set(event) == {"time", "name", "group_id", "data"} for event in events)
    assert all(set(event["data"]) <= QLOG_DATA[event["name"]] for event in events)
    times = [event["time"] for event in events]
    assert times == sorted(times)
    assert times[0] >= 0
    joined = pl.read_parquet(analysed / "joined.parquet").filter(pl.col("payload_bytes") > 0)
    named = {name: [event for event in events if event["name"] == name] for name in QLOG_DATA}
    sent, lost, metrics = named.values()
    assert [event["data"]["raw"]["length"] for event in sent] == joined["payload_bytes"].to_list()
    assert len(lost) == joined["dropped"].sum() > 0
    keys = [(event["group_id"], event["data"]["header"]["packet_number"]) for event in (*sent, *lost)]
    assert set(keys[len(sent) :]) <= set(keys[: len(sent)])
    assert len({*keys}) == len(sent)
    numbers: dict[str, list[int]] = {}
    for group, number in keys[: len(sent)]:
        numbers.setdefault(group, []).append(number)
    assert all(of_flow == [*range(len(of_flow))] for of_flow in numbers.values())
    # What the events say together is what each trace record says.
    tcp = pl.read_parquet(analysed / "tcp.parquet")
    for group in numbers:
        records = tcp.filter(pl.col("five_tuple").cast(pl.String) == f"{group} tcp")
        of_flow = [event["data"] for event in metrics if event["group_id"] == group]
        windows = [data["congestion_window"] for data in of_flow if "congestion_window" in data]
        expected = (records["cwnd_packets"].cast(pl.Int64) * records["mss_bytes"]).to_list()
        assert windows == [value for at, value in enumerate(expected) if at == 0 or value != expected[at - 1]]
        assert of_flow[0]["smoothed_rtt"] == records["srtt_us"][0] / 1000


def test_command__refuses_in_one_line_and_leaves_nothing_half_written(analysed, tmp_path, capsys):
    (out := tmp_path / "there.flent.gz").write_text("mine")
    bare = tmp_path / "bare/rep-1"
    shutil.copytree(analysed, bare, ignore=shutil.ignore_patterns("*.parquet", "*.bsp"))
    for run, kind, output, said in (
        (analysed, "flent", out, "there.flent.gz"),
        (analysed, "flent", tmp_path / "y.json", "must end with .flent.gz"),
        (analysed, "xml", tmp_path / "out", "xml"),
        ("/nowhere", "csv", tmp_path / "out", "/nowhere: is not a run"),
        (bare, "csv", tmp_path / "out", ""),
        (analysed, "pcap", tmp_path / "out", "allowed: a run with TAPS=1"),
        (bare, "pcapng", tmp_path / "out", ""),
        (bare, "telemetry-report", tmp_path / "out", ""),
    ):
        assert main(["export", str(run), "--format", kind, "--output", str(output)]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert said in line
    assert (out.read_text(), {path.name for path in tmp_path.iterdir()}) == ("mine", {"there.flent.gz", "bare"})
    (tmp_path / f".x.pcapng.{os.getpid()}").symlink_to(tmp_path / "target")  # a planted link
    export(analysed, "pcapng", tmp_path / "x.pcapng")
    assert not (tmp_path / "target").exists()


# Runs that are damaged, not valid, or lack fields: each is refused or noted, never silent -----------------------------


@pytest.fixture
def unrecorded(analysed, tmp_path):
    """A copy of that repetition without digests, like runs of earlier versions."""
    return Path(shutil.copytree(analysed, tmp_path / "run/rep-1", ignore=shutil.ignore_patterns("digests.json")))


def imported(directory: Path, unknown: list[str]) -> Path:
    how = {"what": "x", "unknown_postcard_fields": unknown, "cell_bytes": None}
    change_spec(directory, target="imported", imported=how)
    return directory


def torn(data: bytes) -> bytes:
    return data[: len(data) * 6 // 10]


def other(**content: object) -> Callable[[bytes], bytes]:
    return lambda data: json.dumps(json.loads(data) | content).encode()


CUT_OFF = "postcards.bsp: damaged or cut off at byte "
NEEDED: list[tuple[str, Callable[[bytes], bytes], tuple[str, ...], str]] = [  # file, damage, what needs it, the line
    ("postcards.bsp", torn, ("pcapng", "telemetry-report", "flent"), CUT_OFF),
    ("postcards.bsp", lambda data: data[:3000] + b"\xff\xfe" + data[3002:], ("pcapng", "what-if"), CUT_OFF),
    ("joined.parquet", torn, ("csv", "flent"), "joined.parquet: is not a whole table: "),
    ("tcp.bst", torn, ("flent",), "tcp.bst: damaged or cut off at byte "),
    ("traffic.json", lambda _: b"[]", ("flent", "what-if"), "traffic.json: is not a JSON object"),
    ("traffic.json", other(end_mono_ns=None, flows=None), ("flent", "what-if"), "does not say end_mono_ns, flows"),
    ("traffic.json", other(flows=[7]), ("flent", "what-if"), "traffic.json: flows.0: "),
    ("switch.json", other(bottleneck_port=None), ("flent", "what-if"), "switch.json: does not say bottleneck_port"),
    ("environment.json", lambda _: b"", ("flent", "what-if"), "environment.json: not readable as JSON: "),
]


def test_damaged_files__are_refused_where_they_are_needed(unrecorded, tmp_path, capsys):
    for name, damage, commands, said in NEEDED:
        path = unrecorded / name
        whole = path.read_bytes()
        path.write_bytes(damage(whole))
        for command in commands:
            output = tmp_path / ("x.flent.gz" if command == "flent" else "x")
            ask = ["replay", f"RUN={unrecorded}", "BUF=5p"]
            assert (main(ask) if command == "what-if" else status_of(unrecorded, command, output)) == 1
            (line,) = capsys.readouterr().err.splitlines()
            assert said in line
            assert {path.name for path in tmp_path.iterdir()} == {"run"}
            assert not list(unrecorded.glob("*whatif*"))
        if name == "tcp.bst":
            assert status_of(unrecorded, "pcapng", tmp_path / "run/x.pcapng") == 0  # a pcapng file needs no TCP trace
            capsys.readouterr()
        path.write_bytes(whole)


def test_switch_with_its_own_clock__is_exported_on_the_hosts_clock_or_refused(fresh, tmp_path, capsys):
    directory = as_bmv2(fresh())
    assert main(["replay", f"RUN={directory}"]) == 0
    # A capture imported again has the measurement window.
    assert status_of(directory, "pcapng", path := tmp_path / "cards.pcapng") == 0
    assert main(["import", f"FROM={path}", f"OUTPUT={tmp_path / 'again'}", "RATE=50mbit", "RTT=10ms"]) == 0
    summaries = [json.loads((each / "summary.json").read_text()) for each in (directory, tmp_path / "again" / "rep-1")]
    assert summaries[0]["arrivals"] == summaries[1]["arrivals"] > 1000
    assert status_of(directory, "telemetry-report", tmp_path / "x.pcapng") == 0
    rows, rx = cards(directory)
    fields = wire.POSTCARD.columns(rows)
    for at, reports in telemetry_report.encode(fields, switch_time(fields["enqueue_switch_ns"], rx, OFFSET_NS), 0):
        came = np.array([decode(bytes(report))["ingress_ns"] for report in reports])
        assert (rx[at] - came > 0).all()
        assert (rx[at] - came < simulate.Scenario().rtt_ns).all()
    change(directory, "switch", ("clock",), {"offset_ns": 0})
    (directory / "digests.json").unlink()
    assert status_of(directory, "telemetry-report", tmp_path / "other.pcapng") == 0
    assert (tmp_path / "x.pcapng").read_bytes() != (tmp_path / "other.pcapng").read_bytes()
    for clock in ({}, {"offset_ns": None}, {"offset_ns": "7"}, 7):
        change(directory, "switch", ("clock",), clock)
        capsys.readouterr()
        for kind, name in (("telemetry-report", "y"), ("flent", "y.flent.gz")):
            assert status_of(directory, kind, tmp_path / name) == 1
            (line,) = capsys.readouterr().err.splitlines()
            assert "switch.json" in line
            assert "clock" in line


def test_runs_not_valid__are_exported_with_a_warning(unrecorded, tmp_path, capsys):
    path = unrecorded / "summary.json"
    whole = json.loads(path.read_text())
    for text, said in (
        (json.dumps(whole | {"valid": False, "reasons": ["lost", "late"]}), "NOT VALID: lost (and 1 more)"),
        ("{", "summary.json cannot be read: "),
        (json.dumps(whole), ""),
    ):
        path.write_text(text)
        assert status_of(unrecorded, "csv", tmp_path / f"out-{len(text)}") == 0
        lines = capsys.readouterr().err.splitlines()
        (note,) = (line for line in lines if "has no digests of its raw files" in line)
        lines.remove(note)
        assert [said in line for line in lines] == [True] * bool(said)


def test_tables__with_any_byte_flipped_are_read_or_refused(unrecorded):
    """Some damage makes polars panic, and a panic is not an Exception. Without digests, nothing else detects damage."""
    table, chance = unrecorded / "joined.parquet", random.Random(1)
    whole, refused = table.read_bytes(), 0
    for _ in range(200):
        data = bytearray(whole)
        for _ in range(8):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        table.write_bytes(data)
        try:
            parquet.read(table)
        except pl.exceptions.PolarsError:
            refused += 1
    assert refused > 50


def cards(directory: Path) -> tuple[np.ndarray, np.ndarray]:
    """Postcards as bytes, and when each was received."""
    rows = np.frombuffer(b"".join(simulate.read_postcards(directory)), dtype=np.uint8)
    rows = rows.reshape(-1, wire.STORED_POSTCARD.itemsize)
    return rows[:, 8:], rows[:, :8].copy().view("<i8")[:, 0]


def test_fields_unknown_to_the_source__are_left_out_or_refused(fresh, tmp_path, capsys):
    unknown = imported(fresh(), sorted(CARDS_UNKNOWN))
    assert status_of(unknown, "telemetry-report", tmp_path / "x.pcapng") == 0
    rows, rx = cards(unknown)
    dropped = 0
    for _, reports in telemetry_report.encode(wire.POSTCARD.columns(rows), rx, 0, CARDS_UNKNOWN):
        for report in reports[::50]:
            decoded = decode(bytes(report))
            assert not decoded.keys() & {"in", "out", "latency", "ingress_ns", "egress_ns"}
            assert decoded["queue"] == 255
            dropped += decoded["dropped"]
    assert dropped > 0
    assert status_of(unknown, "pcapng", tmp_path / "y.pcapng") == 1
    assert "its postcards lack " in capsys.readouterr().err


def test_csv__of_an_empty_table_has_its_header(unrecorded, tmp_path):
    table = pl.read_parquet(unrecorded / "tcp.parquet").clear()
    table.write_parquet(unrecorded / "tcp.parquet")
    assert (export(unrecorded, "csv", tmp_path / "x") / "tcp.csv").read_text() == ",".join(table.columns) + "\n"


def test_flent__of_a_run_without_delays_or_flows(unrecorded, tmp_path, capsys):
    assert flent.data(unrecorded)["raw_values"][flent.PING]
    table = pl.read_parquet(unrecorded / "joined.parquet")
    table.with_columns(sojourn_ns=pl.lit(None, pl.Int64)).write_parquet(unrecorded / "joined.parquet")
    imported(unrecorded, ["sojourn_ns"])
    assert status_of(unrecorded, "flent", tmp_path / "x.flent.gz") == 0
    document = json.loads(gzip.decompress((tmp_path / "x.flent.gz").read_bytes()))
    assert set(document["results"][flent.PING]) == {None}
    change(unrecorded, "traffic", ("flows",), [])
    (unrecorded / "tcp.bst").write_bytes(b"")
    assert status_of(unrecorded, "flent", tmp_path / "y.flent.gz") == 1
    assert "no flows" in capsys.readouterr().err
