# SPDX-License-Identifier: MIT
"""The action plugin: arguments arrive unchanged, and output without an answer is a failure."""

import json
import sys
from pathlib import Path

from ansible.tests.conftest import Played, play

HOSTILE = ["$(touch x)", "`touch x`", "; touch x", "a b", "'", '"', "\\", "*", "~", "line\nline", "", "-x", "#", "é"]


def _run(directory: Path, codes: dict[str, str], *arguments: str, check: bool = False) -> Played:
    """One host for each program."""
    argv = [sys.executable, "-c", "{{ code }}", *arguments]
    task = {"name": "Try", "program": {"argv": argv, "chdir": str(directory)}, "register": "result"}
    write: dict[str, object] = {"content": "{{ result.answer | to_json }}", "dest": str(directory / "answer")}
    copy = {"name": "Write", "ansible.builtin.copy": {**write, "mode": "0600"}}
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    hosts = {name: {**local, "code": code} for name, code in codes.items()}
    (directory / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    (directory / "play.json").write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": [task, copy]}]))
    return play("-i", directory / "hosts.json", directory / "play.json", *(["--check"] if check else []))


def test_program__gets_its_arguments_unchanged(tmp_path: Path) -> None:
    directory = tmp_path / "it's a $(touch x) directory"
    directory.mkdir()
    code = "import json, os, sys; print(json.dumps({'changed': False, 'argv': sys.argv[1:], 'cwd': os.getcwd()}))"
    played = _run(directory, {"here": code}, *HOSTILE)
    assert played.status == 0, played.stderr
    answer = json.loads((directory / "answer").read_text())
    assert answer == {"changed": False, "argv": HOSTILE, "cwd": str(directory)}
    assert not list(tmp_path.rglob("x"))


def test_program__a_failure_is_one_sentence_and_check_mode_runs_nothing(tmp_path: Path) -> None:
    no_answer = "the program did not print a JSON object with `changed`"
    played = _run(tmp_path, {
        "a": "import sys; sys.exit('tune: no such interface')", "b": "import sys; sys.exit(3)", "c": "print('[1]')",
        "d": "print('{}')",
    })  # fmt: skip
    assert played.status == 2
    assert sorted(played.stderr.strip().splitlines()) == [
        "FAILED   a: Try: tune: no such interface", "FAILED   b: Try: exit status 3 without a reason on stderr",
        f"FAILED   c: Try: {no_answer}", f"FAILED   d: Try: {no_answer}",
    ]  # fmt: skip
    _run(tmp_path, {"here": "open('ran', 'w')"}, check=True)
    assert not (tmp_path / "ran").exists()
