# SPDX-License-Identifier: MIT
"""Compiles a P4 program with p4c-bm2-ss and keeps what it made, so that machines without p4c can build the switch.

DIR/NAME.json          what softswitch.translate reads; paths of sources relative to the root
DIR/NAME.p4info.txtpb  the control plane's view of it
DIR/NAME.sha256        of the program and all files it includes; written last, `--check` compares it
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from .output import write_whole

P4C_PAGE = "https://github.com/p4lang/p4c#getting-started-with-p4c"

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"\n]+)"', re.M)


class CannotCompile(Exception):
    """One line, or p4c's own messages."""


def sources(program: Path) -> list[Path]:
    """The program and every file it includes with quotes, whatever the conditions around them."""
    found: dict[Path, None] = {}
    waiting = [program.resolve()]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise CannotCompile(f"reading {path}: {error.strerror}; {program} includes it") from error
        except UnicodeDecodeError as error:
            raise CannotCompile(f"reading {path}: not UTF-8 text ({error.reason})") from error
        found[path] = None
        waiting += [(path.parent / name).resolve() for name in _INCLUDE.findall(text)]
    return list(found)


def digest(program: Path, root: Path) -> str:
    """SHA-256 in hex of all sources, with their paths relative to `root`, in order of these paths."""
    total = hashlib.sha256()
    for path in sorted(sources(program), key=lambda source: _relative(source, root)):
        content = path.read_bytes()
        total.update(f"{_relative(path, root)}\0{len(content)}\0".encode() + content)
    return total.hexdigest()


def _relative(path: Path, root: Path) -> str:
    return Path(os.path.relpath(path.resolve(), root.resolve())).as_posix()


def normalise_path(name: str, root: Path) -> str:
    """A path of the compiler's output, relative to `root` and without detours; of p4c's own files the name alone."""
    name = _relative(Path(name), root) if posixpath.isabs(name) else posixpath.normpath(name)
    return posixpath.basename(name) if name.startswith("../") else name


def normalise(value: Any, root: Path) -> Any:
    """The compiler's JSON with all paths normalised."""
    if isinstance(value, list):
        return [normalise(item, root) for item in value]
    if isinstance(value, dict):
        return {
            key: normalise_path(item, root)
            if key in ("filename", "program") and isinstance(item, str) and item
            else normalise(item, root)
            for key, item in value.items()
        }
    return value


def find_compiler() -> str:
    name = os.environ.get("P4C") or "p4c-bm2-ss"
    path = shutil.which(name)
    if not path:
        told = " ($P4C)" if os.environ.get("P4C") else ""
        raise CannotCompile(
            f"{name}{told} is not installed, and the P4 program has to be compiled again: install p4c as "
            f"{P4C_PAGE} says, or set P4C to its p4c-bm2-ss"
        )
    return path


def compile_p4(program: Path, output_dir: Path, root: Path) -> list[tuple[Path, bool]]:
    """Compiles and writes the three files; returns each with whether it changed."""
    wanted = digest(program, root)
    compiler = find_compiler()
    with tempfile.TemporaryDirectory() as directory:
        made, info = Path(directory) / "program.json", Path(directory) / "p4info.txtpb"
        command = [compiler, "--Wdisable=unused", "-o", str(made), "--p4runtime-files", str(info)]
        result = subprocess.run(
            [*command, _relative(program, root)], cwd=root, capture_output=True, text=True, check=False
        )
        sys.stderr.write(result.stderr)
        if result.returncode or not made.exists() or not info.exists():
            raise CannotCompile(f"{compiler} could not compile {program} (status {result.returncode})")
        text = json.dumps(normalise(json.loads(made.read_text()), root), indent=1) + "\n"
        p4info = info.read_text()
    output_dir.mkdir(parents=True, exist_ok=True)
    changes = []
    for suffix, content in ((".json", text), (".p4info.txtpb", p4info), (".sha256", wanted + "\n")):
        path = output_dir / (program.stem + suffix)
        changed = not path.exists() or path.read_text(encoding="utf-8") != content
        if changed:
            write_whole(path, content)
        changes.append((path, changed))
    return changes


def check(program: Path, output_dir: Path, root: Path) -> str | None:
    """What is to be done when the compiled files are older than the sources; None when they are not."""
    path = output_dir / f"{program.stem}.sha256"
    refresh = f"python -m softswitch.translate.compile_p4 {program} --output-dir {output_dir}"
    if root != Path():
        refresh += f" --root {root}"
    missing = [
        str(output_dir / (program.stem + suffix))
        for suffix in (".json", ".p4info.txtpb", ".sha256")
        if not (output_dir / (program.stem + suffix)).exists()
    ]
    if missing:
        return f"{', '.join(missing)}: missing; make it with: {refresh}"
    if path.read_text(encoding="utf-8").strip() != digest(program, root):
        return f"{path}: does not match {program} and what it includes; compile again with: {refresh}"
    return None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m softswitch.translate.compile_p4", description="Compiles a P4 program with p4c-bm2-ss."
    )
    parser.add_argument("program", type=Path, metavar="SOURCE.p4")
    parser.add_argument("--output-dir", required=True, type=Path, metavar="DIR")
    parser.add_argument("--root", type=Path, default=Path(), help="what paths are relative to (default: .)")
    parser.add_argument("--check", action="store_true", help="compile nothing; fail when the sources have changed")
    given = parser.parse_args(arguments)
    try:
        if given.check:
            problem = check(given.program, given.output_dir, given.root)
            if problem:
                print(problem, file=sys.stderr)
            return 1 if problem else 0
        for path, changed in compile_p4(given.program, given.output_dir, given.root):
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
