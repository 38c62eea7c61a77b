# SPDX-License-Identifier: MIT
"""A packed run: one file with a run or a sweep, and the program that made it. The file may come from a stranger.

It is a zip archive whose first member, manifest.json, gives every other member's size and SHA-256. A reader accepts
nothing that is not exactly as the manifest says: other members, other sizes, links, devices, paths that leave the
directory, names that are also directories, encryption, and members that share bytes of the archive. What it reads at
once and what it writes is bounded before it begins. It writes to a new directory, which gets its name when it is whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from lib import files, regular
from lib.errors import InputError
from lib.terminal import one_line

VERSION = 1
MANIFEST = "manifest.json"
MOST_FILES, MOST_DEPTH = 100_000, 12
MOST_READ = 32 << 20  # bytes of the manifest, and of the archive's directory, which zipfile reads at once
PART = re.compile(r"[A-Za-z0-9_ .,:@%+=~#()\[\]-]{1,200}")  # of a path
DIGEST = re.compile(r"[0-9a-f]{64}")
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
EPOCH = (1980, 1, 1, 0, 0, 0)  # equal contents give an equal file
CHUNK = 1 << 20
# What zipfile raises for damaged archives.
BROKEN = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, RuntimeError, NotImplementedError,
    OverflowError, MemoryError, LookupError,
)  # fmt: skip


class Content(NamedTuple):
    """`about`: what the packer says of the run. `files`: path -> (bytes, SHA-256)."""

    about: Mapping[str, Any]
    files: Mapping[str, tuple[int, str]]

    @property
    def bytes(self) -> int:
        return sum(size for size, _ in self.files.values())


def write(output: IO[bytes], about: Mapping[str, Any], contents: Mapping[str, Path | bytes]) -> Content:
    """Writes a packed run with these files, by their paths in it. Raises OSError, ValueError for what no reader would
    accept.
    """
    if len(contents) >= MOST_FILES:  # and the manifest
        raise ValueError(f"it would have {len(contents)} files, at most {MOST_FILES - 1} are packed; pack fewer runs")
    for path in contents:
        _check_path(path)
    listed = {path: _measured(source) for path, source in sorted(contents.items())}
    content = Content(about, listed)
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        manifest = {"packed_version": VERSION, **about, "files": listed}
        archive.writestr(_entry(MANIFEST), json.dumps(manifest, indent=1))
        for path in listed:
            source = contents[path]
            with archive.open(_entry(path), "w", force_zip64=True) as member, _opened(source) as file:
                shutil.copyfileobj(file, member, CHUNK)
    return content


def _entry(path: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(path, EPOCH)
    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, (stat.S_IFREG | 0o644) << 16
    return entry


def _opened(source: Path | bytes) -> IO[bytes]:
    return io.BytesIO(source) if isinstance(source, bytes) else regular.opened(source)


def _measured(source: Path | bytes) -> tuple[int, str]:
    digest, size = hashlib.sha256(), 0
    with _opened(source) as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return size, digest.hexdigest()


@contextlib.contextmanager
def opened(path: Path, most_bytes: int) -> Iterator[tuple[Content, zipfile.ZipFile]]:
    """The content of a packed run, checked but for the files' bytes. Raises InputError."""
    try:
        with regular.opened(path) as file, zipfile.ZipFile(_Bounded(file)) as archive:  # type: ignore[arg-type]
            yield _content(archive, path.stat().st_size, most_bytes), archive
    except BROKEN as error:
        raise InputError(f"{path}: is not a packed run, or was changed or cut: {one_line(error)}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {one_line(error)}") from None


class _Bounded:
    """A file whose reads are bounded: zipfile reads an archive's whole directory at once, however long it is."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if size > MOST_READ:
            raise ValueError(f"its directory has {size} bytes, at most {MOST_READ} are read")
        return self._file.read(size if size >= 0 else MOST_READ)


def _content(archive: zipfile.ZipFile, archive_bytes: int, most_bytes: int) -> Content:
    """Raises BROKEN."""
    members = archive.infolist()
    if not members or members[0].filename != MANIFEST:
        raise ValueError(f"its first member is not {MANIFEST}")
    if len(members) > MOST_FILES:
        raise ValueError(f"it has {len(members)} files, at most {MOST_FILES} are unpacked")
    for member in members:
        kind = member.external_attr >> 16
        if stat.S_IFMT(kind) not in (0, stat.S_IFREG) or member.flag_bits & 1:
            raise ValueError(f"{member.filename!a} is not an ordinary file")
        if member.compress_type not in METHODS:
            raise ValueError(f"{member.filename!a} is compressed in another way than deflate")
    if sum(member.compress_size for member in members) > archive_bytes:
        raise ValueError("its files share bytes of the archive")
    if members[0].file_size > MOST_READ:
        raise ValueError(f"its {MANIFEST} has {members[0].file_size} bytes, at most {MOST_READ} are read")
    with archive.open(members[0]) as file:
        try:
            about = json.loads(file.read(MOST_READ))
        except RecursionError:
            raise ValueError(f"{MANIFEST} is nested too deeply") from None
    if not isinstance(about, dict) or not isinstance(listed := about.pop("files", None), dict):
        raise ValueError(f"{MANIFEST} lists no files")
    if (version := about.pop("packed_version", None)) != VERSION:
        raise ValueError(f"it has version {version!a}, this program reads {VERSION}")
    content = Content(about, {path: _listed(path, entry) for path, entry in listed.items()})
    sizes = {member.filename: member.file_size for member in members[1:]}
    if len(sizes) != len(members) - 1 or sizes != {path: size for path, (size, _) in content.files.items()}:
        raise ValueError(f"its files are not those that {MANIFEST} lists")
    directories = {str(parent) for path in content.files for parent in Path(path).parents}
    if both := sorted(directories & content.files.keys()):
        raise ValueError(f"{both[0]!a} is a file and a directory")
    if content.bytes > most_bytes:
        raise ValueError(f"it unpacks to {content.bytes} bytes, allowed are {most_bytes}: raise MOST= if you trust it")
    return content


def _listed(path: str, entry: object) -> tuple[int, str]:
    _check_path(path)
    match entry:
        case [int() as size, str() as digest] if size >= 0 and DIGEST.fullmatch(digest):
            return size, digest
    raise ValueError(f"{MANIFEST} gives no size and SHA-256 of {path!a}")


def _check_path(path: str) -> None:
    """Raises ValueError for a path that is not a plain relative one."""
    parts = path.split("/")
    if len(parts) > MOST_DEPTH or not all(PART.fullmatch(part) and part.strip(".") for part in parts):
        raise ValueError(f"{path[:60]!a} is no path of a file in a packed run")


def extract(archive: zipfile.ZipFile, content: Content, directory: Path, executable: str = "") -> None:
    """Writes the files to the new directory `directory`. `executable`: the prefix of paths of programs. Raises BROKEN,
    OSError.
    """
    directory.mkdir()
    for path, (size, digest) in content.files.items():
        place = directory / path
        place.parent.mkdir(parents=True, exist_ok=True)
        hashed, left = hashlib.sha256(), size
        with archive.open(path) as member, place.open("xb") as file:
            while chunk := member.read(min(CHUNK, left + 1)):
                left -= len(chunk)
                if left < 0:
                    break
                hashed.update(chunk)
                file.write(chunk)
        if left or hashed.hexdigest() != digest:
            raise ValueError(f"{path!a} is not the file that {MANIFEST} lists")
        if executable and path.startswith(executable):
            place.chmod(0o755)


def unpack(path: Path, output: Path, most_bytes: int, executable: str = "") -> Content:
    """Unpacks a packed run to the new directory `output`; returns its content. Raises InputError."""
    if output.exists() or output.is_symlink():
        raise InputError(f"{output}: exists; allowed with OUTPUT=: a directory that does not exist yet")
    with opened(path, most_bytes) as (content, archive):
        output.parent.mkdir(parents=True, exist_ok=True)
        if content.bytes > (free := shutil.disk_usage(output.parent).free):
            raise InputError(f"{output.parent} has {free} bytes free, {path} unpacks to {content.bytes}")
        with files.complete(output) as place:
            extract(archive, content, place, executable)
    return content
