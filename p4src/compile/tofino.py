# SPDX-License-Identifier: MIT
"""Compiles the TNA program for both generations of Tofino, and keeps descriptions of the output, not the binary.

p4src/build/GENERATION/bf-rt.json         the control plane's view: tables, actions, counters, registers
p4src/build/GENERATION/bufferscope.sha256 digest of the sources; written last
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from p4src.compile import parser_states
from p4src.compile.sources import CannotCompile, check_digest, digest_file, find_compiler, write_changed

PROGRAM = Path("p4src/tna/bufferscope.p4")
BUILD = Path("p4src/build")
PAGE = "https://github.com/p4lang/open-p4studio"
FILES = ("bf-rt.json", "bufferscope.sha256")

# Shared controls have code for other targets, and metadata that only some packets use.
WARNINGS = ("--Wdisable=unused", "--Wdisable=uninitialized-out-param")


@dataclass(frozen=True)
class Generation:
    """The differences between the generations."""

    target: str
    architecture: str


GENERATIONS = (Generation("tofino", "tna"), Generation("tofino2", "t2na"))


def files(generation: Generation) -> list[Path]:
    return [BUILD / generation.target / name for name in FILES]


def find() -> str:
    return find_compiler("P4C_TOFINO", ("bf-p4c",), PAGE)


def compile_tofino(generation: Generation, root: Path, compiler: str) -> list[Path]:
    """Compiles, writes the files, and returns those that changed."""
    wanted = digest_file(root / PROGRAM, root)
    with tempfile.TemporaryDirectory() as directory:
        interface = Path(directory) / "bf-rt.json"
        chip = ["-b", generation.target, "-a", generation.architecture]
        command = [compiler, *chip, *WARNINGS, "--bf-rt-schema", str(interface), "-o", directory, str(PROGRAM)]
        # The open compiler also reads the architecture from its environment.
        environment = {**os.environ, "P4C_DEFAULT_ARCH": generation.architecture}
        result = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
        if result.returncode or not interface.exists():
            sys.stderr.write(result.stdout + result.stderr)
            raise CannotCompile(
                f"{compiler} could not compile {PROGRAM} for {generation.target} (status {result.returncode})"
            )
        if sentence := parser_states.fault(Path(directory) / "pipe" / f"{PROGRAM.stem}.bfa"):
            raise CannotCompile(f"{compiler} {sentence}")
        texts = [_interface(interface), wanted]
    paths = [root / path for path in files(generation)]
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    return [path for path, text in zip(paths, texts, strict=True) if write_changed(path, text)]


def _interface(path: Path) -> str:
    """bf-rt.json without the snapshot tables, which are for debugging and fill nine tenths of the file."""
    interface = json.loads(path.read_text())
    interface["tables"] = [table for table in interface["tables"] if not table["name"].startswith("pipe.snapshot.")]
    return json.dumps(interface, indent=1) + "\n"


def check(generation: Generation, root: Path) -> str | None:
    """The error with its remedy if the compiled files are missing or stale, else None."""
    return check_digest(root / PROGRAM, root, [root / path for path in files(generation)], "make p4")
