# SPDX-License-Identifier: MIT
"""Archives of a sweep's runs. An archive has the files that KEEP=summary keeps, without report.html. Runs that took
hours can be published as an archive, and extended on another machine. A run with tables is packed without its tables
if it has MEASURES, the values that figures take from the tables. Without MEASURES the run is left out.

Members are <sweep>/runs/<job>/rep-1/<file>. A run is moved to its place only when all of its files are unpacked.
"""

from __future__ import annotations

import contextlib
import io
import lzma
import os
import re
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from lib import files, owner
from lib.errors import InputError
from runs import record
from runs.names import MEASURES, REPETITION, SWEEP_RUNS, THINNED
from runs.thinned import SUMMARY, kept, mark, removes

KEPT_SUFFIXES = (".json", ".yaml", ".parquet", "")  # '' for THINNED
SUFFIX = ".tar.xz"
MOST_MEMBERS, MOST_BYTES = 200_000, 4 << 30
MOST_PACKED_BYTES = 24 << 20  # all archives of a paper: everybody who clones the repository downloads them
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,120}"
MEMBER = re.compile(rf"((?:{_NAME})/{SWEEP_RUNS}/(?:{_NAME})/{REPETITION})/({_NAME})")


class Packed(NamedTuple):
    """Archives in a temporary directory."""

    files: list[Path]
    left_out: list[int]  # the highest repetitions: with them the archives would exceed MOST_PACKED_BYTES

    def replace(self, directory: Path) -> list[Path]:
        """Replaces the archives in `directory` by these. Returns the new files. Raises OSError."""
        owner.make(directory)
        for path in directory.glob(f"*{SUFFIX}"):
            path.unlink()
        return [path.replace(directory / path.name) for path in self.files]


@contextlib.contextmanager
def packed(beside: Path, results: Path, by_repetition: Mapping[int, Iterable[str]]) -> Iterator[Packed]:
    """Archives of runs, one for each number in `by_repetition`, in a temporary directory in `beside`. The lowest
    numbers are packed, as many as MOST_PACKED_BYTES allows; the other runs have to be run again. Raises InputError if
    not even the first archive fits, OSError.
    """
    owner.make(beside)
    with tempfile.TemporaryDirectory(prefix=".packing-", dir=beside) as scratch:
        files: list[Path] = []
        left_out: list[int] = []
        total = 0
        for number in sorted(by_repetition):
            path = Path(scratch) / f"repetition-{number}{SUFFIX}"
            if not left_out:
                pack(path, results, by_repetition[number])
                total += path.stat().st_size
            if total > MOST_PACKED_BYTES:
                left_out.append(number)
            else:
                files.append(path)
        if left_out and not files:
            raise InputError(
                f"{results}: the archive of repetition {left_out[0]} has {total / 2**20:.0f} MiB; allowed in a "
                f"repository that everybody clones: {MOST_PACKED_BYTES >> 20} MiB; publish fewer points"
            )
        yield Packed(files, left_out)


def unpack_all(directory: Path, results: Path) -> int:
    """Calls `unpack` for every archive of a directory; returns the number of runs."""
    return sum(unpack(file, results) for file in sorted(directory.glob(f"*{SUFFIX}")))


def pack(file: Path, results: Path, repetitions: Iterable[str]) -> int:
    """Packs the repetitions (paths below `results`) that need no tables; returns their number. The same runs give the
    same bytes. Raises OSError.
    """
    chosen = sorted(path for path in repetitions if needs_no_table(results / path))
    with files.whole(file) as out, tarfile.open(fileobj=out, mode="w:xz", preset=9) as archive:
        for path in chosen:
            for name, content in _members(results / path, path):
                member = tarfile.TarInfo(f"{path}/{name}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return len(chosen)


def needs_no_table(repetition: Path) -> bool:
    """Whether a repetition can be published: it kept only its summary, or its measures are stored and undamaged."""
    return kept(repetition) == SUMMARY or (
        (repetition / MEASURES).is_file() and not record.derived_damage(repetition, MEASURES)
    )


def _members(repetition: Path, path: str) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the packed files of a repetition, sorted by name. Names that `unpack` refuses below `path`
    are left out. Raises OSError.
    """
    names = {each.name for each in repetition.iterdir() if each.is_file() and each.suffix in KEPT_SUFFIXES}
    names = {name for name in names if not removes(SUMMARY, name) and MEMBER.fullmatch(f"{path}/{name}")}
    if kept(repetition) == SUMMARY:
        yield from ((name, (repetition / name).read_bytes()) for name in sorted(names))
        return
    for name in sorted({*names, THINNED}):
        yield name, mark(SUMMARY).encode() if name == THINNED else (repetition / name).read_bytes()


def unpack(file: Path, results: Path) -> int:
    """Unpacks the runs that have no directory in `results` (an unfinished run has one); returns their number. Raises
    InputError for a file that `pack` cannot have made, OSError.
    """
    owner.make(results)
    repetitions: set[str] = set()
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=results) as scratch:
        try:
            with tarfile.open(file, mode="r:xz") as archive:
                total = 0
                for count, member in enumerate(archive, 1):
                    total += member.size
                    name = MEMBER.fullmatch(member.name)
                    if count > MOST_MEMBERS or total > MOST_BYTES:
                        raise ValueError(f"it has more than {MOST_MEMBERS} files or {MOST_BYTES >> 30} GiB")
                    if not name or not member.isreg():
                        raise ValueError(f"{member.name!a:.200} is not a file of a packed run")
                    repetitions.add(name[1])
                    archive.extract(member, scratch, set_attrs=False, filter="data")
        # tarfile raises TypeError for a truncated header
        except (tarfile.TarError, lzma.LZMAError, EOFError, ValueError, TypeError) as error:
            raise InputError(f"{file} is not an archive of runs: {error}") from None
        return sum(_place(Path(scratch) / repetition, results / repetition) for repetition in sorted(repetitions))


def _place(unpacked: Path, repetition: Path) -> bool:
    """Moves an unpacked repetition to its place. Returns False if the place is taken. Raises OSError."""
    if os.path.lexists(repetition):
        return False
    job = repetition.parent
    for level in (job.parent.parent, job.parent, job):
        owner.claim(level)
    owner.give(unpacked)
    unpacked.rename(repetition)
    return True
