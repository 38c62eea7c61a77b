# SPDX-License-Identifier: MIT
"""Damages one file of a stored repetition, pseudo-randomly from a seed. The damage changes, cuts off or appends bytes,
or it changes whole blocks or values of documents. Or it removes or empties the file, or replaces it by a FIFO or by
another file of this run or of another run. Or it puts in several files of another run that agree with each other.
"""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from runs import record
from runs.names import ENVIRONMENT, RECORD, SPEC_FILE, SUMMARY
from wire import wire

KINDS = ("raw", "derived", "swapped", "put in")
BLOCKS = {".bsp": "BLOCK_POSTCARDS", ".bst": "BLOCK_TCP", ".bsg": "BLOCK_GOODPUT"}  # by a raw file's suffix
Files = dict[str, bytes | None]  # by path below a directory; None: not a regular file


def derived_of(names: Iterable[str]) -> list[str]:
    """The names of files that an analysis writes."""
    of_run = [name for name in names if not name.startswith("whatif-")]
    return [n for n in of_run if n.startswith("figures/") or n.endswith((".parquet", ".html")) or n == "summary.json"]


def files(directory: Path) -> Files:
    """All files below a directory."""
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in directory.rglob("*")
        if not path.is_dir()
    }


def accept(directory: Path, name: str) -> None:
    """Records the digest of a changed derived file, as if the analysis had written the file."""
    if text := record.with_file(directory, name, (directory / name).read_bytes()):
        (directory / RECORD).write_text(text)


def damage(directory: Path, other: Path, kind: str, chance: random.Random) -> str:
    """Damages one file of a repetition. Returns the name of the file and the damage."""
    names = sorted(files(directory))
    derived = [name for name in names if name in derived_of(names) or name.startswith("whatif-")]
    raw = [name for name in names if name not in (*derived, RECORD)]
    if kind == "put in":  # everything that agrees, but for at least one file of a pair that no two runs share
        names = [RECORD, SUMMARY, *chance.sample(derived, chance.randrange(len(derived)))]
        names += chance.sample([*{*raw} - {SPEC_FILE, ENVIRONMENT}], chance.randrange(len(raw) - 2))
        names += chance.choice(([], [SPEC_FILE], [ENVIRONMENT]))
        names = [name for name in names if (other / name).exists()]
        for name in names:
            (directory / name).unlink(missing_ok=True)
            shutil.copyfile(other / name, directory / name)
        return f"{', '.join(names)} of {other.parent.name}"
    if kind == "swapped":
        name = chance.choice([*raw, *derived, RECORD])
        source = other / name
        if chance.random() < 0.2:
            source = directory / chance.choice([n for n in raw + derived if n != name])
        if not source.exists() or source.read_bytes() == (directory / name).read_bytes():
            source = other / "tcp.bst"
        (directory / name).write_bytes(source.read_bytes())
        return f"{name} of {source.parent.parent.name}/{source.name}"
    # Otherwise nearly all damage would hit the documents, which are more numerous.
    if kind == "raw" and chance.random() < 0.4:
        name = chance.choice([n for n in raw if Path(n).suffix in BLOCKS])
    else:
        name = chance.choice([*(raw if kind == "raw" else derived), RECORD])
    path = directory / name
    kinds = [*ANY, *["blocks"] * 4 * (path.suffix in BLOCKS), *["value"] * 4 * (path.suffix in (".json", ".yaml"))]
    way = chance.choice(kinds)
    data = path.read_bytes()
    path.unlink()
    if way == "fifo":
        os.mkfifo(path)
    elif way != "deleted":
        path.write_bytes({"blocks": _blocks, "value": _value}.get(way, _bytes)(data, chance, way, path.suffix))
    return f"{name} {way}"


ANY = ("flipped", "cut", "extended", "zeroed", "deleted", "emptied", "fifo")


def _bytes(data: bytes, chance: random.Random, way: str, suffix: str) -> bytes:
    changed = bytearray(data)
    if way == "flipped":
        for _ in range(chance.choice((1, 1, 1, 4, 64))):
            changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif way == "cut":
        del changed[chance.randrange(len(data)) :]
    elif way == "extended":
        changed += chance.choice((chance.randbytes(chance.randrange(1, 3000)), data, b"\n", b" "))
    elif way == "zeroed":
        at = chance.choice([i for i, byte in enumerate(data[:100_000]) if byte])
        end = min(len(data), at + chance.choice((1, 16, 4096)))
        changed[at:end] = bytes(end - at)
    else:
        changed.clear()
    return bytes(changed)


def _blocks(data: bytes, chance: random.Random, way: str, suffix: str) -> bytes:
    """Removes, doubles or moves a whole block, or cuts the file where a block begins."""
    parts, at = [], 0
    for block in wire.read_blocks(data, wire.BLOCK.const[BLOCKS[suffix]]):
        size = wire.BLOCK.length + len(block.payload)
        parts.append(data[at : at + size])
        at += size
    which = chance.randrange(len(parts))
    how = chance.choice(("removed", "doubled", "swapped", "cut"))
    if how == "doubled":
        parts.insert(which, parts[which])
    elif how == "swapped":
        parts.append(parts.pop(which if which < len(parts) - 1 else 0))
    else:
        del parts[which : which + 1 if how == "removed" else None]
    return b"".join(parts)


def _value(data: bytes, chance: random.Random, way: str, suffix: str) -> bytes:
    """Changes or removes one value of a document."""
    read, write = (yaml.safe_load, yaml.safe_dump) if suffix == ".yaml" else (json.loads, json.dumps)
    document = read(data)
    changed = copy.deepcopy(document)
    while changed == document:
        place, key = chance.choice(list(_places(changed)))
        old = place[key]
        new: list[Any] = [0, -1, 1 << 62, 1e300, None, "x", "$\\frac{$", [], {}, True]
        new += [old + 1, old - 1, old * 2, old / 3] if isinstance(old, (int, float)) else []
        if chance.random() < 0.2:
            del place[key]
        else:
            place[key] = chance.choice(new)
    return write(changed).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from _places(value[key])
