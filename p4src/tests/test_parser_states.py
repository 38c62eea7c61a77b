# SPDX-License-Identifier: MIT
"""A compiler is refused if the parser in its assembly cannot tell packets apart."""

import subprocess
import sys
from pathlib import Path

import pytest

from p4src.compile import tofino
from p4src.compile.parser_states import blind_states
from p4src.compile.sources import CannotCompile

ROOT = Path(__file__).resolve().parents[2]
ASSEMBLY = Path(__file__).parent / "assembly"
SEEING = (ASSEMBLY / "seeing.bfa").read_text()
BLIND = ["ingress parse_ethernet", "egress $entry_state", "all of ingress", "all of egress"]


def test_states__whose_transitions_are_the_same_are_named() -> None:
    """Each faulty state is named once; a parser is named if none of its states compares."""
    assert blind_states(SEEING) == []
    assert blind_states((ASSEMBLY / "blind.bfa").read_text()) == BLIND
    assert blind_states(SEEING.replace("0x****:", "0x86**:")) == BLIND[:1]
    assert blind_states("") == BLIND[2:]
    assert blind_states(SEEING.replace("parser egress:", "parde egress:")) == BLIND[3:]


def test_assembly__recorded_from_the_compiler_with_the_fault_is_refused() -> None:
    for generation, last, count in (("tofino", "all of ingress", 8), ("tofino2", "all of egress", 8)):
        states = blind_states((ASSEMBLY / f"recorded-blind-{generation}.bfa").read_text())
        assert (len(states), states[-1]) == (count, last)
        assert any("PacketParser_parse_ipv4" in state for state in states)


def test_compiler__whose_parser_is_blind_is_refused_and_nothing_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stand-in compiler writes assembly with a blind parser and prints nothing, like p4c's driver."""
    compiler = tmp_path / "p4c"
    compiler.write_text(
        "#!/bin/sh\n"
        'while [ $# -gt 1 ]; do case "$1" in --bf-rt-schema) schema=$2 ;; -o) out=$2 ;; esac; shift; done\n'
        'mkdir -p "$out/pipe"; echo "{}" >"$schema"; echo "{}" >"$out/pipe/context.json"\n'
        f"cp '{ASSEMBLY}/blind.bfa' \"$out/pipe/bufferscope.bfa\"\n"
    )
    compiler.chmod(0o755)
    monkeypatch.chdir(ROOT)
    files = [ROOT / path for path in tofino.files(tofino.GENERATIONS[0])]
    before = [path.read_bytes() for path in files]
    with pytest.raises(CannotCompile, match="p4c built a parser that treats all packets alike"):
        tofino.compile_tofino(tofino.GENERATIONS[0], ROOT, str(compiler))
    assert before == [path.read_bytes() for path in files]


def test_script__runs_alone(tmp_path: Path) -> None:
    """The role `tofino` runs the script on another host, without our packages, and reads one line and a status."""
    for name, status, output in (
        ("seeing", 0, ""), ("blind", 1, "built a parser that treats"), ("none", 1, "left no assembly"),
    ):  # fmt: skip
        command = [sys.executable, "-I", ROOT / "p4src/compile/parser_states.py", ASSEMBLY / f"{name}.bfa"]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (result.returncode, result.stderr, result.stdout.count("\n")) == (status, "", 1)
        assert result.stdout.startswith(output)
