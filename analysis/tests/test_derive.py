# SPDX-License-Identifier: MIT
"""The replay command: its files, exit status and one-line errors. Earlier results survive every failure."""

import contextlib
import fcntl
import html
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from analysis.figures import names
from analysis.figures.common import envelope
from analysis.replay import derive as derive_module
from analysis.replay.derive import derive
from analysis.tests import damages, simulate
from analysis.tests.conftest import DRAWN
from analysis.tests.documents import change, change_spec
from bufferscope.__main__ import main
from model.experiment import Experiment

ROOT = Path(__file__).resolve().parents[2]
NAMES = names(Experiment.model_validate(simulate.spec(simulate.Scenario())))  # the figures of a run with long flows
DERIVED = [
    "distributions.parquet", "joined.parquet", "postcards.parquet", "report.html", "summary.json", "tcp.parquet",
]  # fmt: skip


def refused(directory, capsys, *words):
    """Asserts that replay refuses in one line and changes nothing. Returns the line."""
    before = damages.files(directory)
    capsys.readouterr()
    assert main(["replay", str(directory), *words]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert damages.files(directory) == before
    return line


def test_command__makes_every_file_and_says_the_verdict(drawn):
    directory, out = drawn
    assert re.fullmatch(r".*rep-1: utilization 9\d\.\d\d%, \d+ drops, valid\n", out)
    assert all((directory / name).stat().st_size for name in DERIVED)
    figures = {f"{name}{end}" for name in NAMES for end in (".png", ".svg", "-phone.svg")}
    assert {path.name for path in (directory / "figures").iterdir()} == figures
    assert all(4000 < (directory / "figures" / name).stat().st_size < 2_000_000 for name in figures)
    assert not (directory / derive_module.SCRATCH).exists()
    assert "flows_distribution" not in json.loads((directory / "summary.json").read_text())  # only of many flows


def test_report__is_one_file_that_fetches_nothing(drawn):
    page = (drawn[0] / "report.html").read_text()
    assert page.count("data:image/svg+xml;base64,") == 2 * len(NAMES)  # each figure for a large screen and for a phone
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:|//|\.|/)""", page)
    assert "<strong>Valid.</strong>" in page
    assert "NOT VALID" not in page


def test_command__takes_a_run_with_several_repetitions(fresh, capsys, blank):
    """One without losses, one with IPv6 addresses."""
    directory = fresh("no_loss")
    simulate.write_run(directory.parent / "rep-2", simulate.Scenario(ipv6=True, duration_ns=300_000_000))
    assert main(["replay", str(directory.parent)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    summary = json.loads((directory / "summary.json").read_text())
    assert (summary["valid"], summary["drops"]) == (True, 0)
    page = html.unescape((directory.parent / "rep-2/report.html").read_text())
    assert "[fd77::1]:30000 > [fd77::2]:5201<" in page


def test_command__of_a_run_that_keeps_its_summary_writes_neither_tables_nor_figures(tmp_path, drawn, capsys):
    directory = tmp_path / "rep-1"
    simulate.write_run(directory, DRAWN)
    assert main(["replay", str(directory), "KEEP=summary", "ALONE=1"]) == 0
    assert sorted(path.name for path in directory.rglob("*.parquet")) == ["distributions.parquet"]
    assert not [*directory.rglob("*.svg"), *directory.rglob("*.png")]
    page = (directory / "report.html").read_text()
    assert "no figures were drawn" in page
    assert "<img" not in page
    for name in ("summary.json", "distributions.parquet"):
        assert (directory / name).read_bytes() == (drawn[0] / name).read_bytes()
    assert "KEEP=some" in refused(directory, capsys, "KEEP=some")


def test_run_that_is_not_valid__keeps_everything_and_says_so_loudly(fresh):
    directory = fresh()
    (directory / "collector.json").unlink()
    summary, _ = derive(directory, keep="summary")
    assert not summary["valid"]
    assert all((directory / name).exists() for name in DERIVED)
    page = (directory / "report.html").read_text()
    assert "<title>NOT VALID: simulated" in page
    assert "collector.json: missing" in page
    assert "NOT VALID" in (directory / "figures/utilization.svg").read_text()


@pytest.mark.parametrize(("access_bps", "is_valid"), [(10**13, True), (2_000_000, False)])
def test_access_links__are_checked_packet_by_packet(fresh, undrawn, access_bps, is_valid):
    directory = fresh()
    groups = simulate.spec(simulate.Scenario())["groups"]
    change_spec(directory, groups=[group | {"access_bps": access_bps} for group in groups])
    reasons = derive(directory)[0]["reasons"]
    assert all(reason.startswith("access: ") for reason in reasons)
    assert (reasons == []) is is_valid


def test_report__escapes_text_from_files(fresh, blank):
    directory = fresh()
    change(directory, "traffic", ("groups", 0, "cc"), "<script>x</script>")
    change(directory, "traffic", ("flows", 0, "cc"), "<script>x</script>")
    change(directory, "environment", ("kernel", "release"), "<script>y</script>")
    derive(directory)
    page = (directory / "report.html").read_text()
    assert not re.search("<script>[xy]", page)
    assert "&lt;script&gt;x" in page


@pytest.mark.parametrize("lack", ["packets", "everything but noise"])
def test_derive__makes_figures_and_report_of_little_data(fresh, lack):
    directory = fresh("one_flow")
    body = b""
    if lack != "packets":  # an intact block of random values
        (directory / "traffic.json").unlink()
        size, version, chance = (
            simulate.wire.STORED_POSTCARD.itemsize,
            simulate.CARD["POSTCARD_VERSION"],
            random.Random(1),
        )
        rows = (chance.randbytes(8) + bytes([version]) + chance.randbytes(size - 9) for _ in range(3000))
        body = simulate.wire.encode_block(1, version, size, b"".join(rows))
    (directory / "postcards.bsp").write_bytes(body)
    (directory / "tcp.bst").write_bytes(b"")
    summary, damage = derive(directory)
    assert (summary["valid"], damage) == (False, [])
    assert "queue: no packet arrived; see logs/" in summary["reasons"]
    assert (directory / "report.html").exists()


def test_damage__is_one_line_and_readable_parts_are_used(fresh, capsys, blank):
    directory = fresh()
    path = directory / "postcards.bsp"
    path.write_bytes(path.read_bytes()[:60_000])
    assert main(["replay", str(directory)]) == 2
    out, err = capsys.readouterr()
    assert "NOT VALID" in out
    assert len(err.splitlines()) == 1
    assert "postcards.bsp: damaged or cut off at byte" in err
    assert json.loads((directory / "summary.json").read_text())["valid"] is False


def test_damage__does_not_replace_earlier_results_without_force(fresh, capsys, blank):
    directory = fresh()
    derive(directory)
    path = directory / "tcp.bst"
    whole = path.read_bytes()
    path.write_bytes(whole[:5000] + bytes([whole[5000] ^ 4]) + whole[5001:])
    assert "earlier results are kept (--force replaces them)" in refused(directory, capsys)
    path.write_bytes(whole)
    switch = (directory / "switch.json").read_text()
    (directory / "switch.json").write_text("{}")
    assert "they are kept (--force replaces them)" in refused(directory, capsys)
    assert main(["replay", str(directory), "--force"]) == 0
    assert json.loads((directory / "summary.json").read_text())["valid"] is False
    assert main(["replay", str(directory)]) == 0  # results that are not valid may be replaced
    (directory / "switch.json").write_text(switch)
    for earlier in ("{", "[]", '{"valid": 1}'):  # and so may results that cannot be read
        (directory / "summary.json").write_text(earlier)
        assert derive(directory)[0]["valid"] is True


def test_command__refuses_with_one_line_and_changes_nothing(fresh, tmp_path, capsys, blank):
    directory = fresh()
    derive(directory)
    for name, way, said in (
        ("spec.yaml", "missing", "spec.yaml: missing"),
        ("postcards.bsp", "missing", "postcards.bsp: missing"),
        ("tcp.parquet", "directory", "tcp.parquet: is in the way of a result"),
        ("figures/utilization.svg", "directory", "figures/utilization.svg: is in the way of a result"),
        ("figures", "link", "figures: is in the way of a result"),  # it could lead into another run
    ):
        path = directory / name
        path.rename(away := tmp_path / "away")
        if way == "directory":
            path.mkdir()
        elif way == "link":
            path.symlink_to(away)
        assert said in refused(directory, capsys), name
        path.rmdir() if way == "directory" else path.unlink(missing_ok=True)
        away.rename(path)
    (directory / "spec.yaml").write_text("spec_version: 2")
    assert "use a newer bufferscope" in refused(directory, capsys)
    assert main(["replay", str(tmp_path / "nowhere")]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
    lock = os.open(directory, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    assert "is in use by another analysis" in refused(directory, capsys)
    os.close(lock)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")
@pytest.mark.software
@pytest.mark.parametrize("room_kib", [300, 2500], ids=["for columns", "for tables and figures"])
def test_full_disk__keeps_earlier_results(tmp_path, drawn, room_kib):
    """A file system with too little room, in a mount namespace of its own."""
    size_kib = sum(path.stat().st_size for path in drawn[0].rglob("*") if path.is_file()) // 1024 + room_kib
    script = (
        'mount -t tmpfs -o size="$1"k none "$2" && cp -r "$3"/. "$2"/ && "$4" -m bufferscope replay "$2"; '
        'status=$?; diff -r "$3" "$2" >&2 || exit 7; exit "$status"'
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", str(size_kib), str(tmp_path), str(drawn[0]), sys.executable],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if "permission denied" in done.stderr.lower() or "operation not permitted" in done.stderr.lower():
        pytest.skip("mounting is not allowed here")
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1, done.stderr
    assert line.startswith("error: ")
    assert "No space left on device" in line


def test_command__removes_the_scratch_directory_of_a_killed_one(fresh, blank):
    directory = fresh()
    os.mkfifo(directory / derive_module.SCRATCH)
    derive(directory)
    assert not (directory / derive_module.SCRATCH).exists()
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


def columns_of(pid, directory) -> list[str]:
    """The files directly in `directory` that a process has open for writing."""
    found = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            target, flags = link.readlink(), (link.parent.with_name("fdinfo") / link.name).read_text().split()[3]
            found += [str(target)] * (target.parent == directory and int(flags, 8) & os.O_ACCMODE != os.O_RDONLY)
    return found


def test_command__killed_leaves_earlier_results_and_no_file_of_columns(tmp_path, drawn):
    directory = Path(shutil.copytree(drawn[0], tmp_path / "rep-1"))
    before = damages.files(directory)
    replay = subprocess.Popen([sys.executable, "-m", "bufferscope", "replay", directory], cwd=ROOT)
    until = time.monotonic() + 60
    while not (has := columns_of(replay.pid, directory)):
        assert time.monotonic() < until
        assert replay.poll() is None
    assert all(name.endswith(" (deleted)") for name in has)
    replay.kill()
    replay.wait()
    shutil.rmtree(directory / derive_module.SCRATCH, ignore_errors=True)  # the next replay removes it
    assert damages.files(directory) == before


@pytest.mark.parametrize("name", [b"a\nb\x1b[31m", b"a\xffb"])
def test_command__escapes_control_characters_of_names(fresh, capfd, blank, name):
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


def test_envelope__keeps_every_extreme():
    chance = np.random.default_rng(1)
    times = np.sort(chance.random(50_000))
    values = chance.normal(size=50_000)
    values[12_345], values[40_000] = 50, -60
    line = envelope(times, values, 0.0, 1.0, 300)
    assert line.shape[1] <= 600
    assert (line[1].max(), line[1].min()) == (50, -60)
    assert (np.diff(line[0]) >= 0).all()
    short = envelope(times[:10], values[:10], 0.0, 1.0)
    assert short[1].tolist() == values[:10].tolist()
