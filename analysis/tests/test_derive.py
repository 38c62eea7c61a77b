# SPDX-License-Identifier: MIT
"""The replay command: its files, exit status and one-line errors. Earlier results survive every failure."""

import fcntl
import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from analysis import derive as derive_module
from analysis import report
from analysis.amounts import count, number, percent, si
from analysis.derive import convert, derive
from analysis.figures import names
from analysis.figures.common import envelope
from analysis.tests import simulate
from bufferscope.__main__ import main

NAMES = names({})  # the figures of a run with long flows
DERIVED = [
    "distributions.parquet", "joined.parquet", "postcards.parquet", "report.html", "summary.json", "tcp.parquet",
]  # fmt: skip
KEYS = {  # of every summary.json
    "valid", "reasons", "clock", "spec", "bdp_packets", "buffer_packets", "utilization", "goodput_bps",
    "queue_depth_packets", "queue_nonempty_fraction", "drops", "marks", "drop_fraction", "jain_index", "flows",
    "ledger", "fidelity",
}  # fmt: skip
DEEP_KEYS = {
    "utilization": {"mean", "p01", "window_s", "min_after_loss"},
    "queue_depth_packets": {"mean", "p01", "p50", "p99", "max"},
    "ledger": {
        "switch_packets", "postcards_sent", "postcards_received", "postcards_stored", "postcards_rows", "tcp_events",
        "tcp_events_lost", "ring_drops",
    },
    "fidelity": {"lateness_us", "gap_error_over_10pct_fraction", "rate_error_fraction"},
}  # fmt: skip


@pytest.fixture
def no_figures(monkeypatch):
    """Replaces the figures by empty ones: drawing takes a second per run, and these tests are not about figures."""

    def blank(analysis, directory, pool):
        for name in NAMES:
            (directory / f"{name}.svg").write_text('<svg viewBox="0 0 4 3"/>')
        return []

    monkeypatch.setattr(derive_module, "draw_all", blank)


def _derived(directory):
    return {path.relative_to(directory): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_command__makes_every_file_and_says_the_verdict(fresh, capsys):
    directory = fresh()
    simulate.record_digests(directory)
    assert main(["replay", str(directory)]) == 0
    out, err = capsys.readouterr()
    assert re.fullmatch(r".*rep-1: utilization 9\d\.\d\d%, 1\d drops, valid\n", out)
    assert err == ""
    assert all((directory / name).stat().st_size for name in DERIVED)
    figures = {f"{name}{end}" for name in NAMES for end in (".png", ".svg", "-phone.svg")}
    assert {path.name for path in (directory / "figures").iterdir()} == figures
    assert all((directory / "figures" / name).stat().st_size > 4000 for name in figures)
    assert not (directory / derive_module.SCRATCH).exists()
    summary = json.loads((directory / "summary.json").read_text())
    assert summary.keys() >= KEYS
    for key, inner in DEEP_KEYS.items():
        assert inner <= summary[key].keys()


def test_command__takes_a_run_with_several_repetitions(fresh, capsys, no_figures):
    directory = fresh()
    simulate.write_run(directory.parent / "rep-2", simulate.Scenario(seed=2))
    assert main(["replay", str(directory.parent)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert (directory.parent / "rep-2/summary.json").exists()


def test_replay__gives_the_same_files(fresh):
    directory = fresh("no_loss")
    derive(directory)
    before = _derived(directory)
    derive(directory)
    assert _derived(directory) == before


def test_command__of_a_run_that_keeps_its_summary_writes_neither_tables_nor_figures(fresh, capsys):
    directory = fresh()
    assert main(["replay", str(directory), "KEEP=summary", "ALONE=1"]) == 0
    derived = _derived(directory).keys()
    assert {name for name in derived if name.suffix == ".parquet"} == {Path("distributions.parquet")}
    assert not any(name.suffix in (".svg", ".png") for name in derived)
    page = (directory / "report.html").read_text()
    assert "no figures were drawn" in page
    assert "<img" not in page
    kept = {name: (directory / name).read_bytes() for name in ("summary.json", "distributions.parquet")}
    derive(directory)
    assert kept == {name: (directory / name).read_bytes() for name in kept}
    assert main(["replay", str(directory), "KEEP=some"]) == 1
    assert "KEEP=some is not known; allowed: all, tables, flows, summary" in capsys.readouterr().err


def test_derive__of_a_run_that_is_not_valid_keeps_everything(fresh):
    directory = fresh()
    (directory / "tracer.json").write_text(
        json.dumps(json.loads((directory / "tracer.json").read_text()) | {"lost": 1})
    )
    summary, _ = derive(directory, keep="summary")
    assert not summary["valid"]
    assert all((directory / name).exists() for name in DERIVED)
    assert (directory / "figures" / f"{NAMES[0]}.svg").exists()


def test_tables__are_sorted_complete_and_self_describing(fresh, no_figures, known_runs):
    directory = fresh("reordered")
    derive(directory)
    truth = known_runs("reordered").truth
    cards, tcp, joined = (pl.read_parquet(directory / f"{name}.parquet") for name in ("postcards", "tcp", "joined"))
    assert (len(cards), len(tcp), len(joined)) == (len(truth.cards), len(truth.records), len(truth.cards))
    assert cards["enqueue_mono_ns"].is_sorted()
    assert tcp["mono_ns"].is_sorted()
    assert joined["enqueue_mono_ns"].is_sorted()
    assert cards["five_tuple"].cast(pl.String)[0].startswith("10.77.0.1:3000")
    assert cards["packet_bytes"].cast(pl.Int64).sum() == sum(card["packet_bytes"] for card in truth.cards)
    assert joined["cwnd_packets"].null_count() < 50


def test_convert__writes_the_tables_alone(tmp_path, known_runs):
    known = known_runs("two_flows")
    rows = convert(known.directory, tmp_path)
    assert rows == {
        "postcards": len(known.truth.cards),
        "tcp": len(known.truth.records),
        "joined": len(known.truth.cards),
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["joined.parquet", "postcards.parquet", "tcp.parquet"]


def test_report__is_one_file_that_fetches_nothing(fresh):
    directory = fresh()
    derive(directory)
    page = (directory / "report.html").read_text()
    assert page.count("data:image/svg+xml;base64,") == 2 * len(NAMES)  # each figure for a large screen and for a phone
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:|//|\.|/)""", page)
    assert "<strong>Valid.</strong>" in page
    assert "NOT VALID" not in page


def test_report__says_how_many_flows_it_leaves_out(fresh):
    directory = fresh()
    summary, _ = derive(directory)
    many = summary | {"flows": summary["flows"][:1] * (report.MAX_FLOWS_LISTED + 1)}
    for left_out, said in (({}, "summary.json has all"), ({"flows_not_listed": 9}, "summary.json has the first 257")):
        page = report.render(many | left_out, {}, directory / "figures")
        assert f"The first 256 of {257 + sum(left_out.values())}; {said}" in page


@pytest.mark.parametrize(
    ("clock", "switch", "said"),
    [
        ("real", "process", "the emulation kept up with real time"),
        ("virtual", "process", "every frame departed at most 10 µs of virtual time after it was due"),
        ("virtual", "driver", "every frame left in the very ns of virtual time that it was due"),
    ],
)
def test_report__states_the_lateness_bound_of_the_runs_clock(clock, switch, said):
    assert report.kept_up({"clock": clock, "lab": {"switch": switch}}) == said


def test_report__captions_describe_only_drawn_curves():
    def depth(buffer, needed, **more):
        summary = {"buffer_packets": buffer, "rules": {"sqrt_n_packets": needed}, "open_loop": None, **more}
        return report.captions(summary)["queue_depth_distribution"]

    assert "Shaded" in depth(163, 40.75)
    assert "Shaded" not in depth(163, 163.2)
    assert "Shaded" not in depth(163, None)
    assert "Dots are the theory, M/D/1." in depth(163, 40.75, open_loop={"model": "M/D/1"})
    assert "Shaded" not in depth(163, 40.75, open_loop={"model": None})


def test_count__uses_the_singular_for_one():
    assert [count(n, "packet") for n in (1, 2, 1.0, 2.5, 12345, None)] == [
        "1 packet", "2 packets", "1 packet", "2.5 packets", "12\u2009345 packets", "– packets"]  # fmt: skip


def test_report__marks_a_run_that_is_not_valid_loudly(fresh):
    directory = fresh()
    (directory / "collector.json").unlink()
    derive(directory)
    page = (directory / "report.html").read_text()
    assert "<title>NOT VALID: simulated" in page
    assert "collector.json: missing" in page
    assert "NOT VALID" in (directory / "figures/utilization.svg").read_text()


def test_report__escapes_text_from_files(fresh, no_figures):
    directory = fresh()
    for name in ("traffic", "environment"):
        text = (directory / f"{name}.json").read_text()
        text = text.replace('"cc": "reno"', '"cc": "<script>x</script>"').replace("6.1.0", "<script>y</script>")
        (directory / f"{name}.json").write_text(text)
    derive(directory)
    page = (directory / "report.html").read_text()
    assert "<script>x" not in page
    assert "&lt;script&gt;x" in page


@pytest.mark.parametrize("change", ["no traffic", "no trace", "empty", "short", "noise"])
def test_derive__makes_figures_and_report_of_little_data(fresh, change):
    directory = fresh()
    if change in ("no trace", "empty"):
        (directory / "tcp.bst").write_bytes(b"")
    if change == "empty":
        (directory / "postcards.bsp").write_bytes(b"")
    if change == "no traffic":
        (directory / "traffic.json").unlink()
    if change == "short":
        (directory / "postcards.bsp").write_bytes((directory / "postcards.bsp").read_bytes()[:60_000])
    if change == "noise":  # an intact block of random values
        record, version = simulate.wire.STORED_POSTCARD.itemsize, simulate.CARD["POSTCARD_VERSION"]
        random = __import__("random").Random(1)
        body = b"".join(random.randbytes(8) + bytes([version]) + random.randbytes(record - 9) for _ in range(3000))
        (directory / "postcards.bsp").write_bytes(simulate.wire.encode_block(1, version, record, body))
    summary, damage = derive(directory)
    assert summary["valid"] is False
    assert bool(damage) == (change == "short")
    if change == "empty":
        assert summary["reasons"][0] == "queue: no packet arrived; see logs/"
    assert (directory / "report.html").exists()


@pytest.mark.parametrize("name", ["no_loss", "many_flows", "ipv6_bytes", "one_flow"])
def test_derive__draws_every_kind_of_run(fresh, name, known_runs):
    directory = fresh(name)
    summary, _ = derive(directory)
    assert summary["valid"]
    assert (summary["drops"] == 0) == (name == "no_loss")
    assert len(summary["flows"]) == known_runs(name).scenario.flows
    if name == "ipv6_bytes":
        assert "[fd77::1]:30000 > [fd77::2]:5201<" in (directory / "report.html").read_text().replace("&gt;", ">")
    assert max(path.stat().st_size for path in (directory / "figures").iterdir()) < 2_000_000


def test_damage__is_one_line_and_readable_parts_are_used(fresh, capsys, no_figures):
    directory = fresh()
    path = directory / "postcards.bsp"
    path.write_bytes(path.read_bytes()[:-10])
    assert main(["replay", str(directory)]) == 2
    out, err = capsys.readouterr()
    assert "NOT VALID" in out
    assert len(err.splitlines()) == 1
    assert "postcards.bsp: damaged or cut off at byte" in err
    assert json.loads((directory / "summary.json").read_text())["valid"] is False


def test_damage__does_not_replace_earlier_results_without_force(fresh, capsys, no_figures):
    directory = fresh()
    derive(directory)
    path = directory / "tcp.bst"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    before = _derived(directory)
    assert main(["replay", str(directory)]) == 1
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert "earlier results are kept (--force replaces them)" in err
    assert _derived(directory) == before
    assert main(["replay", str(directory), "--force"]) == 2
    assert json.loads((directory / "summary.json").read_text())["valid"] is False


def test_derive__does_not_replace_valid_results_by_invalid_ones(fresh, capsys, no_figures):
    directory = fresh()
    derive(directory)
    (directory / "switch.json").write_text("{}")
    before = _derived(directory)
    assert main(["replay", str(directory)]) == 1
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert "they are kept (--force replaces them)" in err
    assert _derived(directory) == before
    assert main(["replay", str(directory), "--force"]) == 0
    assert json.loads((directory / "summary.json").read_text())["valid"] is False
    assert main(["replay", str(directory)]) == 0  # results that are not valid may be replaced


@pytest.mark.parametrize("earlier", ["{", "[]", '{"valid": 1}'])
def test_derive__replaces_an_unusable_earlier_summary(fresh, no_figures, earlier):
    directory = fresh()
    (directory / "switch.json").write_text("{}")
    (directory / "summary.json").write_text(earlier)
    assert derive(directory)[0]["valid"] is False


def swap(path):
    """Replaces a file by a directory."""
    path.unlink()
    path.mkdir()


def link_away(path):
    """Moves a directory elsewhere and leaves a symbolic link in its place. The link could lead into another run, so
    replay must refuse it.
    """
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (lambda d: (d / "spec.yaml").unlink(), "spec.yaml: missing"),
        (lambda d: (d / "postcards.bsp").unlink(), "postcards.bsp: missing"),
        (lambda d: (d / "spec.yaml").write_text("spec_version: 2"), "use a newer bufferscope"),
        (lambda d: swap(d / "tcp.parquet"), "tcp.parquet: is in the way of a result; remove it; earlier results are"),
        (lambda d: swap(d / "figures/utilization.svg"), "figures/utilization.svg: is in the way of a result"),
        (lambda d: link_away(d / "figures"), "figures: is in the way of a result; remove it"),
    ],
)
def test_command__refuses_with_one_line_and_changes_nothing(fresh, capsys, no_figures, prepare, said):
    directory = fresh()
    derive(directory)
    prepare(directory)
    before = _derived(directory)
    assert main(["replay", str(directory)]) == 1
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert said in err
    assert _derived(directory) == before


@pytest.mark.parametrize("what", ["nowhere", "file"])
def test_command__needs_a_directory(tmp_path, capsys, what):
    (tmp_path / "file").write_text("")
    assert main(["replay", str(tmp_path / what)]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("stage", ["write_joined", "write_raw_tables", "render"])
def test_full_disk__keeps_earlier_results(fresh, capsys, no_figures, monkeypatch, stage):
    directory = fresh()
    derive(directory)
    before = _derived(directory)

    def full(*_):
        raise OSError(28, "No space left on device", str(directory / "x"))

    monkeypatch.setattr(derive_module, stage, full)
    assert main(["replay", str(directory)]) == 1
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert "No space left on device" in err
    assert _derived(directory) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")
@pytest.mark.software
def test_full_disk__for_real(tmp_path, known_runs):
    """A file system with too little room, in a mount namespace of its own."""
    source = known_runs("two_flows").directory
    size_kib = sum(path.stat().st_size for path in source.iterdir() if path.is_file()) // 1024 + 200
    script = (
        'mount -t tmpfs -o size="$1"k none "$2" && cp "$3"/* "$2"/ && "$4" -m bufferscope replay "$2"; '
        'status=$?; ls -A "$2" | sort >&2; exit "$status"'
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", str(size_kib), str(tmp_path), str(source), sys.executable],
        cwd=Path(__file__).resolve().parents[2], capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if "permission denied" in done.stderr.lower() or "operation not permitted" in done.stderr.lower():
        pytest.skip("mounting is not allowed here")
    lines = done.stderr.splitlines()
    assert done.returncode == 1, done.stderr
    assert "No space left on device" in lines[0]
    assert lines[0].startswith("error: ")
    assert sorted(lines[1:]) == sorted(path.name for path in source.iterdir() if path.is_file())


def test_command__runs_once_at_a_time(fresh, capsys):
    directory = fresh()
    lock = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert main(["replay", str(directory)]) == 1
        assert "is in use by another analysis" in capsys.readouterr().err
    finally:
        os.close(lock)


def test_command__removes_the_scratch_directory_of_a_killed_one(fresh, no_figures):
    directory = fresh()
    (directory / derive_module.SCRATCH / "figures").mkdir(parents=True)
    (directory / derive_module.SCRATCH / "summary.json").write_text("half")
    derive(directory)
    assert not (directory / derive_module.SCRATCH).exists()
    (elsewhere := directory.parent / "elsewhere").mkdir()
    (elsewhere / "mine").write_text("x")
    (directory / derive_module.SCRATCH).symlink_to(elsewhere)
    derive(directory)
    assert (elsewhere / "mine").exists()
    assert not (directory / derive_module.SCRATCH).is_symlink()


@pytest.mark.parametrize("name", [b"a\nb\x1b[31m", b"a\xffb"])
def test_command__escapes_control_characters_of_names(fresh, capfd, no_figures, name):
    run = fresh().parent
    simulate.record_digests(run / "rep-1")
    directory = run.rename(run.with_name(os.fsdecode(name)))
    known = name.isascii()
    for words in (["replay"], ["export", "--format", "pcapng", "--output", str(directory) + ".pcapng"]):
        assert main([*words[:1], str(directory / "rep-1"), *words[1:]]) == (0 if known else 1)
        out, err = capfd.readouterr()
        assert all(line.isprintable() for line in (out + err).splitlines())
        assert "its name is not UTF-8; rename it" in err if not known else "its name" not in err
        assert len((out + err).splitlines()) == 1
    assert known or not list((directory / "rep-1").glob("*.parquet"))


def test_names__are_drawn_literally_in_every_figure(tmp_path):
    """Text between dollar signs is not drawn as a formula."""
    directory, name = tmp_path / "rep-1", "$\\frac{$"
    simulate.write_run(directory, simulate.Scenario(ccs=("reno", name), duration_ns=300_000_000))
    derive(directory)
    figures = {path.stem: html.unescape(path.read_text()) for path in (directory / "figures").glob("*.svg")}
    assert set(figures) == {*NAMES, *(f"{name}-phone" for name in NAMES)}
    assert [stem for stem, text in figures.items() if f"1 reno + 1 {name}, " not in text] == []
    assert f">flow 1 {name}<" in figures["queue_and_windows"]  # the legend


def test_envelope__keeps_every_extreme():
    import numpy as np

    random = np.random.default_rng(1)
    times = np.sort(random.random(50_000))
    values = random.normal(size=50_000)
    values[12_345], values[40_000] = 50, -60
    line = envelope(times, values, 0.0, 1.0, 300)
    assert line.shape[1] <= 600
    assert (line[1].max(), line[1].min()) == (50, -60)
    assert (np.diff(line[0]) >= 0).all()
    short = envelope(times[:10], values[:10], 0.0, 1.0)
    assert short[1].tolist() == values[:10].tolist()


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (200e6, "b/s", "200 Mb/s"),
        (0.01, "s", "10 ms"),
        (61.52e-6, "s", "61.52 µs"),
        (0, "b/s", "0 b/s"),
        (1, "s", "1 s"),
    ],
)
def test_si__writes_prefixes(value, unit, text):
    assert si(value, unit) == text


def test_numbers__are_written_for_reading():
    assert (number(1234567), number(None), number(0.123456), number(True)) == (
        "1\u2009234\u2009567",
        "–",
        "0.1235",
        "yes",
    )
    assert (percent(0.98765), percent(None)) == ("98.77 %", "–")
