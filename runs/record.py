# SPDX-License-Identifier: MIT
"""digests.json, the record of a repetition: the SHA-256 of every raw and derived file. The digests detect a damaged
file that is still well-formed, and a file that comes from another run.

The runner and `make import` write the digests of the raw files when the last raw file is closed. The analysis adds the
digests of the derived files each time it writes them. A program that reads a file of a run calls `raw_damage` or
`derived_damage` first. README.md describes damaged runs, and runs without a record.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from lib import files, regular
from runs.names import ENVIRONMENT, RECORD
from runs.thinned import removed

VERSION = 1
ALGORITHM = "sha256"
MARK = "has_digests"  # true in environment.json: the raw files' digests were written when the run was made
LONGEST_NAME = 255  # characters of a file name, with its directory
HASHED_AT_ONCE = 2  # files, one thread each: hashlib releases the GIL
_RESTORE = "restore it from a copy, or run the experiment again"
_WITHOUT = "an earlier version made the run, or the run did not finish), so damage cannot be excluded"
_REPLAY = "make replay writes it anew from raw files"


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
    with ThreadPoolExecutor(HASHED_AT_ONCE) as pool:
        return dict(zip(ordered, pool.map(lambda name: digest(directory / name), ordered), strict=True))


def read(directory: Path) -> Record | None:
    """The record of a repetition; None if it never had one. Raises ValueError if the record itself is damaged."""
    try:
        content = json.loads(regular.read_text(directory / RECORD))
    except FileNotFoundError:
        if environment(directory).get(MARK) is True:
            raise ValueError(f"missing, though {ENVIRONMENT} says that the run has it") from None
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"cannot be read: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(content, dict) or content.pop("digest", None) != _digest_of(content):
        raise ValueError("was changed after it was written: its own digest differs")
    if content.get("digests_version") != VERSION:
        raise ValueError(f"has version {content.get('digests_version')!r}, this program reads {VERSION}")
    if not all(_is_part(content.get(name, ...)) for name in Record._fields):
        raise ValueError("does not give each part as file names with digests, or as null")
    record = Record(content["raw"], content["derived"])
    if record.raw is None and environment(directory).get(MARK) is True:
        raise ValueError(f"has no digests of raw files, though {ENVIRONMENT} says that they were written")
    return record


def raw_damage(directory: Path, only: Sequence[str] | None = None, readable: Sequence[str] = ()) -> list[Damage]:
    """The raw files that differ from the record; `only` limits the comparison to these names. `readable` lists the
    names that the analysis reads as raw files: an existing file of these names is damage if the record lacks it.
    Without a record there is no damage.
    """
    return _damage(directory, only, readable, derived=False)


def derived_damage(directory: Path, *names: str) -> list[Damage]:
    """The derived files among `names` that differ from the record, or exist although the record lacks them."""
    return _damage(directory, names, names, derived=True)


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


def add_derived(directory: Path, name: str) -> None:
    """Adds or replaces the digest of one derived file; does nothing if the record has no derived part. Raises
    ValueError, OSError.
    """
    known = read(directory)
    if known and known.derived is not None:
        derived = {**known.derived, name: digest(directory / name)}
        files.write_text(directory / RECORD, _text(Record(known.raw, derived)))


def _damage(directory: Path, only: Sequence[str] | None, readable: Sequence[str], derived: bool) -> list[Damage]:
    try:
        record = read(directory)
    except ValueError as error:
        return [Damage(RECORD, str(error), _RESTORE)]
    if record is None or (record.raw is None and not derived):
        return []
    known = (record.derived if derived else record.raw) or {}
    gone = removed(directory)
    names = [
        name
        for name in known
        if (only is None or name in only) and not (_is_under(name, gone) and not (directory / name).exists())
    ]
    with ThreadPoolExecutor(HASHED_AT_ONCE) as pool:
        differences = pool.map(lambda name: _difference(directory, name, known[name]), sorted(names))
    remedy = _REPLAY if derived else _RESTORE
    result = [Damage(name, what, remedy) for name, what in zip(sorted(names), differences, strict=True) if what]
    author = "the analysis" if derived else "the run"
    return result + [
        Damage(name, f"is not a file that {author} wrote: {RECORD} does not have it", "remove it")
        for name in readable
        if name not in known and os.path.lexists(directory / name)
    ]


def _difference(directory: Path, name: str, expected: str) -> str | None:
    try:
        same = digest(directory / name) == expected
    except FileNotFoundError:
        return f"missing, though {RECORD} has it"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
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


def environment(directory: Path) -> dict[str, Any]:
    """environment.json, unchecked; empty if it cannot be read."""
    try:
        content = json.loads(regular.read_text(directory / ENVIRONMENT))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _digest_of(content: Mapping[str, Any]) -> str:
    return hashlib.new(ALGORITHM, json.dumps(content, sort_keys=True).encode()).hexdigest()


def _text(record: Record) -> str:
    content: dict[str, Any] = {"digests_version": VERSION, "algorithm": ALGORITHM}
    content |= {name: dict(part) if part is not None else None for name, part in record._asdict().items()}
    return json.dumps(content | {"digest": _digest_of(content)}, indent=1) + "\n"
