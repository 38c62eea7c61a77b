# SPDX-License-Identifier: MIT
"""A broken, doubled or damaged part of a source is named in one line, and nothing is left behind."""

import gzip
import json
import os
import random
import shutil
from functools import partial
from pathlib import Path

import pytest

from analysis import derive as derive_module
from analysis.analyse import analyse
from analysis.figures import drawing, utilization
from analysis.importing import command, sources
from analysis.tests import campaign, foreign, simulate
from analysis.tests.imports import CONDITIONS, EXPERIMENT, pcap, refused
from bufferscope.__main__ import main
from lib.errors import InputError

pytestmark = pytest.mark.usefixtures("undrawn")


BREAKS = [  # a change to the text files, and the error line
    ("trace.tr", "snd_cwnd=10 ", "snd_cwnd=ten ",
     "trace.tr, line 3: snd_cwnd is 'ten'; allowed: a whole number from 0 to 4294967295"),
    ("trace.tr", " snd_una=",  " una=",
     "trace.tr, line 3: snd_una is empty; allowed: a hexadecimal number of at most 32 bits"),
    ("trace.tr", "src=10.77.0.1:", "src=10.77.0.999:", "trace.tr, line 3: '10.77.0.999' is not an IP address"),
    ("trace.tr", "[000] ..s2 ", "[000",
     "is malformed; allowed: a line of trace_pipe: comm-pid [cpu] flags seconds: event: fields"),
    ("postcards.tr", "dst_port=5201", "dst_port=75201",
     "postcards.tr, line 1: dst_port is '75201'; allowed: a whole number from 0 to 65535"),
    ("postcards.tr", ": postcard: ", ": postcart: ", "postcards.tr, line 1: "),
    ("config.json", '"id"', "id", "config.json: is not JSON: "),
]  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new", "answer"), BREAKS)
def test_text__that_is_broken_gets_one_line(tmp_path, recorded, capsys, name, old, new, answer):
    foreign.write_text(tmp_path / "run", *recorded)
    path = tmp_path / "run" / name
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new, 1))
    assert main(["import", f"FROM={tmp_path}/run", f"OUTPUT={tmp_path}/out"]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert answer in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ((), ["FROM is missing", "OUTPUT is missing"]),
        (("FROM=/nowhere", "OUTPUT=x"), ["/nowhere: does not exist; allowed: a directory with trace.tr"]),
        (("FROM=x", "OUTPUT=x", "RATE=fast", "SPEED=1"), ["RATE", "SPEED is not a parameter of import; allowed: FROM"]),
        (
            ("FROM=x", "OUTPUT=x", "RATE=0bit", "RTT=1ns", "BUF=0p", "CC=m$x$"),
            ["1bit to 1000tbit", "1us to 1000s", "1p to 1000000000p", "as in cubic"],
        ),
        (("FROM=x", "OUTPUT=x", "RATE=999999999999999999tbit"), ["RATE=999999999999999999tbit is out of bounds"]),
        (("FROM=postgresql:///x?host=/nowhere", "OUTPUT=x"), ["allowed: a running PostgreSQL"]),
    ],
)
def test_command__says_what_is_wrong(words, answer, capsys):
    assert main(["import", *words]) == 1
    err = capsys.readouterr().err
    assert len(err.splitlines()) == len(answer)
    assert all(part in err for part in answer)


def test_files__that_are_there_twice_are_refused(tmp_path, recorded, capsys):
    run, out = tmp_path / "run", tmp_path / "out"
    foreign.write_text(run, *recorded)
    shutil.copytree(run, tmp_path / "copy")
    assert f"{run}/trace.tr: FROM names it, or a copy" in refused(f"{run}/trace.tr,{run}/trace.tr", out, capsys)
    (tmp_path / "copy/config.json").unlink()
    both = f"{run}/trace.tr,{tmp_path}/copy/trace.tr"
    assert "copy/trace.tr: FROM names it, or a copy of it, twice" in refused(both, out, capsys)
    (run / "trace.tr.gz").write_bytes(gzip.compress((run / "trace.tr").read_bytes()))
    assert "has trace.tr and trace.tr.gz; allowed: one of them" in refused(run, out, capsys)
    foreign.write_csv(tmp_path / "csv", foreign.tables(*recorded))
    (tmp_path / "csv/traces.csv.gz").write_bytes(gzip.compress((tmp_path / "csv/traces.csv").read_bytes()))
    assert "has traces as traces.csv and traces.csv.gz" in refused(tmp_path / "csv", out, capsys, EXPERIMENT)


@pytest.mark.parametrize("end", [".csv", ".csv.gz"])
def test_tables__are_those_of_the_directory_even_if_its_name_is_a_glob_pattern(tmp_path, recorded, end, monkeypatch):
    scratch = tmp_path / "it's [1]* tmp"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    for name in ("run?", "run1", "q[1]*", "q1"):
        foreign.write_csv(tmp_path / name, foreign.tables(*recorded))
        if end.endswith(".gz"):
            for path in (tmp_path / name).iterdir():
                path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
                path.unlink()
        ((_, read),) = sources.find(sources.ImportRequest([str(tmp_path / name)], tmp_path, foreign.EXPERIMENT))
        experiment = read()
        assert experiment.cards is not None
        assert len(experiment.cards.columns["mono_ns"]) == len(recorded[1].cards)


BAD_TABLES = [  # table, a change of its lines, the error line
    (
        "postcard_traces",
        lambda text: text[:-4],
        "its last line does not end with a newline, so the file was cut off; allowed: the output",
    ),
    ("postcard_traces", lambda text: "", "is empty; allowed: the output"),
    ("traces", lambda text: text.replace("experiment_id", "experiment"), "traces has no column experiment_id; allowed"),
    (
        "experiments",
        lambda text: text.replace("another", foreign.EXPERIMENT),
        "has 2 rows; allowed: one row for each",
    ),
    ("experiments", lambda text: text.replace("another", ""), "id None has 1 rows; allowed: one row for each id"),
]


@pytest.mark.parametrize(("table", "change", "answer"), BAD_TABLES)
def test_tables__that_are_broken_get_one_line(tmp_path, recorded, capsys, table, change, answer):
    foreign.write_csv(tmp_path / "csv", foreign.tables(*recorded))
    path = tmp_path / f"csv/{table}.csv"
    path.write_text(change(path.read_text()))
    line = refused(tmp_path / "csv", tmp_path / "out", capsys, EXPERIMENT)
    assert f"error: {path}" in line
    assert answer in line


def test_tables__without_a_column_or_with_it_under_two_names_get_one_line(tmp_path, recorded):
    """Removes each column in turn. Of each column with two allowed names, adds a copy under the second name. Not every
    change is refused, because the import does not need every column.
    """
    data_set = {name: (columns, rows[:20]) for name, (columns, rows) in foreign.tables(*recorded).items()}
    names = {"absolute_timestamp": "time", "srtt_us": "srtt"}
    changes = [
        (table, [name for name in columns if name != column], [row[:at] + row[at + 1 :] for row in rows], column)
        for table, (columns, rows) in data_set.items()
        for at, column in enumerate(columns)
    ]
    changes += [
        (table, [*columns, name], [[*row, row[columns.index(column)]] for row in rows], column)
        for table, (columns, rows) in data_set.items()
        for column, name in names.items()
        if column in columns
    ]
    refused, said = set(), []
    for number, (table, columns, rows, column) in enumerate(changes):
        directory = tmp_path / str(number)
        foreign.write_csv(directory, data_set | {table: (columns, rows)})
        try:
            ((_, read),) = sources.find(sources.ImportRequest([str(directory)], tmp_path, foreign.EXPERIMENT))
            read()
        except InputError as error:
            refused.add((table, column, len(columns) > len(data_set[table][0])))
            said.append((table, str(error)))
    assert [line for table, line in said if "\n" in line or table not in line] == []
    needed = {("traces", name, False) for name in ("snd_nxt", "snd_una", "snd_cwnd", "absolute_timestamp", "src")}
    needed |= {("retransmits", "saddr", False), ("postcard_traces", "queue_depth_cells", False)}
    assert needed <= refused
    assert {("traces", "absolute_timestamp", True), ("traces", "srtt_us", True)} <= refused


def test_fifo__as_a_source_is_refused_at_once(tmp_path, recorded, capsys):
    out = tmp_path / "out"
    foreign.write_text(tmp_path / "run", *recorded)
    foreign.write_csv(tmp_path / "csv", foreign.tables(*recorded))
    for path in (*(tmp_path / "run").iterdir(), *(tmp_path / "csv").iterdir()):
        data = path.read_bytes()
        path.unlink()
        os.mkfifo(path)
        for source in (path, path.parent):
            words = ["import", f"FROM={source}", f"OUTPUT={out}", EXPERIMENT]
            status, errors, failure = campaign.bounded(partial(main, words))
            assert (status, len(errors), failure) == (1, 1, ""), (source, errors)
            assert "is not a regular file" in errors[0] or path.parent.name == "csv", errors
            assert not out.exists()
        path.unlink()
        path.write_bytes(data)
    capsys.readouterr()


def test_files__that_are_damaged_get_one_line(tmp_path, recorded, capsys):
    out = tmp_path / "out"
    foreign.write_text(tmp_path / "run", *recorded)
    whole = gzip.compress((tmp_path / "run/trace.tr").read_bytes())
    path = tmp_path / "trace.tr.gz"
    for damaged in (whole[:2000], whole[:30], whole[:2000] + b"????" + whole[2004:], whole[:12] + b"\xff" * 40):
        path.write_bytes(damaged)
        assert f"error: {path}: " in refused(path, out, capsys)
    data_set = foreign.tables(*recorded)
    foreign.write_dump(tmp_path / "dump", data_set)
    (tmp_path / "dump").write_text((tmp_path / "dump").read_text().replace("experiment_id", "experiment"))
    assert "traces has no column experiment_id" in refused(tmp_path / "dump", out, capsys, EXPERIMENT)
    foreign.write_csv(tmp_path / "csv", data_set)
    packed = gzip.compress((tmp_path / "csv/traces.csv").read_bytes())
    (tmp_path / "csv/traces.csv").unlink()
    (tmp_path / "csv/traces.csv.gz").write_bytes(packed[:-9])
    assert "traces.csv.gz: damaged: " in refused(tmp_path / "csv", out, capsys, EXPERIMENT)
    (tmp_path / "csv/traces.csv.gz").unlink()
    (tmp_path / "csv/traces.parquet").write_bytes(b"PAR1" + packed)
    assert "; allowed: a Parquet file with the table's rows" in refused(tmp_path / "csv", out, capsys, EXPERIMENT)


CONFIGS = [
    ("mtu_bytes", "n/a", "a whole number from 576 to 65535"),
    ("mtu_bytes", 0.5, "a whole number from 576 to 65535"),
    ("num_flows", "two", "a whole number from 1 to 65535"),
    ("num_flows", True, "a whole number from 1 to 65535"),
    ("max_queue_depth_packets", "many", "a number from 0.001 to 1000000000"),
    ("num_flows", float("nan"), "a whole number from 1 to 65535"),
    ("action", "explode", "drop, ecn"),
    ("algorithm", "$\\frac$", "1 to 15 of a-z, 0-9 and _, the first a letter, as in cubic"),
]


@pytest.mark.parametrize(("name", "value", "allowed"), CONFIGS)
def test_config__with_a_wrong_value_is_refused_by_its_name(tmp_path, recorded, capsys, name, value, allowed):
    foreign.write_text(tmp_path / "run", *recorded)
    path = tmp_path / "run/config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))
    assert main(["import", f"FROM={tmp_path}/run", f"OUTPUT={tmp_path}/out"]) == 1
    assert capsys.readouterr() == ("", f"error: {path}: {name} is {value!a}; allowed: {allowed}\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["num_flows", "mtu_bytes", "max_queue_depth_packets"])
@pytest.mark.parametrize("digits", [400, 5000])
def test_config__with_an_endless_integer_is_one_line(tmp_path, recorded, capsys, name, digits):
    foreign.write_text(tmp_path / "run", *recorded)
    path = tmp_path / "run/config.json"
    path.write_text(path.read_text().replace("{", f'{{"{name}": {"9" * digits}, "was": {{', 1) + "}")
    line = refused(tmp_path / "run", tmp_path / "out", capsys)
    assert line.startswith(f"error: {path}: ")
    assert (f"{name} is 999" if digits == 400 else "is not JSON") in line
    assert len(line) < 400


def test_config__with_non_finite_numbers_is_kept_as_text(tmp_path, recorded, monkeypatch):
    monkeypatch.setattr(derive_module, "draw_all", lambda *_: [])
    monkeypatch.setattr(derive_module, "render", lambda *_: "")
    foreign.write_text(tmp_path / "run", *recorded)
    path = tmp_path / "run/config.json"
    path.write_text(path.read_text().replace("{", '{"a": NaN, "b": -1e999, "c": 0.5, ', 1))
    assert main(["import", f"FROM={tmp_path}/run", f"OUTPUT={tmp_path}/out"]) == 0
    text = (tmp_path / "out/rep-1/environment.json").read_text()
    spec = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not a JSON number"))
    described = spec["imported"]["experiment"]
    assert (described["a"], described["b"], described["c"]) == ("nan", "-inf", 0.5)


def test_source__without_any_data_is_refused(tmp_path, recorded, capsys):
    foreign.write_text(tmp_path / "run", *recorded)
    (tmp_path / "trace.tr").write_text("# tracer: nop\n")
    for source in (tmp_path / "run/config.json", tmp_path / "trace.tr"):
        assert main(["import", f"FROM={source}", f"OUTPUT={tmp_path}/out"]) == 1
        assert "neither postcards, nor events of a trace" in capsys.readouterr().err
        assert not (tmp_path / "out").exists()


def test_postcard__of_another_year_is_refused_and_the_directory_is_as_before(tmp_path, recorded, capsys):
    foreign.write_text(tmp_path / "run", *recorded)
    path = tmp_path / "run/postcards.tr"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, f"31600000.5{lines[-1][lines[-1].index(':') :]}"]) + "\n")
    words = ["import", f"FROM={tmp_path}/run", f"OUTPUT={tmp_path}/new/out", *CONDITIONS]
    assert main(words) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), "RTTs; allowed: at most 10000000: check RTT" in err) == ("", 1, True)
    assert not (tmp_path / "new").exists()
    assert main([*words, "WARMUP=200ms", "DURATION=1s"]) == 0
    summary = json.loads((tmp_path / "new/out/rep-1/summary.json").read_text())
    assert summary["arrivals"] > 1000


def test_rate__that_is_too_low_is_a_reason_and_can_be_drawn(tmp_path, recorded):
    foreign.write_text(tmp_path / "run", *recorded)
    assert main(["import", f"FROM={tmp_path}/run", f"OUTPUT={tmp_path}/out", "RATE=1kbit", "RTT=10ms"]) == 0
    repetition = tmp_path / "out/rep-1"
    reasons = json.loads((repetition / "summary.json").read_text())["reasons"]
    assert "which is impossible: rate_bps of spec.yaml is not" in reasons[-1]
    figure = utilization.draw(utilization.prepare(analyse(repetition)))
    drawing.save(figure, tmp_path, "utilization")


def test_analysis__that_fails_leaves_nothing(tmp_path, recorded, monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device")

    foreign.write_text(tmp_path / "run", *recorded)
    monkeypatch.setattr(derive_module, "render", full)
    words = ["import", f"FROM={tmp_path}/run", f"OUTPUT={tmp_path}/new/out", *CONDITIONS]
    assert main(words) == 1
    assert f"error: {tmp_path}/new/out/rep-1: cannot write: No space left" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    monkeypatch.setattr(derive_module, "render", lambda *_: "")
    assert main(words) == 0


def test_parsers__survive_anything(tmp_path, recorded):
    """Bytes are changed, cut out and doubled at random: the result is a run's data, or one error line."""
    scenario, truth = recorded
    foreign.write_text(tmp_path / "run", scenario, truth)
    data_set = {name: (columns, rows[:30]) for name, (columns, rows) in foreign.tables(scenario, truth).items()}
    foreign.write_dump(tmp_path / "dump", data_set)
    foreign.write_csv(tmp_path / "csv", data_set)
    originals = {
        "trace.tr": (tmp_path / "run/trace.tr").read_bytes()[:4000],
        "postcards.tr": (tmp_path / "run/postcards.tr").read_bytes()[:4000],
        "cc.db": (tmp_path / "dump").read_bytes(),
        "own.pcap": pcap(
            tmp_path / "p", [(1, card[8:]) for card in simulate.stored_postcards(scenario, truth)[:20]], 5577
        ).read_bytes(),
    }
    chance = random.Random(11)
    read = refused = 0
    lines: list[str] = []
    for turn in range(240):
        name = list(originals)[turn % len(originals)]
        data = bytearray(originals[name])
        for _ in range(chance.randrange(1, 4)):
            at, size = chance.randrange(len(data)), chance.randrange(1, 40)
            kind = chance.randrange(4)
            if kind == 0:
                data[at] = chance.randrange(256)
            elif kind == 1:
                del data[at : at + size]
            elif kind == 2:
                data[at:at] = data[max(0, at - size) : at]
            else:
                data[at:at] = chance.choice([b"\t", b"\n", b"=", b"99999999999999999999", b"\\N", b"\x00", b"-1"])
        (tmp_path / name).write_bytes(data)
        try:
            for _, read_experiment in sources.find(
                sources.ImportRequest([str(tmp_path / name)], tmp_path, foreign.EXPERIMENT)
            ):
                experiment = read_experiment()
                command.write.write(
                    _empty(tmp_path / "fuzzed"), experiment.cards, experiment.events, experiment.depths,
                    experiment.conditions, experiment.source,
                )  # fmt: skip
            read += 1
        except InputError as error:
            refused += 1
            lines.append(str(error))
    assert read > 40
    assert refused > 40
    assert [line for line in lines if "\n" in line] == []


def _empty(directory: Path) -> Path:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    return directory
