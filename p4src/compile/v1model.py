# SPDX-License-Identifier: MIT
"""Compiles a v1model program with p4c-bm2-ss and keeps the output, so that machines without p4c can build the switch.

DIR/NAME.json    the program for BMv2, softswitch.translate and controlplane; paths of sources are relative to the root
DIR/NAME.sha256  digest of the program and all files it includes, then of each; written last
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from p4src.compile.sources import (
    CannotCompile,
    check_digest,
    digest_file,
    find_compiler,
    normalise,
    relative,
    write_changed,
)

COMPILERS = ("p4c-bm2-ss",)
P4C_PAGE = "https://github.com/p4lang/p4c#getting-started-with-p4c"
SUFFIXES = (".json", ".sha256")


def compile_p4(program: Path, output_dir: Path, root: Path, warnings: bool = True) -> list[tuple[Path, bool]]:
    """Compiles, writes both files, and returns (file, whether it changed). Without `warnings`, p4c's messages
    are shown only if it fails.
    """
    wanted = digest_file(program, root)
    compiler = find_compiler("P4C", COMPILERS, P4C_PAGE)
    with tempfile.TemporaryDirectory() as directory:
        compiled = Path(directory) / "program.json"
        command = [compiler, "--Wdisable=unused", "-o", str(compiled)]
        result = subprocess.run(
            [*command, relative(program, root)], cwd=root, capture_output=True, text=True, check=False
        )
        failed = bool(result.returncode) or not compiled.exists()
        if warnings or failed:
            sys.stderr.write(result.stderr)
        if failed:
            raise CannotCompile(f"{compiler} could not compile {program} (status {result.returncode})")
        text = json.dumps(normalise(json.loads(compiled.read_text()), root), indent=1) + "\n"
        contents = (text, wanted)
    output_dir.mkdir(parents=True, exist_ok=True)
    paths = _files(program, output_dir)
    return [(path, write_changed(path, content)) for path, content in zip(paths, contents, strict=True)]


def check(program: Path, output_dir: Path, root: Path) -> str | None:
    """The error with its remedy if the compiled files are missing or stale, else None."""
    refresh = f"python -m p4src.compile.v1model {program} --output-dir {output_dir}"
    if root != Path():
        refresh += f" --root {root}"
    return check_digest(program, root, _files(program, output_dir), refresh)


def _files(program: Path, output_dir: Path) -> list[Path]:
    return [output_dir / (program.stem + suffix) for suffix in SUFFIXES]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m p4src.compile.v1model", description="Compiles a P4 program with p4c-bm2-ss."
    )
    parser.add_argument("program", type=Path, metavar="SOURCE.p4")
    parser.add_argument("--output-dir", required=True, type=Path, metavar="DIR")
    parser.add_argument("--root", type=Path, default=Path(), help="directory that paths are relative to (default: .)")
    parser.add_argument("--check", action="store_true", help="compile nothing; fail when the sources have changed")
    options = parser.parse_args(arguments)
    try:
        if options.check:
            problem = check(options.program, options.output_dir, options.root)
            if problem:
                print(problem, file=sys.stderr)
            return 1 if problem else 0
        for path, changed in compile_p4(options.program, options.output_dir, options.root):
            print(f"{path}: {'changed' if changed else 'unchanged'}")
    except CannotCompile as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"writing {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
