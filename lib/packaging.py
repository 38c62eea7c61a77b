# SPDX-License-Identifier: MIT
"""The build backend of pyproject.toml: setuptools for `pip install -e .`, and our own wheel and source archive.

The wheel has one top-level package, bufferscope. The rest of the checkout (without tests, the bench and pictures) lies
in it as bufferscope/tree, unchanged: Python, C, P4, playbooks and Makefiles find each other by the same relative paths
as in the checkout, and bufferscope/__init__.py puts the directory on sys.path. The alternative, every package renamed
to bufferscope.NAME, would change each import, each `python -m` and each path in Makefiles and playbooks, or let the
wheel run other code than the checkout. The price: in a process that imports bufferscope, `lib`, `analysis` and the
other directories' names are ours.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    get_requires_for_build_editable,
    prepare_metadata_for_build_editable,
)

__all__ = [
    "build_editable", "build_sdist", "build_wheel", "get_requires_for_build_editable",
    "prepare_metadata_for_build_editable",
]  # fmt: skip

CHECKOUT = Path(__file__).resolve().parents[1]
COMMIT = "commit.json"  # lib/places.py
# What an installed copy needs of no other: developers' files, and pictures of docs/.
LEFT_OUT = re.compile(
    r"(.*/)?(tests|conftest\.py)(/.*)?|bench/.*|\..*|docs/.*\.(svg|png)|.*\.egg-info/.*|PKG-INFO|commit.json"
)
NOT_OURS = {"build", "results", "dist"}  # directories of an unpacked source archive in which make was run
EPOCH = (1980, 1, 1, 0, 0, 0)  # of every file in the wheel: equal files give an equal wheel
WHEEL = "Wheel-Version: 1.0\nGenerator: bufferscope\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        metadata = Path(scratch) / build_meta.prepare_metadata_for_build_wheel(scratch)
        info = metadata.name
        name = f"{info.removesuffix('.dist-info')}-py3-none-any.whl"
        ours = {path: _placed(path) for path in _files() if not LEFT_OUT.fullmatch(path)}
        digest = hashlib.sha256()
        record = []
        with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:

            def add(place: str, content: bytes, mode: int = 0o644) -> None:
                entry = zipfile.ZipInfo(place, EPOCH)
                entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, (0o100000 | mode) << 16
                wheel.writestr(entry, content)
                hashed = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                record.append(f"{place},sha256={hashed},{len(content)}")

            for path, place in ours.items():
                file = CHECKOUT / path
                content = file.read_bytes()
                digest.update(f"{path}\0{len(content)}\0".encode() + content)
                add(place, content, 0o755 if os.access(file, os.X_OK) else 0o644)
            add(_placed(COMMIT), json.dumps(_commit() | {"digest": digest.hexdigest()}, indent=1).encode())
            for file in sorted(metadata.rglob("*")):
                if file.is_file() and file.name not in ("top_level.txt", "WHEEL", "RECORD"):
                    add(f"{info}/{file.relative_to(metadata)}", file.read_bytes())
            add(f"{info}/WHEEL", WHEEL.encode())
            wheel.writestr(zipfile.ZipInfo(f"{info}/RECORD", EPOCH), "\n".join([*record, f"{info}/RECORD,,"]) + "\n")
    return name


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    """Every file of the checkout, and its commit."""
    with tempfile.TemporaryDirectory() as scratch:
        metadata = Path(scratch) / build_meta.prepare_metadata_for_build_wheel(scratch)
        stem = metadata.name.removesuffix(".dist-info")
        with tarfile.open(Path(sdist_directory) / f"{stem}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
            for path in _files():
                if path not in ("PKG-INFO", COMMIT):
                    archive.add(CHECKOUT / path, f"{stem}/{path}", recursive=False)
            texts = {"PKG-INFO": (metadata / "METADATA").read_bytes(), COMMIT: json.dumps(_commit()).encode()}
            for path, content in texts.items():
                entry = tarfile.TarInfo(f"{stem}/{path}")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return f"{stem}.tar.gz"


def _placed(path: str) -> str:
    return path if path.startswith("bufferscope/") else f"bufferscope/tree/{path}"


def _files() -> list[str]:
    """The files that git tracks; of an unpacked source archive all files."""
    if (CHECKOUT / ".git").exists():
        return sorted(name for name in _git("ls-files", "-z").split("\0") if name and (CHECKOUT / name).is_file())
    return sorted(_walked())


def _walked() -> Iterator[str]:
    for directory, names, files in os.walk(CHECKOUT):
        names[:] = [name for name in names if name != "__pycache__" and not name.startswith(".venv")]
        if Path(directory) == CHECKOUT:
            names[:] = [name for name in names if name not in NOT_OURS]
        yield from (str(Path(directory, file).relative_to(CHECKOUT)) for file in files)


def _commit() -> dict[str, Any]:
    if (CHECKOUT / ".git").exists():
        changes = _git("--no-optional-locks", "status", "--porcelain", "--untracked-files=no")
        return {"commit": _git("rev-parse", "HEAD").strip(), "dirty": bool(changes)}
    content: dict[str, Any] = json.loads((CHECKOUT / COMMIT).read_text())
    return content


def _git(*words: str) -> str:
    command = ["git", "-c", f"safe.directory={CHECKOUT}", "-C", str(CHECKOUT), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
