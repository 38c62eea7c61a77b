# SPDX-License-Identifier: MIT
"""The command `stf`: the language, its requests, the comparison, the table."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lib.errors import InputError
from softswitch.stf import command
from softswitch.stf.language import BadStatement, read
from softswitch.stf.play import play
from softswitch.tests.translate.conftest import PROGRAMS, compiled


def played(program: str, text: str, directory: Path) -> list[str]:
    """What the program did not as `text` expects."""
    path = directory / "program.stf"
    path.write_text(text)
    return play(compiled(program)[0], read(path))


def keys(which: int, a: int = 0, b: int = 0, c: int = 0, wide: int = 0) -> str:
    return f"packet 2 {which:02x} {a:08x} {b:04x} {c:02x} {wide:032x} 0000"


TABLES = f"""
# a comment
add exact_one key.a:0x0a found(number:7) = FIRST
add lpm_one hdr.key.a:0x0a0b**** found(number: 0b11)   # a prefix
add I.ternary_two 10 key.a:0x0******* I.found(number:1)
add ternary_two 20 a:0x0a****** b:0x12** found(number:2)
setdefault no_key found(number:5)
{keys(0, a=10)}
expect 1 0007 10 **** $
{keys(2, a=0x0A0BFFFF)}
expect 1 0003
{keys(4, a=0x0A000000, b=0x1234)}
expect 1 0002 00 {1:032x} $
{keys(4, a=0x0A000000)}
expect 1 0001
{keys(9)}
expect 1 0005
check_counter exact_hits($FIRST) packets == 1
wait
"""


def test_tables__are_set_and_frames_compared(tmp_path: Path) -> None:
    text = TABLES.replace("expect 1 0007 10 **** $", f"expect 1 0007 10 {1:032X} $")
    assert played("tables", text, tmp_path) == []


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("expect 1 0005", "expect 1 0006", "port 1, packet 4"),
        ("expect 1 0005", "", "port 1: 5 packets left, expected 4"),
        ("expect 1 0005", "expect 2 0005", "port 2: 0 packets left, expected 1"),
        ("expect 1 0003", "expect 1 0003 $", "port 1, packet 1"),
        ("packets == 1", "packets == 2", "1 packets, expected == 2"),
        ("setdefault no_key", "setdefault no_such", "table no_such is unknown"),
        ("setdefault no_key", "setdefault one", "unknown or ambiguous"),
    ],
)
def test_difference__is_named(right: str, wrong: str, said: str, tmp_path: Path) -> None:
    text = TABLES.replace("expect 1 0007 10 **** $", "expect 1 0007").replace(right, wrong)
    assert said in " ".join(played("tables", text, tmp_path))


def test_sessions_and_groups__are_made_of_the_commands(tmp_path: Path) -> None:
    """what=1 of the program: a clone from ingress to session 5."""
    commands = (
        "mc_mgrp_create 3\nmc_node_create 7 3 4\nmc_node_create 8 3\nmc_node_associate 3 0\nmirroring_add_mc 5 3\n"
    )
    text = commands + "packet 1 01 00000000 0000\nexpect 2\nexpect 3\nexpect 4 00000001\n"
    assert played("clones", text, tmp_path) == []
    text = "register_write values 3 0x11\nregister_reset values\nmirroring_add 5 4\n" + text.partition("\n")[2]
    assert "no such group" in " ".join(played("clones", text, tmp_path))


@pytest.mark.parametrize(
    "text", ["packet 1 0", "expect 1 0g", "add t k:1", "mirroring_add 1", "send 1 00", "packet x 00", "setdefault t x"]
)
def test_line__that_is_no_statement_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.stf"
    path.write_text(f"wait\n{text}\n")
    with pytest.raises(BadStatement, match=r"x\.stf:2: "):
        read(path)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs with STF files. The compiler gives the committed output of the program of the same name."""
    shutil.copy(PROGRAMS / "begin.p4", tmp_path)
    for name, text in (("tables", "packet 1 00\n"), ("unsupported", "")):
        shutil.copy(PROGRAMS / f"{name}.p4", tmp_path)
        with (tmp_path / f"{name}.p4").open("a") as file:
            file.write("// v1model.p4\n")
        (tmp_path / f"{name}.stf").write_text(text)
    (tmp_path / "other.p4").write_text("#include <psa.p4>\n")
    (tmp_path / "other.stf").write_text("")
    compiler = tmp_path / "p4c-bm2-ss"
    compiler.write_text(f'#!/bin/sh\nfor last; do :; done\ncp {PROGRAMS}/build/$(basename "$last" .p4).json "$3"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("P4C", str(compiler))
    monkeypatch.setattr(command, "COMPILED", tmp_path / "compiled")
    return tmp_path


def test_table__has_a_row_for_each_program_and_the_status_is_of_the_wrong(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.run(command.Asked(programs=checkout)) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[:2]] == [["tables", "wrong"], ["unsupported", "refused"]]
    assert "2 programs: 0 passed, 1 refused, 1 wrong" in lines
    assert "  refused for header union: 1" in lines
    assert lines[-1].endswith(": 1")
    (checkout / "tables.stf").write_text(TABLES.replace("expect 1 0007 10 **** $", "expect 1 0007"))
    assert command.run(command.Asked(programs=checkout / "tables.p4")) == 0
    assert "1 program: 1 passed, 0 refused, 0 wrong" in capsys.readouterr().out


def test_directory__without_programs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no P4 program"):
        command.run(command.Asked(programs=tmp_path))
