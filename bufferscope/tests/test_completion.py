# SPDX-License-Identifier: MIT
"""The completion of each shell, in that shell: commands, keys, values, files."""

import os
import pty
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bufferscope.commands import COMMANDS
from bufferscope.completion import SCRIPTS
from experiments.host import CHECKOUT
from lib.words import PATHS

Lines = dict[str, list[str]]
# A widget of zsh's line editor completes each line of the file {lines}, and appends compadd's matches to {out}.
ZSH = """
compdef() {{ :; }}
source {script}
compadd() {{ local -a hits; builtin compadd -O hits "$@"; MATCHES+=($hits); builtin compadd "$@" }}
_files() {{ local -a names=($PREFIX*(N)); MATCHES+=($names) }}
capture() {{ _bufferscope }}
zle -C capture complete-word capture
all() {{
  local line
  for line in ${{(f)"$(<{lines})"}}; do
    BUFFER=$line CURSOR=$#line MATCHES=()
    zle capture
    print -r -- "$line:$MATCHES" >> {out}
  done
  BUFFER="exit 0"
  zle accept-line
}}
zle -N all
bindkey '^X' all
"""
LIMIT_S = 120


def in_bash(lines: list[str], script: Path) -> Lines:
    """The completions that bash offers for each line, with the cursor at its end."""
    program = (
        'source "$1"; shift; compopt() { :; }; for COMP_LINE; do COMP_POINT=${#COMP_LINE}; _bufferscope; '
        'echo "${COMPREPLY[@]}"; done'
    )
    command = ["bash", "-c", program, "-", str(script), *lines]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return dict(zip(lines, (line.split() for line in done.stdout.splitlines()), strict=True))


def in_zsh(lines: list[str], script: Path) -> Lines:
    """The completions that zsh offers for each line. zsh completes only in a terminal."""
    if not shutil.which("zsh"):
        pytest.skip("no zsh: apt-get install zsh")
    given, out, setup = (script.with_name(name) for name in ("lines", "out", "setup"))
    given.write_text("\n".join(lines) + "\n")
    setup.write_text(ZSH.format(script=script, lines=given, out=out))
    terminal, inside = pty.openpty()
    shell = subprocess.Popen(
        ["zsh", "-f", "-i"], stdin=inside, stdout=inside, stderr=inside, start_new_session=True, close_fds=True
    )
    os.close(inside)
    try:
        os.write(terminal, f"source {setup}; print ready\n".encode())
        said, end_s = b"", time.monotonic() + LIMIT_S
        while b"\nready" not in said.replace(b"print ready", b"") and time.monotonic() < end_s:
            said += os.read(terminal, 4096)
        os.write(terminal, b"\x18")
        while shell.poll() is None and time.monotonic() < end_s:
            said += _read(terminal)
        assert shell.poll() == 0, said
    finally:
        shell.kill()
        shell.wait()
        os.close(terminal)
    rows = dict(line.split(":", 1) for line in out.read_text().splitlines())
    return {line: rows[line].split() for line in lines}


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # the shell has ended
        return b""


@pytest.mark.parametrize(("shell", "complete"), [("bash", in_bash), ("zsh", in_zsh)])
def test_completion__completes_commands_keys_and_values(
    shell: str, complete: Callable[[list[str], Path], Lines], tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "bufferscope", "completion", shell]
    script = tmp_path / "completion"
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
    offered = complete([f"bufferscope {line}" for line in expected], script)
    if shell == "zsh":  # compadd -S adds the "=" of a key as a suffix, which is not part of the match
        expected = {line: [word.removesuffix("=") for word in words] for line, words in expected.items()}
    found = {line: offered[f"bufferscope {line}"] for line in expected}
    assert {line: words for line, words in found.items() if words != expected[line]} == {}


def test_shells__are_those_that_have_a_script() -> None:
    assert COMMANDS["completion"].read_keys()["shell"].values == tuple(SCRIPTS)
