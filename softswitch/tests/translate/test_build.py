# SPDX-License-Identifier: MIT
"""Committed JSON is up to date, translated C compiles freestanding, and errors name construct and line."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from p4src.compile.v1model import check
from softswitch.translate.__main__ import main as translate

from .conftest import FLAGS, GENERATED, HERE, PROGRAMS, ROOT, RUNTIME, cc, compiled, write_pipeline

SUPPORTED = sorted(path.stem for path in (PROGRAMS / "build").glob("*.json") if path.stem != "unsupported")


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("name", ["bufferscope", "unsupported", *SUPPORTED])
def test_compiled_program__is_not_older_than_its_sources(name: str) -> None:
    directory = Path("p4src/v1model" if name == "bufferscope" else "softswitch/tests/translate/programs")
    build = Path("p4src/build" if name == "bufferscope" else directory / "build")
    problem = check(directory / f"{name}.p4", build, Path())
    assert problem is None, problem


@pytest.mark.parametrize("name", ["bufferscope", "unsupported", *SUPPORTED])
def test_compiled_program__names_only_files_of_this_repository(name: str) -> None:
    text = compiled(name)[0].read_text()
    names = {name for name in _file_names(json.loads(text)) if not (ROOT / name).exists()}
    assert names <= {"core.p4", "v1model.p4", ""}


def _file_names(value: object) -> set[str]:
    if isinstance(value, dict):
        files = {value["filename"]} if isinstance(value.get("filename"), str) else set()
        return files.union(*(_file_names(item) for item in value.values()))
    return set().union(*(_file_names(item) for item in value)) if isinstance(value, list) else set()


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_pipeline__builds_freestanding_and_needs_memory_functions_only(compiler: str, tmp_path: Path) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    free, loose = (
        [*flags, "-O2", "-ffreestanding", "-nostdlib", "-fno-stack-protector"] for flags in (FLAGS, GENERATED)
    )
    runtime = []
    for source in [*sorted(RUNTIME.glob("p4_*.c")), RUNTIME / "text.c"]:
        runtime.append(tmp_path / (source.stem + ".o"))
        cc(*free, "-c", source, "-o", runtime[-1], compiler=compiler)
    for name in ["bufferscope", *SUPPORTED]:
        source = write_pipeline(name, tmp_path)
        cc(*(free if name != "forms" else loose), "-c", source, "-o", tmp_path / f"{name}.o", compiler=compiler)
        linked = tmp_path / f"{name}-linked.o"
        cc("-nostdlib", "-r", tmp_path / f"{name}.o", *runtime, "-o", linked, compiler=compiler)
        nm = subprocess.run(["nm", "--undefined-only", str(linked)], capture_output=True, text=True, check=True)
        needed = {line.split()[-1] for line in nm.stdout.splitlines()}
        assert needed <= {"memcpy", "memset", "memcmp", "memmove"}, name


def test_pipeline__is_the_same_every_time(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    first, second = (write_pipeline("bufferscope", path) for path in (tmp_path, tmp_path / "again"))
    assert first.read_bytes() == second.read_bytes()


def test_pipeline__names_the_source_line_of_each_state_action_and_table(tmp_path: Path) -> None:
    text = write_pipeline("bufferscope", tmp_path).read_text()
    for name in (
        "state PacketParser_parse_ipv4",
        "action QueueIngress.queue_policy.tail_drop",
        "table QueueIngress.forwarding.forward",
    ):
        line = next(line for line in text.splitlines() if line.endswith(f"{name} */"))
        path, number = line.split(" ")[1].split(":")
        source = (ROOT / path).read_text().splitlines()
        last = name.split(".")[-1].split("_parse_")[-1].split(" ")[-1]
        assert last in source[int(number) - 1], line


def test_unsupported__is_one_line_each_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, digest = compiled("unsupported")
    output = tmp_path / "pipeline.c"
    assert translate([str(source), "--digest", digest, "-o", str(output)]) == 1
    assert capsys.readouterr().err == (HERE / "unsupported.expected").read_text()
    assert list(tmp_path.iterdir()) == []


def test_unsupported_lookahead__is_named_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, digest = compiled("parser")
    program = json.loads(source.read_text())
    for state in program["parsers"][0]["parse_states"]:
        for op in state["parser_ops"]:
            if op["op"] == "set" and op["parameters"][1]["type"] == "lookahead":
                op["parameters"][1]["value"] = [0, 136]
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(program))
    assert translate([str(changed), "--digest", digest, "-o", str(tmp_path / "out.c")]) == 1
    error = capsys.readouterr().err
    assert re.match(r"softswitch/tests/translate/programs/parser\.p4:\d+: a lookahead of 136 bits is not", error), error


def test_log_msg__is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, digest = compiled("clones")
    program = json.loads(source.read_text())
    program["actions"][0]["primitives"].insert(
        0,
        {
            "op": "log_msg",
            "parameters": [{"type": "string", "value": "hello"}, {"type": "parameters_vector", "value": []}],
            "source_info": {"filename": "some.p4", "line": 12, "column": 1, "source_fragment": ""},
        },
    )
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(program))
    assert translate([str(changed), "--digest", digest, "-o", str(tmp_path / "out.c")]) == 0
    assert capsys.readouterr().err == "warning: some.p4:12: log_msg is ignored by the soft switch\n"


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (None, "reading {path}: No such file or directory"),
        ("{", "reading {path}: not JSON ("),
        ("[]", "{path}: not what p4c-bm2-ss writes (it has no `pipelines` and `header_types`); compile"),
        ('{"pipelines": [], "header_types": []}', "{path}: not what p4c-bm2-ss writes ("),
    ],
)
def test_bad_input__is_one_line_and_writes_nothing(
    content: str | None, error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "program.json"
    if content is not None:
        path.write_text(content)
    assert translate([str(path), "--digest", "0" * 64, "-o", str(tmp_path / "out.c")]) == 1
    message = capsys.readouterr().err
    assert message.startswith(error.format(path=path))
    assert message.count("\n") == 1
    assert not (tmp_path / "out.c").exists()


def test_bad_digest__or_output_directory_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, digest = compiled("clones")
    assert translate([str(source), "--digest", "12", "-o", str(tmp_path / "out.c")]) == 1
    assert capsys.readouterr().err == "--digest 12: must be 64 hexadecimal digits (0-9, a-f), as in PROGRAM.sha256\n"
    missing = tmp_path / "missing" / "out.c"
    assert translate([str(source), "--digest", digest, "-o", str(missing)]) == 1
    assert capsys.readouterr().err == f"writing {missing}: No such file or directory\n"


def test_damaged_json__never_ends_in_a_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Removes one value of a small program at a time: about 250 values, evenly spread."""
    source, digest = compiled("names")
    text = source.read_text()
    places = _places(json.loads(text))
    for place in places[:: max(1, len(places) // 250)]:
        program = json.loads(text)
        at = program
        for step in place[:-1]:
            at = at[step]
        del at[place[-1]]
        path = tmp_path / "damaged.json"
        path.write_text(json.dumps(program))
        status = translate([str(path), "--digest", digest, "-o", str(tmp_path / "out.c")])
        assert status == 0 or capsys.readouterr().err.count("\n") >= 1


def _places(value: object, at: tuple = ()) -> list[tuple]:
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = list(enumerate(value))
    else:
        return []
    return [place for key, child in children for place in [(*at, key), *_places(child, (*at, key))]]
