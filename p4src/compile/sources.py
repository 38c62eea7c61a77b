# SPDX-License-Identifier: MIT
"""The source files of a P4 program, their digest, and paths that are equal on every machine."""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import shutil
from pathlib import Path
from typing import Any

from lib import files, regular

MOST_BYTES = 1 << 24  # of a source, or of a compiled program
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"\n]+)"', re.M)
_TEXT_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.S)


class CannotCompile(Exception):
    """The reason, in one line. The compiler's own messages are on stderr."""


def sources(program: Path) -> list[Path]:
    """The program and every file that it includes with quotes, even in a branch of #if that is not compiled."""
    included: dict[Path, None] = {}
    waiting = [program.resolve()]
    while waiting:
        path = waiting.pop()
        if path in included or (included and not path.exists()):
            continue  # a missing one may be p4c's own, such as "v1model.p4"; else p4c says so
        try:
            text = regular.read_bytes(path, MOST_BYTES).decode()
        except OSError as error:
            by = "" if path == program.resolve() else f"; {program} includes it"
            raise CannotCompile(f"reading {path}: {error.strerror}{by}") from error
        except UnicodeDecodeError as error:
            raise CannotCompile(f"reading {path}: not UTF-8 text ({error.reason})") from error
        included[path] = None
        waiting += [(path.parent / name).resolve() for name in _INCLUDE.findall(text)]
    return list(included)


def digest(program: Path, root: Path) -> str:
    """SHA-256 in hex over all sources: path relative to `root`, length and code of each, sorted by path."""
    total = hashlib.sha256()
    for name, code in _code(program, root).items():
        total.update(f"{name}\0{len(code)}\0".encode() + code)
    return total.hexdigest()


def digest_file(program: Path, root: Path) -> str:
    """The text of a file NAME.sha256: the digest, then a line for each source, which tells a changed source."""
    lines = (f"{hashlib.sha256(code).hexdigest()}  {name}" for name, code in _code(program, root).items())
    return "\n".join([digest(program, root), *lines]) + "\n"


def read_digest(path: Path) -> str:
    """The digest of all sources in a file NAME.sha256."""
    return path.read_text(encoding="utf-8").split("\n", 1)[0].strip()


def _code(program: Path, root: Path) -> dict[str, bytes]:
    """Path relative to `root` -> code, sorted by path."""
    code = {
        relative(path, root): without_comments(path.read_text(encoding="utf-8")).encode() for path in sources(program)
    }
    return dict(sorted(code.items()))


def without_comments(text: str) -> str:
    """Replaces the comments of P4 or C code with blanks. The code keeps its lines and columns, because the compiler's
    output has both: moved code needs a new compilation, a reworded comment does not.
    """
    code = _TEXT_OR_COMMENT.sub(
        lambda match: match[0] if match[0].startswith('"') else re.sub(r"[^\n]", " ", match[0]), text
    )
    return "\n".join(line.rstrip() for line in code.split("\n"))


def relative(path: Path, root: Path) -> str:
    return Path(os.path.relpath(path.resolve(), root.resolve())).as_posix()


def normalise_path(name: str, root: Path) -> str:
    """A path in the compiler's output, relative to `root` and without `..`. For p4c's own files only the file name."""
    name = relative(Path(name), root) if posixpath.isabs(name) else posixpath.normpath(name)
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


def find_compiler(variable: str, names: tuple[str, ...], page: str) -> str:
    """The compiler that the environment variable names, else the first of `names` on the PATH."""
    from_environment = os.environ.get(variable)
    for name in (from_environment,) if from_environment else names:
        path = shutil.which(name)
        if path:
            return path
    wanted = f"{from_environment} (${variable})" if from_environment else " or ".join(names)
    raise CannotCompile(
        f"{wanted} is not installed, and is needed to compile the P4 program: install it as {page} says, "
        f"or set {variable} to the path of {names[0]}"
    )


def check_digest(program: Path, root: Path, compiled: list[Path], refresh: str) -> str | None:
    """The error with its remedy if `compiled` files are missing or stale, else None. The last file has the digest."""
    missing = [str(path) for path in compiled if not path.exists()]
    if missing:
        return f"{', '.join(missing)}: missing; make it with: {refresh}"
    if read_digest(compiled[-1]) != digest(program, root):
        return f"{', '.join(changed(program, root, compiled[-1]))}: not as compiled; compile again with: {refresh}"
    return None


def changed(program: Path, root: Path, compiled: Path) -> list[str]:
    """The sources that are not those of the compilation whose NAME.sha256 is `compiled`; at least the program."""
    now, then = _lines(digest_file(program, root)), digests(compiled)
    differ = sorted(name for name in now.keys() | then.keys() if now.get(name) != then.get(name))
    return differ if then and differ else [relative(program, root)]


def digests(compiled: Path) -> dict[str, str]:
    """Source -> its digest, in a file NAME.sha256."""
    return _lines(compiled.read_text(encoding="utf-8"))


def _lines(text: str) -> dict[str, str]:
    return {name: digest for digest, _, name in (line.partition("  ") for line in text.splitlines()[1:])}


def write_changed(path: Path, text: str) -> bool:
    """Replaces the content of `path` by `text`, unless the file has this text already. Returns whether it was written.
    After an OSError the old content is still there.
    """
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    files.write_text(path, text)
    return True
