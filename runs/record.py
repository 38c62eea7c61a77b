# SPDX-License-Identifier: MIT
"""digests.json, the record of a repetition: the SHA-256 of every raw and derived file. The digests detect a damaged
file that is still well-formed, and a file that comes from another run.

The runner and `make import` write the digests of the raw files when the last raw file is closed. The analysis adds the
digests of the derived files each time it writes them. A program that reads a file of a run calls `damage` first.
README.md describes damaged runs, and runs without a record. A sweep's plan has a digest of itself (`signed`).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePath
from typing import Any, NamedTuple, TypeVar

from lib import files, regular
from lib.terminal import one_line
from runs import environment_file
from runs.names import ENVIRONMENT, RECORD, SPEC_FILE, SUMMARY
from runs.thinned import removed

VERSION = 1
ALGORITHM = "sha256"
MARK = "has_digests"  # true in environment.json: the raw files' digests were written when the run was made
OF_EVERY_CHECK = (SPEC_FILE, ENVIRONMENT)  # they differ between runs: with them, a record of another run is noticed
LONGEST_NAME = 255  # characters of a file name, with its directory
HASHED_AT_ONCE = 2  # files, one thread each: hashlib releases the GIL
_RESTORE = "restore it from a copy, or run the experiment again"
_WITHOUT = "the run did not finish, or its digests.json was removed), so damage cannot be excluded"
_REPLAY = "make replay writes it anew from raw files"

T = TypeVar("T")


class Damage(NamedTuple):
    """One file that differs from the record."""

    name: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.name}: {self.what}; {self.remedy}"


class Damaged(ValueError):
    """A file that differs from the record; the text is one whole line."""


class Record(NamedTuple):
    """File name -> digest. None: that part was never written."""

    raw: Mapping[str, str] | None
    derived: Mapping[str, str] | None


def digest(path: Path) -> str:
    """Raises OSError."""
    with regular.opened(path) as file:
        return hashlib.file_digest(file, ALGORITHM).hexdigest()


def digests(directory: Path, names: Iterable[str]) -> dict[str, str]:
    """The digests of these files of `directory`, by name. Raises OSError."""
    ordered = sorted(names)
    return dict(zip(ordered, _each(lambda name: digest(directory / name), ordered), strict=True))


def _each(hashed: Callable[[str], T], names: Sequence[str]) -> list[T]:
    """The results for each name. For a few, such as those of OF_EVERY_CHECK, threads would take longer than hashing."""
    if len(names) <= len(OF_EVERY_CHECK):
        return [*map(hashed, names)]
    with ThreadPoolExecutor(HASHED_AT_ONCE) as pool:
        return [*pool.map(hashed, names)]


def read(directory: Path) -> Record | None:
    """The record of a repetition; None if it never had one. Raises ValueError if the record itself is damaged."""
    try:
        content = json.loads(regular.read_text(directory / RECORD))
    except FileNotFoundError:
        if environment_file.read(directory).has_digests:
            raise ValueError(f"missing, though {ENVIRONMENT} says that the run has it") from None
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"cannot be read: {one_line(error)}") from None
    check_signed(content)
    if content.get("digests_version") != VERSION:
        raise ValueError(f"has version {content.get('digests_version')!r}, this program reads {VERSION}")
    if not all(_is_part(content.get(name, ...)) for name in Record._fields):
        raise ValueError("does not give each part as file names with digests, or as null")
    record = Record(content["raw"], content["derived"])
    if record.raw is None and environment_file.read(directory).has_digests:
        raise ValueError(f"has no digests of raw files, though {ENVIRONMENT} says that they were written")
    return record


def damage(
    directory: Path, raw: Iterable[str] = (), derived: Iterable[str] = (), *, all_raw: bool = False
) -> list[Damage]:
    """The damaged files among OF_EVERY_CHECK, the raw files `raw`, the files `derived` and, with `all_raw`, all raw
    files of the record. An existing file that the record lacks is damage. A part that was never recorded has none.
    """
    try:
        record = read(directory)
    except ValueError as error:
        return [Damage(RECORD, str(error), _RESTORE)]
    found = []
    if record and record.raw is not None:
        names = dict.fromkeys((*OF_EVERY_CHECK, *raw, *(record.raw if all_raw else ())))
        found += _damaged(directory, record.raw, names, "the run", _RESTORE)
    return found + _damaged_derived(directory, record, derived)


def what_if_damage(repetition: Path, what_if: Path) -> str | None:
    """The reason why the summary of a what-if is damaged or belongs to another run, else None. A what-if's record has
    the digests of the raw files that the what-if was made from.
    """
    try:
        of_run = read(repetition)
    except ValueError:
        return None  # every reader of the run refuses a damaged record
    try:
        record = read(what_if)
    except ValueError as error:
        return f"{RECORD}: {error}"
    if found := _damaged_derived(what_if, record, [SUMMARY]):
        return f"{found[0].name}: {found[0].what}"
    if of_run is None or of_run.raw is None or of_run.raw == (record and record.raw):
        return None
    return f"was not made from this run's raw files, or has no {RECORD} that says so"


def lines(damage: Iterable[Damage]) -> str:
    """The first damage as text, with the number of further ones."""
    first, *others = damage
    return f"{first}{f' (and {len(others)} more)' if others else ''}"


def unrecorded(directory: Path) -> str | None:
    """One line if the digests of the raw files were never recorded."""
    return f"{directory}: has no digests of its raw files ({_WITHOUT}" if _lacks_raw(directory) else None


def unrecorded_among(directories: Iterable[Path], where: Path) -> str | None:
    """Like `unrecorded`, in one line for several repetitions below `where`."""
    lacking = [_lacks_raw(directory) for directory in directories]
    if not any(lacking):
        return None
    return f"{where}: {sum(lacking)} of {len(lacking)} runs have no digests of their raw files ({_WITHOUT}"


def _lacks_raw(directory: Path) -> bool:
    try:
        record = read(directory)
    except ValueError:
        return False  # a damaged record: every reader refuses it
    return record is None or record.raw is None


def write_raw(directory: Path, last: Mapping[str, bytes]) -> None:
    """Writes the record of a run whose raw files are all closed. `last`: files that the caller writes after the record,
    such as the one that marks the run as recorded. Raises OSError.
    """
    names = [
        path.name
        for path in directory.iterdir()
        if path.is_file() and not path.is_symlink() and not path.name.startswith(".") and path.name != RECORD
    ]
    raw = digests(directory, names) | {name: hashlib.new(ALGORITHM, data).hexdigest() for name, data in last.items()}
    files.write_text(directory / RECORD, _text(Record(raw, None)))


def with_derived(directory: Path, derived: Mapping[str, str]) -> str:
    """The text of the record with these digests of derived files. The digests of raw files stay. If the record is
    damaged, the digests of raw files are unknown and left out.
    """
    try:
        known = read(directory)
    except ValueError:
        known = None
    return _text(Record(known.raw if known else None, derived))


def text_of_what_if(repetition: Path, derived: Mapping[str, str]) -> str:
    """The text of a what-if's record. Its raw part is a copy of the raw part of the run's record: a what-if that was
    moved into another run differs there. Raises ValueError if the run's record is damaged.
    """
    known = read(repetition)
    return _text(Record(known.raw if known else None, derived))


def with_file(directory: Path, name: str, data: bytes) -> str | None:
    """The text of the record with the digest of one derived file; None if the record has no derived part. Raises
    ValueError.
    """
    known = read(directory)
    if known is None or known.derived is None:
        return None
    return _text(Record(known.raw, {**known.derived, name: hashlib.new(ALGORITHM, data).hexdigest()}))


def signed(content: Mapping[str, Any]) -> dict[str, Any]:
    """`content` with its own digest, for a JSON file that readers check with `check_signed`."""
    return {**content, "digest": _digest_of(content)}


def check_signed(content: Any) -> None:
    """Raises ValueError unless `content` has its own digest."""
    unsigned = {key: value for key, value in content.items() if key != "digest"} if isinstance(content, dict) else {}
    if not unsigned or content.get("digest") != _digest_of(unsigned):
        raise ValueError("was changed after it was written: its own digest differs")


def _damaged_derived(directory: Path, record: Record | None, names: Iterable[str]) -> list[Damage]:
    return _damaged(directory, record.derived or {}, names, "the analysis", _REPLAY) if record else []


def _damaged(directory: Path, known: Mapping[str, str], names: Iterable[str], author: str, remedy: str) -> list[Damage]:
    """The files among `names` that differ from the digests `known`, unless they were removed on purpose, and then those
    that exist though `known` lacks them.
    """
    gone, asked = removed(directory), sorted(names)
    recorded = [
        name for name in asked if name in known and not (_is_under(name, gone) and not (directory / name).exists())
    ]
    differences = _each(lambda name: _difference(directory, name, known[name]), recorded)
    result = [Damage(name, what, remedy) for name, what in zip(recorded, differences, strict=True) if what]
    return result + [
        Damage(name, f"is not a file that {author} wrote: {RECORD} does not have it", "remove it")
        for name in asked
        if name not in known and os.path.lexists(directory / name)
    ]


def _difference(directory: Path, name: str, expected: str) -> str | None:
    try:
        same = digest(directory / name) == expected
    except FileNotFoundError:
        return f"missing, though {RECORD} has it"
    except OSError as error:
        return f"cannot be read: {one_line(error)}"
    return None if same else f"damaged, or of another run: its SHA-256 is not that in {RECORD}"


def _is_part(value: Any) -> bool:
    """Whether `value` is null, or an object of relative file names with digests. Anyone can compute the record's own
    digest, so a correct digest does not prove that `value` has this form.
    """
    return value is None or (
        isinstance(value, dict) and all(_is_file_name(name) and isinstance(text, str) for name, text in value.items())
    )


def _is_file_name(name: str) -> bool:
    return 0 < len(name) <= LONGEST_NAME and name.isprintable() and not {"", ".", ".."} & set(name.split("/"))


def _is_under(name: str, gone: Sequence[str]) -> bool:
    return PurePath(name).parts[0] in gone


def _digest_of(content: Mapping[str, Any]) -> str:
    return hashlib.new(ALGORITHM, json.dumps(content, sort_keys=True).encode()).hexdigest()


def _text(record: Record) -> str:
    content: dict[str, Any] = {"digests_version": VERSION, "algorithm": ALGORITHM}
    content |= {name: dict(part) if part is not None else None for name, part in record._asdict().items()}
    return json.dumps(signed(content), indent=1) + "\n"
