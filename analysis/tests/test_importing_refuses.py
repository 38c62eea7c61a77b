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

from analysis.importing import sources, traffic
from analysis.importing.asked import Asked
from analysis.replay import derive as derive_module
from analysis.tests import campaign, foreign, simulate
from analysis.tests.imports import ARTIFACT_CARD, EXPERIMENT, imported, pcap, refused
from bufferscope.__main__ import main
from lib import keys
from lib.errors import InputError

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture
def run(tmp_path, recorded):
    """The text files of an experiment."""
    foreign.write_text(tmp_path / "run", *recorded)
    return tmp_path / "run"


BREAKS = [  # file, a change, and a part of the error line; CSV files are in another directory
    ("trace.tr", ("snd_cwnd=10 ", "snd_cwnd=ten "), "trace.tr, line 3: snd_cwnd is 'ten'"),
    ("trace.tr", (" snd_una=", " una="), "trace.tr, line 3: snd_una is empty"),
    ("trace.tr", ("src=10.77.0.1:", "src=10.77.0.999:"), "trace.tr, line 3: '10.77.0.999' is not an IP address"),
    ("trace.tr", ("[000] ..s2 ", "[000"), "is malformed; allowed: a line of trace_pipe"),
    ("postcards.tr", ("dst_port=5201", "dst_port=75201"), "postcards.tr, line 1: dst_port is '75201'"),
    ("postcards.tr", (": postcard: ", ": postcart: "), "postcards.tr, line 1: "),
    ("config.json", ('"id"', "id"), "config.json: is not JSON: "),
    ("config.json", ('"mtu_bytes": 1500', '"mtu_bytes": "n/a"'), "config.json: mtu_bytes is 'n/a'"),
    ("config.json", ('"num_flows": 2', '"num_flows": NaN'), "config.json: num_flows is nan"),
    ("config.json", ('"num_flows": 2', f'"num_flows": {"9" * 400}'), "config.json: num_flows is 999"),
    ("config.json", ('"drop"', '"explode"'), "config.json: action is 'explode'"),
    ("config.json", ('"reno"', r'"$\\frac$"'), r"config.json: algorithm is '$\\frac$'"),
    ("postcard_traces.csv", ("queue_depth_cells", "depth"), "queue_depth_cells"),
    ("traces.csv", ("snd_una", "una"), "snd_una"),
    ("traces.csv", ("snd_wnd", "srtt"), "srtt"),  # there as srtt_us, too
    ("retransmits.csv", ("saddr", "addr"), "saddr"),
    ("experiments.csv", ("another", foreign.EXPERIMENT), "has 2 rows"),
    ("experiments.csv", ("another", ""), "id None has 1 rows"),
    ("postcard_traces.csv", None, "does not end with a newline, so the file was cut off"),
]


def test_source__that_is_broken_gets_one_line(run, tmp_path, recorded, capsys):
    foreign.write_csv(tmp_path / "csv", foreign.tables(*recorded))
    for name, change, answer in BREAKS:
        source = tmp_path / "csv" if name.endswith(".csv") else run
        path = source / name
        whole = path.read_text()
        assert change is None or change[0] in whole
        path.write_text(whole[:-4] if change is None else whole.replace(*change, 1))
        line = refused(source, tmp_path / "out", capsys, *[EXPERIMENT] * (source != run))
        assert path.stem in line
        assert answer in line
        assert len(line) < 500
        path.write_text(whole)


def test_command__says_what_is_wrong(capsys):
    for words, answer in (
        ("", ["OUTPUT is missing"]),
        ("OUTPUT=x", ["FROM is missing"]),
        ("FROM=/nowhere OUTPUT=x", ["/nowhere: does not exist"]),
        ("FROM=x OUTPUT=x RATE=fast SPEED=1", ["RATE", "SPEED is not a parameter; "]),
        ("FROM=x OUTPUT=x RATE=0bit RTT=1ns BUF=0p CC=m$x$", ["RATE=0bit", "RTT=1ns", "BUF=0p", "CC=m$x$"]),
    ):
        assert main(["import", *words.split()]) == 1
        err = capsys.readouterr().err
        assert len(err.splitlines()) == len(answer)
        assert all(part in err for part in answer)


def test_files__that_are_there_twice_are_refused(run, tmp_path, capsys):
    out = tmp_path / "out"
    shutil.copytree(run, tmp_path / "copy", ignore=shutil.ignore_patterns("config.json"))
    line = refused(f"{run}/trace.tr,{tmp_path}/copy/trace.tr", out, capsys)
    assert f"{tmp_path}/copy/trace.tr: FROM names it, or a copy of it, twice" in line
    (run / "trace.tr.gz").write_bytes(gzip.compress((run / "trace.tr").read_bytes()))
    assert "has trace.tr and trace.tr.gz; allowed: one of them" in refused(run, out, capsys)


def _asked(source: Path) -> Asked:
    return keys.read(Asked, {"from": str(source), "output": source, "experiment": foreign.EXPERIMENT}, [])


def test_tables__are_those_of_the_directory_even_if_its_name_is_a_glob_pattern(tmp_path, recorded):
    for name, other, is_packed in (("run?", "run1", False), ("q[1]*", "q1", True)):
        foreign.write_csv(tmp_path / name, foreign.tables(*recorded))
        for path in (tmp_path / name).iterdir() if is_packed else ():
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
        shutil.copytree(tmp_path / name, tmp_path / other)
        ((_, read),) = sources.find(_asked(tmp_path / name))
        experiment = read()
        assert isinstance(experiment, sources.SourceExperiment)
        cards = experiment.cards
        assert cards is not None
        assert cards.rows == len(recorded[1].cards)


def test_fifo__as_a_source_is_refused_at_once(run, tmp_path, recorded, capsys):
    out = tmp_path / "out"
    foreign.write_csv(tmp_path / "csv", foreign.tables(*recorded))
    for path in (*run.iterdir(), *(tmp_path / "csv").iterdir()):
        path.rename(away := tmp_path / "away")
        os.mkfifo(path)
        for source in (path, path.parent):
            words = ["import", f"FROM={source}", f"OUTPUT={out}", EXPERIMENT]
            status, errors, failure = campaign.bounded(partial(main, words))
            assert (status, len(errors), failure) == (1, 1, ""), (source, errors)
            assert "is not a regular file" in errors[0] or path.parent.name == "csv", errors
            assert not out.exists()
        path.unlink()
        away.rename(path)
    capsys.readouterr()


def test_files__that_are_damaged_get_one_line(run, tmp_path, recorded, capsys):
    out = tmp_path / "out"
    whole = gzip.compress((run / "trace.tr").read_bytes())
    path = tmp_path / "trace.tr.gz"
    for damaged in (whole[:2000], whole[:2000] + b"????" + whole[2004:], whole[:12] + b"\xff" * 40):
        path.write_bytes(damaged)
        assert f"error: {path}: " in refused(path, out, capsys)
    foreign.write_csv(tmp_path / "csv", foreign.tables(*recorded))
    table = tmp_path / "csv/traces.csv"
    packed = gzip.compress(table.read_bytes())
    for name, data, said in (
        ("traces.csv.gz", packed, "has traces as traces.csv and traces.csv.gz"),
        ("traces.csv.gz", packed[:-9], "traces.csv.gz: damaged: "),
        ("traces.parquet", b"PAR1" + packed, "; allowed: a Parquet file with the table's rows"),
    ):
        (other := tmp_path / "csv" / name).write_bytes(data)
        assert said in refused(tmp_path / "csv", out, capsys, EXPERIMENT)
        table.unlink(missing_ok=True)
        if data != packed:
            other.unlink()


def test_postcard__of_another_year_or_of_nothing_is_refused_and_the_directory_is_as_before(run, tmp_path, capsys):
    path, out = run / "postcards.tr", tmp_path / "new/out"
    assert "neither postcards, nor events of a trace" in refused(run / "config.json", out, capsys)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, f"31600000.5{lines[-1][lines[-1].index(':') :]}"]) + "\n")
    assert "RTTs; allowed: at most 202340 for 10234 packets" in refused(run, out, capsys)
    assert not (tmp_path / "new").exists()
    path.write_text("\n".join(lines) + "\n")
    assert main(["import", f"FROM={run}", f"OUTPUT={out}", "RATE=1kbit", "RTT=10ms"]) == 0
    summary = json.loads((out / "rep-1/summary.json").read_text())
    assert "which is impossible: rate_bps of spec.yaml is not" in summary["reasons"][-1]


def test_source__that_would_take_much_memory_is_refused(run, tmp_path, capsys):
    lines = (run / "trace.tr").read_text().splitlines()[:9]
    (many := tmp_path / "many.tr").write_text(
        "".join(f"{lines[2].replace(':30000 ', f':{port} ')}\n" for port in range(20_000, 20_001 + traffic.MOST_FLOWS))
    )
    assert "FLOWS=n" in refused(many, tmp_path / "out", capsys)
    (packed := tmp_path / "packed.tr.gz").write_bytes(gzip.compress(f"{lines[2]}\n".encode() * 99_999))
    assert "unpack" in refused(packed, tmp_path / "out", capsys)


def test_analysis__that_fails_leaves_nothing(run, tmp_path, monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(derive_module, "render", full)
        line = refused(run, tmp_path / "new/out", capsys)
    assert f"error: {tmp_path}/new/out/rep-1: cannot write" in line
    assert "No space left" in line
    assert not (tmp_path / "new").exists()
    imported(run, tmp_path / "new/out")


def test_parsers__survive_anything(run, tmp_path, recorded):
    """Bytes are changed, cut out and doubled at random: the result is a run's data, or one error line."""
    data_set = {name: (columns, rows[:30]) for name, (columns, rows) in foreign.tables(*recorded).items()}
    foreign.write_csv(tmp_path / "csv", data_set)
    cards = [(1, card[8:]) for card in simulate.stored_postcards(*recorded)[:20]]
    artifact = [(1, ARTIFACT_CARD)] * 20
    originals = {
        "trace.tr": (run / "trace.tr").read_bytes()[:4000],
        "postcards.tr": (run / "postcards.tr").read_bytes()[:4000],
        "csv/traces.csv": (tmp_path / "csv/traces.csv").read_bytes(),
        "own.pcap": pcap(tmp_path / "p", cards, 5577).read_bytes(),
        "artifact.pcap": pcap(tmp_path / "p", artifact, 4444).read_bytes(),
    }
    chance = random.Random(11)
    read, lines = 0, []
    for turn in range(300):
        name = list(originals)[turn % len(originals)]
        data = bytearray(originals[name])
        for _ in range(chance.randrange(1, 4)):
            at, size = chance.randrange(len(data)), chance.randrange(1, 40)
            odd = chance.choice([b"\t", b"\n", b"=", b"99999999999999999999", b"\\N", b"\x00", b"-1"])
            ways = ((1, chance.randbytes(1)), (size, b""), (0, data[max(0, at - size) : at]), (0, odd))
            cut, new = chance.choice(ways)
            data[at : at + cut] = new
        (tmp_path / name).write_bytes(data)
        request = _asked(tmp_path / name.partition("/")[0])
        try:
            for _, read_experiment in sources.find(request):
                experiment = read_experiment()
                shutil.rmtree(tmp_path / "fuzzed", ignore_errors=True)
                (tmp_path / "fuzzed").mkdir()
                experiment.write(tmp_path / "fuzzed")
            read += 1
        except InputError as error:
            lines.append(str(error))
    assert min(read, len(lines)) > 40
    assert [line for line in lines if "\n" in line] == []
