# SPDX-License-Identifier: MIT
"""Committed JSON is up to date, translated C compiles freestanding, and errors name construct and line."""

import ctypes
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from p4src.compile.v1model import check
from softswitch.library import ROOT, library
from softswitch.translate import translate as translator
from softswitch.translate.__main__ import main as translate

from .conftest import HERE, PROGRAMS, Switch, compiled

SUPPORTED = sorted(path.stem for path in (PROGRAMS / "build").glob("*.json") if path.stem != "unsupported")


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_compiled_programs__are_not_older_than_their_sources_and_name_only_files_of_this_repository() -> None:
    tests = PROGRAMS.glob("*/*.json"), (HERE.parent / "differential/programs").glob("*/*.json")
    compiled_ = [ROOT / "p4src/build/bufferscope.json", *(path for paths in tests for path in paths)]
    assert len(compiled_) > 20
    for path in compiled_:
        program = json.loads(path.read_text())["program"]
        problem = check(Path(program), path.parent.relative_to(ROOT), Path())
        assert problem is None, problem
        names = set(re.findall(r'"filename": "([^"]*)"', path.read_text()))
        assert {name for name in names if not (ROOT / name).exists()} <= {"core.p4", "v1model.p4", ""}, program


def test_pipeline__is_the_same_every_time_and_everywhere_and_names_source_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, digest = compiled("bufferscope")
    first, second = tmp_path / "first.c", tmp_path / "second.c"
    assert translate([str(source), "--digest", digest, "-o", str(first)]) == 0
    with monkeypatch.context() as elsewhere:
        elsewhere.chdir(tmp_path)
        assert translate([str(ROOT / source), "--digest", digest, "-o", str(second)]) == 0
    assert first.read_bytes() == second.read_bytes()
    for name, word in (
        ("state PacketParser_parse_ipv4", "parse_ipv4"),
        ("action QueueIngress.queue_policy.tail_drop", "tail_drop"),
        ("table QueueIngress.forwarding.forward", "forward"),
    ):
        line = next(line for line in first.read_text().splitlines() if line.endswith(f"{name} */"))
        file, number = line.split(" ")[1].split(":")
        assert word in (ROOT / file).read_text().splitlines()[int(number) - 1], line


def said(program: object, directory: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What the translator says of a program that it refuses; it writes nothing then."""
    path, output = directory / "changed.json", directory / "out.c"
    path.write_text(program if isinstance(program, str) else json.dumps(program))
    assert translate([str(path), "--digest", "0" * 64, "-o", str(output)]) == 1
    assert not output.exists()
    return capsys.readouterr().err


def test_unsupported__is_one_line_each_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = compiled("unsupported")[0].read_text()
    assert said(text, tmp_path, capsys) == (HERE / "unsupported.expected").read_text()


def test_queue_registers__of_another_form_or_written_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The switch fills registers of these names."""
    program = json.loads(compiled("bufferscope")[0].read_text())
    arrays = program["register_arrays"]
    (register,) = [array for array in arrays if array["name"] == "queue_packets"]
    place = f"{register['source_info']['filename']}:{register['source_info']['line']}: "
    for change, named in (
        ({"bitwidth": 16}, "register<bit<16>>(512) queue_packets"),
        ({"size": 511}, "register<bit<32>>(511) queue_packets"),
    ):
        program["register_arrays"] = [array if array is not register else {**array, **change} for array in arrays]
        assert said(program, tmp_path, capsys).startswith(place + named)
    program["register_arrays"] = [array if array is not register else {**array, "size": 4096} for array in arrays]
    assert "declare register<bit<32>>(4096) queue_bytes" in said(program, tmp_path, capsys)
    program["register_arrays"] = arrays
    read = next(
        primitive
        for action in program["actions"]
        for primitive in action["primitives"]
        if primitive["op"] == "register_read" and primitive["parameters"][1]["value"] == "queue_packets"
    )
    to, name, index = read["parameters"]
    read.update(op="register_write", parameters=[name, index, to])
    assert "writing register queue_packets" in said(program, tmp_path, capsys)


@pytest.mark.parametrize(("kind", "key"), [("counter_arrays", "size"), ("register_arrays", "size"), ("errors", 1)])
def test_number__that_is_text_never_gets_into_the_c_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, key: object
) -> None:
    program = json.loads(compiled("clones")[0].read_text())
    program[kind][0][key] = "1]; } void code(void) { int x[1"
    assert "not what p4c-bm2-ss writes" in said(program, tmp_path, capsys)


def test_state__of_too_many_bytes_is_refused_with_the_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = json.loads(compiled("bufferscope")[0].read_text())
    (forward,) = [table for table in program["pipelines"][0]["tables"] if table["name"].endswith("forward")]
    for kind, declared, key, size in (
        ("register", program["register_arrays"][0], "size", 1 << 29),
        ("counter", program["counter_arrays"][0], "size", 1 << 29),
        ("table", forward, "max_size", 1 << 24),
    ):
        before, declared[key] = declared[key], size
        message = said(program, tmp_path, capsys)
        assert f"{kind} {declared['name']} of " in message
        assert f"{translator.MOST_STATE_BYTES} bytes at most" in message
        declared[key] = before


@pytest.mark.parametrize("name", ["clones", "tables", "bufferscope"])
def test_state_bytes__are_the_memory_of_the_translated_program(name: str) -> None:
    source, digest = compiled(name)
    size = library(str(source)).pipeline_memory_bytes
    size.restype = ctypes.c_size_t
    told = translator.translate(json.loads(source.read_text()), digest).state_bytes
    assert told <= size() < 1.1 * told  # with the tables' heads


def test_comments__of_the_c_text_end_where_the_translator_ends_them(tmp_path: Path) -> None:
    """Names of files, actions, tables, states and keys come from the program."""

    def poisoned(part: Any) -> Any:
        if isinstance(part, dict):
            place = {"filename": "a*/\n", "line": "b*/\n", "column": 1, "source_fragment": "c*/\n"}
            return {key: place if key == "source_info" else poisoned(value) for key, value in part.items()}
        if isinstance(part, list):
            return [poisoned(each) for each in part]
        return f"{part}*/" if part in names else part

    for source in ("tables", "parser", "checksums"):
        program = json.loads(compiled(source)[0].read_text())
        names = {state["name"] for parser in program["parsers"] for state in parser["parse_states"]}
        tables = [table for pipeline in program["pipelines"] for table in pipeline["tables"]]
        names |= {each["name"] for each in (*program["actions"], *tables)}
        text = translator.translate(poisoned(program | {"program": "d*/\n.p4"}), "0").c_text
        assert "*/" not in re.sub(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/', "", text, flags=re.S)


def test_bad_input__is_one_line_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for content, named in (
        ("{", "not JSON"),
        ("[]", "not what p4c-bm2-ss writes"),
        ('{"pipelines": [], "header_types": []}', "not what p4c-bm2-ss writes"),
    ):
        message = said(content, tmp_path, capsys)
        assert message.count("\n") == 1
        assert named in message
    source, digest = compiled("clones")
    for json_path, given, output, named in (
        ("/absent.json", digest, "out.c", "reading /absent.json: No such file or directory"),
        (source, "12", "out.c", "--digest 12"),
        (source, digest, "missing/out.c", f"writing {tmp_path}/missing/out.c: No such file or directory"),
    ):
        assert translate([str(json_path), "--digest", given, "-o", str(tmp_path / output)]) == 1
        message = capsys.readouterr().err
        assert message.count("\n") == 1
        assert message.startswith(named)


def test_library__is_of_the_program_in_its_directory(tmp_path: Path) -> None:
    for name in ("stamps", "names"):
        (tmp_path / name).mkdir()
        for path in compiled(name)[0].parent.glob(f"{name}.*"):
            shutil.copy(path, tmp_path / name / f"same{path.suffix}")
    tables = [Switch(tmp_path / name / "same.json").do("table list") for name in ("stamps", "names")]
    assert tables[0] != tables[1]
