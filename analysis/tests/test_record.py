# SPDX-License-Identifier: MIT
"""The record of digests: damage that keeps a file's form, files of another run, and a record that is damaged itself."""

import functools
import json
import os
import shutil
import signal
from pathlib import Path
from unittest.mock import Mock

import pytest

from analysis.papers.paper_runs import PaperRun
from analysis.tests import campaign, damages, simulate
from bufferscope.__main__ import main
from experiments.sweep.thin import thin
from lib import files
from lib.errors import InputError
from runs import record, results, run_table
from runs.names import ENVIRONMENT, RECORD

OF_POSTCARDS = ("pcapng", "telemetry-report", "flent")
TABLES = ("csv", "parquet")


@pytest.fixture(scope="session")
def stored(tmp_path_factory):
    """Two small runs as the runner and the analysis leave them, each with a what-if."""
    with campaign.undrawn():
        return [campaign.made(tmp_path_factory.mktemp(name) / "rep-1", seed) for seed, name in enumerate("ab", 1)]


@pytest.fixture
def run(stored, tmp_path):
    """A copy of the first stored run."""
    with campaign.undrawn():
        yield Path(shutil.copytree(stored[0], tmp_path / "run" / "rep-1"))


def export(run, kind) -> int:
    return main(["export", str(run), "--format", kind, "--output", str(run.parent.parent / "x.flent.gz")])


def refused(run, capsys, said: str, kinds=(*OF_POSTCARDS, *TABLES), whatif=True, replay=True) -> None:
    """Each export of `kinds`, and each replay, fails with one line on stderr, has `said` in it, and changes no file."""
    before = damages.files(run.parent.parent)
    replays = [[f"RUN={run}", "BUF=5p"]] * whatif + [[f"RUN={run}"]] * replay
    capsys.readouterr()
    for number, what in enumerate([*kinds, *replays]):
        assert (export(run, what) if isinstance(what, str) else main(["replay", *what])) == 1, number
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1), (number, out, err)
        assert said in err, (number, err)
        assert damages.files(run.parent.parent) == before, number


def without_record(run) -> None:
    """As an earlier version left the run."""
    environment = json.loads((run / ENVIRONMENT).read_text())
    del environment[record.MARK]
    (run / ENVIRONMENT).write_text(json.dumps(environment))
    (run / RECORD).unlink()


def test_record__has_every_file_of_a_run(run):
    content = json.loads((run / RECORD).read_text())
    documents = {f"{name}.json" for name in simulate.documents(simulate.Scenario(), simulate.Truth())}
    raw = {"spec.yaml", "postcards.bsp", "tcp.bst"} | documents
    derived = {name for name in damages.files(run) if not name.startswith("whatif-")} - raw - {RECORD}
    assert (content["raw"].keys(), content["derived"].keys()) == (raw, derived)
    assert {"summary.json", "joined.parquet", "report.html", "figures/utilization.svg"} < derived
    assert record.damage(run, derived=derived, all_raw=True) == []


def test_files__that_are_changed_of_another_run_or_gone_are_refused(run, stored, capsys):
    """Commands refuse the files that they need: (name, exports, what-if, replay)."""
    whole = damages.files(run)
    for name, kinds, whatif, replay in (
        ("postcards.bsp", OF_POSTCARDS, True, True),
        ("traffic.json", ("flent",), True, True),
        ("tcp.bst", ("flent",), True, True),
        ("joined.parquet", (*TABLES, "flent"), False, False),
        ("distributions.parquet", TABLES, False, False),
        ("summary.json", (*TABLES, *OF_POSTCARDS), True, False),
        ("figures/utilization.svg", (), True, False),
        ("whatif-1/summary.json", (), True, False),
    ):
        path, data = run / name, whole[name] or b""
        for changed in (data[:9] + bytes([data[9] ^ 1]) + data[10:], (stored[1] / name).read_bytes(), None):
            path.unlink()
            if changed is not None:
                path.write_bytes(changed)
            elif name.startswith("whatif"):
                continue
            if changed != data:
                refused(run, capsys, Path(name).name, kinds, whatif, replay)
        path.write_bytes(data)
    (run / "goodput.bsg").write_bytes(b"")
    refused(run, capsys, "goodput.bsg: is not a file that the run wrote", ("flent",))
    (run / "goodput.bsg").unlink()
    (run / "joined.parquet").write_bytes(b"x")
    assert main(["replay", f"RUN={run}"]) == 0  # a replay writes all derived files again
    assert damages.files(run) == whole


def test_forced_replay__of_damaged_files_is_not_valid_and_stays_damaged(run, capsys):
    whole = damages.files(run)
    path = run / "postcards.bsp"
    simulate.write_postcards(run, simulate.read_postcards(run)[:-1])
    assert main(["replay", f"RUN={run}", "FORCE=1"]) == 2
    summary = json.loads((run / "summary.json").read_text())
    assert summary["valid"] is False
    assert summary["reasons"][0].startswith("postcards.bsp: damaged, or of another run")
    refused(run, capsys, "postcards.bsp: damaged", OF_POSTCARDS)
    path.write_bytes(whole[path.name] or b"")
    assert main(["replay", f"RUN={run}"]) == 0
    assert damages.files(run) == whole
    (run / "spec.yaml").write_text((run / "spec.yaml").read_text().replace("rtt_ns: 10000000", "rtt_ns: 1"))
    assert main(["replay", f"RUN={run}", "FORCE=1"]) == 1  # with a changed spec.yaml every number would be wrong
    assert "spec.yaml: damaged" in capsys.readouterr().err


def test_forced_replay__of_unusable_raw_files_is_one_line(run, capsys, monkeypatch):
    (run / "switch.json").write_text("{}")
    monkeypatch.setattr("analysis.replay.derive.analyse", lambda *_: dict[str, int]()["what it expects"])
    assert main(["replay", f"RUN={run}", "FORCE=1"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "switch.json: damaged" in line
    assert "what is left cannot be analysed (KeyError: 'what it expects')" in line


def test_record__that_is_damaged_itself_is_refused(run, stored, capsys):
    path = run / RECORD
    text = path.read_text()
    for said, damaged in (
        ("digests.json: ", text.replace('"postcards.bsp": "', '"postcards.bsp": "0', 1)),
        ("", (stored[1] / RECORD).read_text()),
    ):
        path.write_text(damaged)
        refused(run, capsys, said)
    path.unlink()
    os.mkfifo(path)
    refused(run, capsys, "digests.json: ")


def signed(content: dict) -> str:
    """A record with any content, and the right digest of itself."""
    content = {key: value for key, value in content.items() if key != "digest"}
    return json.dumps(content | {"digest": record._digest_of(content)})


def test_record__in_another_form_is_refused_though_its_digest_is_right(run):
    content = json.loads((run / RECORD).read_text())
    raw = content["raw"]
    names = ("", "a\0b", "\ud800", "\x1b[31m", "x" * 300, "../spec.yaml", "/etc/hostname", "./spec.yaml")
    wrong = [*({**raw, name: "0"} for name in names), {**raw, "spec.yaml": 1}, list(raw), 5]
    forms = [content | {part: value} for part in ("raw", "derived") for value in wrong]
    forms += [{key: value for key, value in content.items() if key != part} for part in ("raw", "derived")]
    for form in forms:
        (run / RECORD).write_text(signed(form))
        with pytest.raises(ValueError, match="does not give each part"):
            record.read(run)


def test_run_without_a_record__is_read_with_a_note(run, capsys):
    without_record(run)
    for call in (
        lambda: main(["replay", f"RUN={run}"]),
        lambda: main(["replay", f"RUN={run}", "BUF=5p"]),
        lambda: export(run, "pcapng"),
    ):
        capsys.readouterr()
        assert call() == 0
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"note: {run}: has no digests of its raw files (")
    assert json.loads((run / RECORD).read_text())["raw"] is None  # the analysis cannot know which bytes were recorded
    (run.parent.parent / "x.flent.gz").unlink()
    (run / "joined.parquet").write_bytes(b"x")  # but the analysis knows its own files
    refused(run, capsys, "joined.parquet: damaged", TABLES, whatif=False, replay=False)


def test_thinned_run__is_whole(run, capsys):
    thin(run, "tables")
    assert export(run, "csv") == 0
    shutil.rmtree(run.parent.parent / "x.flent.gz")
    (run / "joined.parquet").unlink()
    refused(run, capsys, "joined.parquet: missing", TABLES, whatif=False, replay=False)


def test_recording__writes_the_record_before_environment_json(tmp_path, monkeypatch):
    repetition = tmp_path / "rep-1"
    simulate.write_run(repetition, simulate.Scenario(duration_ns=100_000_000, warmup_ns=50_000_000))
    world = json.loads((repetition / ENVIRONMENT).read_text())
    (repetition / ENVIRONMENT).unlink()
    (repetition / "logs").mkdir()
    (repetition / "logs/x").write_text("x")
    with monkeypatch.context() as broken:
        full = Mock(as_json=files.as_json, replacing=Mock(side_effect=OSError(28, "No space left on device")))
        broken.setattr(results, "files", full)
        with pytest.raises(OSError, match="No space"):
            results.record(repetition, world)
    assert (results.is_recorded(repetition), (repetition / RECORD).exists()) == (False, True)
    results.record(repetition, world)
    assert record.damage(repetition, all_raw=True) == []
    assert "logs/x" not in json.loads((repetition / RECORD).read_text())["raw"]


@pytest.fixture
def place(run):
    """The run as figures of several runs see it."""
    return PaperRun({"run": "run/rep-1", "kept": "all"}, run.parent.parent)


def test_table_of_runs__takes_nothing_from_damaged_files(run, place):
    """A damaged summary or environment makes a row that is not valid; figures of several runs refuse that file."""
    run_table.write(run.parent.parent)
    for name, attribute in (
        ("summary.json", "summary"), ("environment.json", "congestion_controls"), ("spec.yaml", "summary"),
    ):  # fmt: skip
        path = run / name
        data = path.read_text()
        path.write_text(data.replace("0", "1", 1))
        (row,) = run_table.read(run.parent.parent).iter_rows(named=True)
        assert row["valid"] is False
        assert row["reasons"].startswith(f"{name}: damaged, or of another run")
        if name == "spec.yaml":  # without it, every parameter would be a guess
            assert row["clock"] is row["flows"] is row["point"] is None
        with pytest.raises(InputError, match=f"{name}: damaged"):
            _ = getattr(place, attribute)
        path.write_text(data)
    (run / "tcp.parquet").write_bytes(b"x")
    with pytest.raises(InputError, match=r"tcp.parquet: damaged"):
        place.table("tcp")
    assert run_table.read(run.parent.parent)["valid"].to_list() == [True]


def test_fifo__as_any_file_of_a_run_is_refused_at_once(run, tmp_path):
    """The run has no record of digests, so only the type of a FIFO shows that the FIFO is no file of the run."""
    without_record(run)
    replay, table = lambda: main(["replay", f"RUN={run}"]), lambda: run_table.read(tmp_path) is None
    calls = [functools.partial(export, run, kind) for kind in ("csv", "pcapng", "flent")] + [replay, table]
    for name in ("spec.yaml", "postcards.bsp", "tcp.bst", "switch.json", ENVIRONMENT, "summary.json", "joined.parquet"):
        path = run / name
        data = path.read_bytes()
        path.unlink()
        os.mkfifo(path)
        for call in calls:
            _, _, failure = campaign.bounded(call)
            assert not failure, (name, failure)
            made = tmp_path / "x.flent.gz"
            shutil.rmtree(made) if made.is_dir() else made.unlink(missing_ok=True)
        path.unlink()
        path.write_bytes(data)


def test_campaign__finds_a_hang_that_the_command_could_catch(monkeypatch):
    monkeypatch.setattr(campaign, "LONGEST_S", 1)

    def hangs() -> int:
        try:
            signal.pause()
        except OSError:  # as commands do
            return 1
        return 0

    assert campaign.bounded(hangs)[2].startswith("Hang: did not end")


@pytest.fixture(scope="session")
def tried(stored, tmp_path_factory):
    """The outcomes of every command on the undamaged first run."""
    with campaign.undrawn():
        return campaign.Campaign(stored[0], stored[1], tmp_path_factory.mktemp("campaign"))


@pytest.mark.parametrize("seeds", [range(5), pytest.param(range(1000, 1150), marks=pytest.mark.long)], ids=str)
@pytest.mark.parametrize("kind", damages.KINDS)
def test_campaign__finds_no_silent_difference(tried, kind, seeds):
    with campaign.undrawn():
        assert [line for seed in seeds for line in tried.findings(kind, seed)[0]] == []
