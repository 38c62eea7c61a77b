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
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    get_requires_for_build_editable,
    prepare_metadata_for_build_editable,
)

from lib import places, sources

__all__ = [
    "build_editable", "build_sdist", "build_wheel", "get_requires_for_build_editable",
    "prepare_metadata_for_build_editable",
]  # fmt: skip

COMMIT = places.COMMIT.name
EPOCH = (1980, 1, 1, 0, 0, 0)  # of every file in the wheel: equal files give an equal wheel
WHEEL = "Wheel-Version: 1.0\nGenerator: bufferscope\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        metadata = Path(scratch) / build_meta.prepare_metadata_for_build_wheel(scratch)
        info = metadata.name
        name = f"{info.removesuffix('.dist-info')}-py3-none-any.whl"
        digest = hashlib.sha256()
        record = []
        with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:

            def add(place: str, content: bytes, mode: int = 0o644) -> None:
                entry = zipfile.ZipInfo(place, EPOCH)
                entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, (0o100000 | mode) << 16
                wheel.writestr(entry, content)
                hashed = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                record.append(f"{place},sha256={hashed},{len(content)}")

            for path, file in sources.of_a_copy().items():
                content = file.read_bytes()
                digest.update(f"{path}\0{len(content)}\0".encode() + content)
                add(_placed(path), content, 0o755 if os.access(file, os.X_OK) else 0o644)
            add(
                _placed(COMMIT),
                json.dumps((sources.commit() or {}) | {"digest": digest.hexdigest()}, indent=1).encode(),
            )
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
            for path, file in sources.everything().items():
                if path not in ("PKG-INFO", COMMIT):
                    archive.add(file, f"{stem}/{path}", recursive=False)
            texts = {"PKG-INFO": (metadata / "METADATA").read_bytes(), COMMIT: json.dumps(sources.commit()).encode()}
            for path, content in texts.items():
                entry = tarfile.TarInfo(f"{stem}/{path}")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return f"{stem}.tar.gz"


def _placed(path: str) -> str:
    return path if path.startswith("bufferscope/") else f"bufferscope/tree/{path}"
