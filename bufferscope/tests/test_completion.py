# SPDX-License-Identifier: MIT
"""The completion in bash: commands, keys, values, files."""

import subprocess
import sys
from pathlib import Path

from bufferscope.commands import COMMANDS
from bufferscope.completion import SCRIPTS
from experiments.machine.host import CHECKOUT
from lib.words import PATHS


def in_bash(lines: list[str], script: Path) -> dict[str, list[str]]:
    """The completions that bash offers for each line, with the cursor at its end."""
    program = (
        'source "$1"; shift; compopt() { :; }; for COMP_LINE; do COMP_POINT=${#COMP_LINE}; _bufferscope; '
        'echo "${COMPREPLY[@]}"; done'
    )
    command = ["bash", "-c", program, "-", str(script), *lines]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return dict(zip(lines, (line.split() for line in done.stdout.splitlines()), strict=True))


def test_completion__completes_commands_keys_values_and_files_in_bash(tmp_path: Path) -> None:
    script = tmp_path / "completion"
    command = [sys.executable, "-m", "bufferscope", "completion", "bash"]
    script.write_bytes(subprocess.run(command, cwd=CHECKOUT, capture_output=True, check=True).stdout)
    expected = {"exp": ["experiment", "export"], "": [*COMMANDS, "help", "--help"], "figures spang": ["spang2021"]}
    expected |= {"completion ": ["SHELL="], "completion z": ["zsh"]}
    for name, row in COMMANDS.items():
        keys = row.read_keys()
        expected[f"{name} --"] = [*(f"--{key.replace('_', '-')}" for key in keys), "--help", "--make"]
        for key in keys:
            expected[f"{name} {key}"] = [f"{other.upper()}=" for other in keys if other.startswith(key)]
            if keys[key].values and keys[key].values != PATHS:
                expected[f"{name} {key}="] = expected[f"{name} --{key.replace('_', '-')} "] = list(keys[key].values)
    expected[f"replay RUN={tmp_path}/comp"] = expected[f"compare a {tmp_path}/comp"] = [str(script)]
    offered = in_bash([f"bufferscope {line}" for line in expected], script)
    found = {line: offered[f"bufferscope {line}"] for line in expected}
    assert {line: words for line, words in found.items() if words != expected[line]} == {}
    assert COMMANDS["completion"].read_keys()["shell"].values == tuple(SCRIPTS)
