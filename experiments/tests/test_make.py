# SPDX-License-Identifier: MIT
"""make hands all parameters to the program, unchanged and through no shell."""

import json
import os
import subprocess
import sys
from pathlib import Path

from experiments.machine.host import CHECKOUT

MAKEFILE = f"""
show:
	@cd {CHECKOUT}; \\
	{sys.executable} -c 'import json; from lib.words import made; print(json.dumps(made()))'
"""


def test_made__are_the_words_of_the_command_line_and_nothing_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    for words, expected in (
        ((), []),
        (("-s", "-k", "CC=cubic", "RTT=10ms"), ["CC=cubic", "RTT=10ms"]),
        (("NAME=a b;touch x", "CC=a\\b", "BUF='\"`"), ["NAME=a b;touch x", "CC=a\\b", "BUF='\"`"]),
        (("BUF=", "V=1", "PYTHON=python3"), ["BUF="]),
    ):
        done = subprocess.run(
            ["make", "--no-print-directory", *words, "show"], cwd=tmp_path, capture_output=True, text=True, check=True,
            env=os.environ | {"FLOWS": "1", "CC": "reno"},
        )  # fmt: skip
        assert sorted(json.loads(done.stdout)) == sorted(expected), words
    assert not (tmp_path / "x").exists()


def test_deploy__is_told_every_word() -> None:
    """Every word of `make deploy` reaches the program, which refuses unknown words. Before an experiment make calls the
    program only for TARGET (not soft) or INVENTORY.
    """
    told = ("experiment TARGET=bmv2", "deploy TARGET=bmv2", "deploy INVENTORY=/nowhere", "deploy TARGT=tofino")
    for words in ("deploy", "experiment CC=cubic", *told):
        command = ["make", "--no-print-directory", "--dry-run", "--assume-old=build/deployed", *words.split()]
        done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
        assert ("bufferscope deploy --make" in done.stdout) is (words in told), done.stdout


def test_makefile__gives_no_value_of_the_command_line_to_a_shell() -> None:
    given = ("RUN=a;touch b", "FORCE=a;touch b", "CC=a;touch b", "NAME=a;touch b", "SPEC=a;touch b")
    kept = ("-o", ".venv/ready", "-o", "deploy", "-o", "build/deployed")
    for target in ("replay", "experiment", "parameters"):
        done = subprocess.run(
            ["make", "-n", *kept, *given, target], cwd=CHECKOUT, capture_output=True, text=True, check=True
        )
        assert "bin/bufferscope" in done.stdout
        assert "touch" not in done.stdout


def test_makefile__names_a_goal_that_does_not_exist_and_has_a_locale() -> None:
    done = subprocess.run(
        ["make", "--no-print-directory", "--eval=locale:; @echo $$LC_ALL", "locale", "experimen"],
        cwd=CHECKOUT, capture_output=True, text=True, check=False, env=os.environ | {"LC_ALL": "de_DE.UTF-8"},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "C.UTF-8\n")
    assert "experimen is neither a target nor a file" in done.stderr
