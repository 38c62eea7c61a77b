# SPDX-License-Identifier: MIT
"""The record of digests: damage that keeps a file's form, files of another run, and a record that is damaged itself."""

import functools
import json
import multiprocessing
import os
import shutil
import signal
from pathlib import Path

import pytest

from analysis.papers.stored_runs import StoredRun
from analysis.tests import campaign, damages, simulate
from bufferscope.__main__ import main
from experiments.sweep.thin import thin
from lib.errors import InputError
from runs import archive, record, results, run_table
from runs.names import ENVIRONMENT, RECORD
from wire import wire

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
    """Each export of `kinds`, and each replay asked for, fails with one line on stderr that contains `said`. It prints
    nothing else and changes no file.
    """
    before = damages.files(run.parent.parent)
    replays = [[f"RUN={run}", "BUF=5p"]] * whatif + [[f"RUN={run}"]] * replay
    capsys.readouterr()
    for number, what in enumerate([*kinds, *replays]):
        assert (export(run, what) if isinstance(what, str) else main(["replay", *what])) == 1, number
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1), (number, out, err)
        assert said in err, (number, err)
        assert damages.files(run.parent.parent) == before, number


def blocks(path: Path) -> list[bytes]:
    data = path.read_bytes()
    kind = wire.BLOCK.const["BLOCK_POSTCARDS"]
    sizes = [wire.BLOCK.length + len(block.payload) for block in wire.read_blocks(data, kind)]
    assert len(sizes) > 1
    ends = [sum(sizes[: n + 1]) for n in range(len(sizes))]
    return [data[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def test_record__has_every_file_of_a_run(run):
    content = json.loads((run / RECORD).read_text())
    raw = {"spec.yaml", "postcards.bsp", "tcp.bst"} | {
        f"{name}.json" for name in ("environment", "collector", "tracer", "switch", "traffic", "idle_rtt")
    }
    assert content["raw"].keys() == raw
    derived = {name for name in damages.files(run) if not name.startswith("whatif-")} - raw - {RECORD}
    assert content["derived"].keys() == derived
    assert {"summary.json", "joined.parquet", "report.html", "figures/utilization.svg"} < derived
    assert record.raw_damage(run) == record.derived_damage(run, *derived) == []


@pytest.mark.parametrize("how", ["emptied", "removed", "doubled", "cut at its boundary", "of another run"])
def test_postcards__that_are_well_formed_but_not_the_recorded_ones_are_refused(run, stored, capsys, how):
    path = run / "postcards.bsp"
    parts = blocks(path)
    path.write_bytes(
        {
            "emptied": b"",
            "removed": b"".join(parts[:-2] + parts[-1:]),
            "doubled": b"".join([*parts, parts[-1]]),
            "cut at its boundary": b"".join(parts[:-1]),
            "of another run": (stored[1] / path.name).read_bytes(),
        }[how]
    )
    refused(
        run, capsys, "postcards.bsp: damaged, or of another run: its SHA-256 is not that in digests.json", OF_POSTCARDS
    )
    assert export(run, "csv") == 0  # needs only tables, and these are whole


def test_other_raw_files__of_another_run_changed_or_gone_are_refused(run, stored, capsys):
    whole = damages.files(run)
    for name in ("traffic.json", "spec.yaml", "tcp.bst", "idle_rtt.json"):
        path = run / name
        for data in ((stored[1] / name).read_bytes(), path.read_bytes() + b"\n", None):
            if data == whole[name]:
                continue
            path.unlink()
            if data is not None:
                path.write_bytes(data)
            if data is not None or name != "spec.yaml":  # without spec.yaml the directory is no repetition
                refused(run, capsys, f"{name}: ", ("flent",))
            path.write_bytes(whole[name] or b"")
    for name in ("goodput.bsg", "idle_rtt_after.json"):
        (run / name).write_bytes(b"")
        line = f"{name}: is not a file that the run wrote: digests.json does not have it; remove it"
        refused(run, capsys, line, ("flent",))
        (run / name).unlink()


def test_derived_files__that_differ_from_the_record_are_refused(run, stored, capsys):
    whole = damages.files(run)
    for name, kinds, whatif in (
        ("joined.parquet", (*TABLES, "flent"), False),
        ("distributions.parquet", TABLES, False),
        ("summary.json", (*TABLES, *OF_POSTCARDS), True),
        ("figures/utilization.svg", (), True),
        ("whatif-1/summary.json", (), True),
    ):
        path, data = run / name, whole[name] or b""
        for changed in (data[:9] + bytes([data[9] ^ 1]) + data[10:], (stored[1] / name).read_bytes(), None):
            path.unlink()
            if changed is not None and changed != data:
                path.write_bytes(changed)
            if name != "whatif-1/summary.json":
                refused(run, capsys, f"{name}: ", kinds, whatif=whatif, replay=False)
            elif changed is not None and changed != data:
                refused(run, capsys, "whatif-1: summary.json: damaged", kinds)
            path.write_bytes(data)
    (run / "joined.parquet").write_bytes(b"x")
    assert main(["replay", f"RUN={run}"]) == 0  # a replay writes all derived files again
    assert damages.files(run) == whole


def test_forced_replay__of_damaged_files_is_not_valid_and_stays_damaged(run, capsys):
    whole = damages.files(run)
    path = run / "postcards.bsp"
    path.write_bytes(b"".join(blocks(path)[:-1]))
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

    def fails(*_):
        raise KeyError("what it expects")

    monkeypatch.setattr("analysis.derive.analyse", fails)
    assert main(["replay", f"RUN={run}", "FORCE=1"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "switch.json: damaged" in line
    assert "what is left cannot be analysed (KeyError: 'what it expects')" in line


@pytest.mark.parametrize("how", ["changed", "deleted", "of another run", "fifo"])
def test_record__that_is_damaged_itself_is_refused(run, stored, capsys, how):
    path = run / RECORD
    text = path.read_text()
    path.unlink()
    if how == "fifo":
        os.mkfifo(path)
    elif how == "changed":
        path.write_text(text.replace('"postcards.bsp": "', '"postcards.bsp": "0', 1))
    elif how == "of another run":
        path.write_text((stored[1] / RECORD).read_text())
    refused(run, capsys, "" if how == "of another run" else "digests.json: ")


def signed(content: dict) -> str:
    """A record with any content, and the right digest of itself."""
    content = {key: value for key, value in content.items() if key != "digest"}
    return json.dumps(content | {"digest": record._digest_of(content)})


def test_record__in_another_form_is_refused_though_its_digest_is_right(run, capsys):
    content = json.loads((run / RECORD).read_text())
    raw = content["raw"]
    names = ("", "a\0b", "\ud800", "\x1b[31m", "x" * 300, "../spec.yaml", "/etc/hostname", "./spec.yaml")
    wrong = [*({**raw, name: "0"} for name in names), {**raw, "spec.yaml": 1}, list(raw), 5, "spec.yaml"]
    forms = [content | {part: value} for part in ("raw", "derived") for value in wrong]
    forms += [{key: value for key, value in content.items() if key != part} for part in ("raw", "derived")]
    for form in forms:
        (run / RECORD).write_text(signed(form))
        with pytest.raises(ValueError, match="does not give each part"):
            record.read(run)
    refused(run, capsys, "digests.json: does not give each part")


def test_run_without_a_record__is_read_with_a_note(run, capsys):
    environment = json.loads((run / ENVIRONMENT).read_text())
    del environment[record.MARK]
    (run / ENVIRONMENT).write_text(json.dumps(environment))  # as an earlier version left it
    (run / RECORD).unlink()
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
    thin(run, "summary")
    assert run_table.read_repetition(run, run.parent)["valid"] is True


def test_recording__writes_the_record_before_environment_json(tmp_path, monkeypatch):
    repetition = tmp_path / "rep-1"
    simulate.write_run(repetition, simulate.Scenario(duration_ns=100_000_000, warmup_ns=50_000_000))
    world = json.loads((repetition / ENVIRONMENT).read_text())
    (repetition / ENVIRONMENT).unlink()
    (repetition / "logs").mkdir()
    (repetition / "logs/x").write_text("x")
    with monkeypatch.context() as broken:
        broken.setattr(results, "_write", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(OSError, match="No space"):
            results.record(repetition, world)
    assert not results.is_recorded(repetition)
    assert (repetition / RECORD).exists()
    results.record(repetition, world)
    assert record.raw_damage(repetition) == []
    assert "logs/x" not in json.loads((repetition / RECORD).read_text())["raw"]
    with campaign.undrawn():
        assert main(["replay", str(repetition)]) in (0, 2)
    assert json.loads((repetition / RECORD).read_text())["derived"]


def test_table_of_runs__takes_nothing_from_damaged_files(run):
    """A damaged summary or environment makes a row that is not valid; figures of several runs refuse that file."""
    place = {"run": "run/rep-1", "kept": "all"}
    for name in ("summary.json", "environment.json"):
        path = run / name
        data = path.read_text()
        path.write_text(data.replace("0", "1", 1))
        (row,) = run_table.read(run.parent.parent).iter_rows(named=True)
        assert row["valid"] is False
        assert row["reasons"].startswith(f"{name}: damaged, or of another run")
        with pytest.raises(InputError, match=f"{name}: damaged"):
            _ = getattr(StoredRun(place, run.parent.parent), name.removesuffix(".json"))
        path.write_text(data)
    (run / "tcp.parquet").write_bytes(b"x")
    with pytest.raises(InputError, match=r"tcp.parquet: damaged"):
        StoredRun(place, run.parent.parent).table("tcp")
    (row,) = run_table.read(run.parent.parent).iter_rows(named=True)
    assert row["valid"] is True


def test_measure__of_a_run_without_tables_is_the_stored_one(run):
    stored = StoredRun({"run": "run/rep-1", "kept": "all"}, run.parent.parent)
    assert stored.measure("drops", int, lambda run: run.table("postcards").height) > 0
    pairs = list[tuple[int, float | None]]
    value = stored.measure("pairs", pairs, lambda _: [(1, 0.1), (2, None)])
    assert value == [(1, 0.1), (2, None)]
    assert record.derived_damage(run, "measures.json") == []
    assert archive.needs_no_table(run)

    (run / "THINNED").write_text("summary")
    assert stored.measure("pairs", pairs, lambda _: None) == value
    with pytest.raises(InputError, match=r"measures.json: has no value of other; remove \S+, and run the sweep again"):
        stored.measure("other", int, lambda _: 1)
    with pytest.raises(InputError, match=r"measures.json: pairs: Input should be a valid number"):
        stored.measure("pairs", float, lambda _: 1.0)
    (run / "measures.json").write_text("{}")
    with pytest.raises(InputError, match=r"measures.json: damaged"):
        stored.measure("pairs", pairs, lambda _: None)


@pytest.mark.parametrize("text", ["{", "[1]", "3", '{"drops": 7}', "[" * 100_000])
def test_measure__replaces_a_damaged_file_where_tables_are(run, text):
    stored = StoredRun({"run": "run/rep-1", "kept": "all"}, run.parent.parent)
    stored.measure("drops", int, lambda _: 7)
    (run / "measures.json").write_text(text)
    assert not archive.needs_no_table(run) or text == '{"drops": 7}'
    assert stored.measure("drops", int, lambda _: 7) == 7
    assert record.derived_damage(run, "measures.json") == []


def test_measures__of_two_processes_at_once_are_all_stored(run):
    stored = StoredRun({"run": "run/rep-1", "kept": "all"}, run.parent.parent)
    with multiprocessing.get_context("fork").Pool(4) as pool:
        pool.map(functools.partial(_measure, stored), range(24))
    assert len(json.loads((run / "measures.json").read_text())) == 24
    assert record.derived_damage(run, "measures.json") == []


def _measure(stored, number):
    stored.measure(f"value {number}", int, lambda _: number)


def test_fifo__as_any_file_of_a_run_is_refused_at_once(run, capsys):
    """The run has no record of digests, so only the type of a FIFO shows that the FIFO is no file of the run."""
    environment = json.loads((run / ENVIRONMENT).read_text())
    del environment[record.MARK]
    (run / ENVIRONMENT).write_text(json.dumps(environment))
    (run / RECORD).unlink()
    for name in sorted(path.name for path in run.iterdir() if path.is_file()):
        path = run / name
        data = path.read_bytes()
        path.unlink()
        os.mkfifo(path)
        for call in (
            lambda: export(run, "csv"),
            lambda: export(run, "pcapng"),
            lambda: export(run, "flent"),
            lambda: main(["replay", f"RUN={run}"]),
            lambda: run_table.read(run.parent.parent) is None,
        ):
            _, _, failure = campaign.bounded(call)
            assert not failure, (name, failure)
            if (made := run.parent.parent / "x.flent.gz").is_dir():
                shutil.rmtree(made)
            made.unlink(missing_ok=True)
        path.unlink()
        path.write_bytes(data)
    capsys.readouterr()


def test_fifo__in_place_of_a_directory_to_write_in_is_removed(run, capsys):
    for name, words in ((".derived", []), (".whatif", ["BUF=5p"])):
        os.mkfifo(run / name)
        call = functools.partial(main, ["replay", f"RUN={run}", *words])
        assert campaign.bounded(call) == (0, [], "")
        assert not (run / name).exists()


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


@pytest.mark.parametrize("kind", damages.KINDS)
def test_campaign__finds_no_silent_difference(tried, kind):
    with campaign.undrawn():
        assert [line for seed in range(5) for line in tried.findings(kind, seed)[0]] == []


@pytest.mark.long
@pytest.mark.parametrize("kind", damages.KINDS)
def test_campaign__finds_none_in_many_variants(tried, kind):
    with campaign.undrawn():
        assert [line for seed in range(1000, 1150) for line in tried.findings(kind, seed)[0]] == []
