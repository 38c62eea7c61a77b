# SPDX-License-Identifier: MIT
"""Traces of a link's rate: files are read exactly or refused, and our own have the properties of their models."""

from collections import Counter
from pathlib import Path

import pytest

from experiments.spec.link_trace import EPOCH_NS, MODELS, main
from lib.frames import wire_bytes_of_ip
from lib.link_trace import MS, SECOND, csv_text, mahimahi_text, parse, read

MINUTE_NS = 60 * SECOND


def test_read__a_csv_begins_at_its_first_time(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    for text in ("time_s,rate_bps\n5,2e8\n", "\n5.000000000, 200000000 \n"):
        file.write_text(text + "5.0000000014,0\n15.5,999999.5\n")
        schedule = parse(read(file))
        assert schedule.entries == ((0, 200_000_000), (1, 0), (10_500_000_000, 1_000_000))
        assert not schedule.opportunities


def test_read__a_mahimahi_trace_counts_the_opportunities_of_each_ms(tmp_path: Path) -> None:
    file = tmp_path / "trace.down"
    file.write_text("0\n1\n1\n7\n12\n12\n")
    schedule = parse(read(file))
    assert schedule.entries == ((1 * MS, 2), (7 * MS, 1), (12 * MS, 3))
    assert schedule.opportunities


def test_read__bad_files_are_refused_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "trace"
    for content, where in (
        (b"", "is empty"),
        (b"time_s,rate_bps\n", "is empty"),
        (b"\xff\xfe", "is not text"),
        (b"time_ms,rate_mbps\n0,5\n", "line 1, "),
        (b"0,5000\n1,-7\n", "line 2, "),
        (b"0,5000\n1\n", "line 2, "),
        (b"0,5000\n1,nan\n", "line 2, "),
        (b"0,5000\n1,6000\n1.0,7000\n", "line 3, "),
        (b"0,5000\n1,5\n", "has 5 bit/s at 1 s"),
        (b"0,5000\n1,0\n", "ends with a rate of 0"),
        (b"1\n2\n1\n", "line 3, "),
        (b"1\n2.5\n", "line 2, "),
        (b"0\n0\n", "has only times of 0 ms"),
        (b"999999999999\n", "ends at "),
    ):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=r"^[^\n]*$") as refused:
            parse(read(file))
        assert str(refused.value).startswith(where), content
    with pytest.raises(ValueError, match="cannot be read"):
        parse(read(tmp_path))


def test_models__keep_their_mean_and_repeat_with_their_seed(tmp_path: Path) -> None:
    for name, make in MODELS.items():
        mean_bps = 20_000_000
        schedule = make(mean_bps, 5 * MINUTE_NS, 1)
        assert schedule == make(mean_bps, 5 * MINUTE_NS, 1) != make(mean_bps, 5 * MINUTE_NS, 2)
        mean = float(schedule.bits_possible(0, 5 * MINUTE_NS)) / 300
        assert 0.5 * mean_bps < mean < 1.3 * mean_bps, name
        assert {rate for _, rate in schedule.entries} > {0}, "there are outages"
        file = tmp_path / "trace"
        file.write_text(csv_text(schedule))
        assert parse(read(file)) == schedule
    satellite = MODELS["satellite"](10**8, 5 * MINUTE_NS, 3)
    outages = [at_ns for at_ns, rate in satellite.entries if not rate]
    assert outages
    assert all(at_ns % EPOCH_NS == 0 for at_ns in outages)


def test_mahimahi__has_the_packets_that_the_rate_allows(tmp_path: Path) -> None:
    schedule = MODELS["cellular"](10_000_000, MINUTE_NS, 5)
    file = tmp_path / "trace"
    file.write_text(mahimahi_text(schedule, MINUTE_NS))
    counts = Counter({at_ns // MS: count for at_ns, count in parse(read(file)).entries})
    bits = 8 * wire_bytes_of_ip(1500)
    for end_ms in (1, 50, 3000, 60_000):
        sent = sum(count for ms, count in counts.items() if ms <= end_ms)
        assert sent == schedule.bits_possible(0, end_ms * MS) // bits


def test_command__writes_the_same_bytes_or_refuses_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for format in ("csv", "mahimahi"):
        words = ["satellite", "--rate", "5mbit", "--duration", "20s", "--format", format]
        for name in ("one", "other"):
            assert main([*words, str(tmp_path / name)]) == 0
        assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes() != b""
        assert parse(read(tmp_path / "one")).opportunities == (format == "mahimahi")
    for words in (["--rate", "5"], ["--duration", "0s"], ["--seed", "-1"]):
        assert main(["cellular", str(tmp_path / "none"), *words]) == 1
        assert capsys.readouterr().err.count("\n") == 1
    assert main(["cellular", str(tmp_path / "no/where")]) == 1
    assert not (tmp_path / "none").exists()
