# SPDX-License-Identifier: MIT
"""The action plugin: arguments arrive unchanged, and output without an answer is a failure."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ansible.tests.conftest import Played, play

HOSTILE = ["$(touch x)", "`touch x`", "; touch x", "a b", "'", '"', "\\", "*", "~", "line\nline", "", "-x", "#", "é"]


def _run(tmp_path: Path, code: str, *arguments: str, check: bool = False) -> Played:
    task = {"name": "Try", "program": {"argv": [sys.executable, "-c", code, *arguments], "chdir": str(tmp_path)}}
    write = {"name": "Write", "ansible.builtin.copy": {"content": "{{ result.answer | to_json }}", "dest": "answer"}}
    write["ansible.builtin.copy"] |= {"dest": str(tmp_path / "answer"), "mode": "0600"}
    hosts = {"hosts": {"here": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}}}
    (tmp_path / "hosts.json").write_text(json.dumps({"all": hosts}))
    (tmp_path / "play.json").write_text(
        json.dumps([{"hosts": "all", "gather_facts": False, "tasks": [{**task, "register": "result"}, write]}])
    )
    return play("-i", tmp_path / "hosts.json", tmp_path / "play.json", *(["--check"] if check else []))


def test_program__gets_its_arguments_unchanged(tmp_path: Path) -> None:
    directory = tmp_path / "it's a $(touch x) directory"
    directory.mkdir()
    code = "import json, os, sys; print(json.dumps({'changed': False, 'argv': sys.argv[1:], 'cwd': os.getcwd()}))"
    played = _run(directory, code, *HOSTILE)
    assert played.status == 0, played.stderr
    answer = json.loads((directory / "answer").read_text())
    assert answer == {"changed": False, "argv": HOSTILE, "cwd": str(directory)}
    assert not list(tmp_path.rglob("x"))


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import sys; sys.exit('tune: no such interface')", "tune: no such interface"),
        ("import sys; sys.exit(3)", "exit status 3 without a reason on stderr"),
        ("print('done')", "the program did not print a JSON object with `changed`"),
        ("print('[1]')", "the program did not print a JSON object with `changed`"),
        ("print('{}')", "the program did not print a JSON object with `changed`"),
    ],
)
def test_program__a_failure_is_one_sentence(tmp_path: Path, code: str, reason: str) -> None:
    played = _run(tmp_path, code)
    assert played.status == 2
    assert played.stderr.strip() == f"FAILED   here: Try: {reason}"


def test_program__is_not_run_in_check_mode(tmp_path: Path) -> None:
    _run(tmp_path, "open('ran', 'w')", check=True)
    assert not (tmp_path / "ran").exists()
