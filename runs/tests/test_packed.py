# SPDX-License-Identifier: MIT
"""Packed runs from strangers: what is not exactly as the manifest says is refused, and leaves nothing."""

import hashlib
import io
import json
import os
import random
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from lib.errors import InputError
from runs import packed

FILES: Mapping[str, Path | bytes] = {
    "results/a/rep-1/spec.yaml": b"x: 1\n",
    "results/a/rep-1/big": bytes(300_000),
    "program/b": b"#!",
}
MOST = 10**6
ROUNDS = int(os.environ.get("FUZZ_ROUNDS", "400"))


def whole(files: Mapping[str, Path | bytes] = FILES) -> bytes:
    output = io.BytesIO()
    packed.write(output, {"name": "a"}, files)
    return output.getvalue()


def by_hand(listed: Mapping[str, object], members: list[tuple[zipfile.ZipInfo | str, bytes]], **about: object) -> bytes:
    """An archive with any manifest and any members."""
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(packed.MANIFEST, json.dumps({"packed_version": 1, "files": listed, **about}))
        for name, content in members:
            archive.writestr(name, content)
    return output.getvalue()


def of(content: bytes) -> list[object]:
    return [len(content), hashlib.sha256(content).hexdigest()]


def refused(data: bytes, tmp_path: Path) -> str:
    """The refusal, after which nothing is left."""
    file, output = tmp_path / "file", tmp_path / "made/output"
    file.write_bytes(data)
    with pytest.raises(InputError) as error:
        packed.unpack(file, output, MOST)
    assert not output.exists()
    assert not list(output.parent.iterdir()) if output.parent.exists() else True
    return str(error.value)


def test_unpack__gives_the_files_and_equal_contents_give_an_equal_file(tmp_path: Path) -> None:
    assert whole() == whole(dict(reversed(list(FILES.items()))))
    (tmp_path / "file").write_bytes(whole())
    content = packed.unpack(tmp_path / "file", tmp_path / "output", MOST, executable="program/")
    assert content.about == {"name": "a"}
    made = {
        str(path.relative_to(tmp_path / "output")): path for path in (tmp_path / "output").rglob("*") if path.is_file()
    }
    assert {name: path.read_bytes() for name, path in made.items()} == FILES
    assert [name for name, path in made.items() if path.stat().st_mode & stat.S_IXUSR] == ["program/b"]
    with pytest.raises(InputError, match="exists"):
        packed.unpack(tmp_path / "file", tmp_path / "output", MOST)


@pytest.mark.parametrize(
    "path",
    [
        "../a", "/etc/passwd", "a/../../b", "a//b", "./a", "a/.", "a/..", "", "a\\b", "a\0b", "a\nb", "~root/\x1b[2J",
        "é", "/".join("a" * 13), "a" * 201, packed.MANIFEST + "/..",
    ],
)  # fmt: skip
def test_unpack__refuses_paths_that_leave_the_directory_or_are_odd(path: str, tmp_path: Path) -> None:
    assert "is no path of a file" in refused(by_hand({path: of(b"x")}, [(path or "empty", b"x")]), tmp_path)
    with pytest.raises(ValueError, match="is no path"):
        whole({path: b"x"})


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFBLK])
def test_unpack__refuses_what_is_no_ordinary_file(kind: int, tmp_path: Path) -> None:
    entry = zipfile.ZipInfo("link")
    entry.external_attr = (kind | 0o777) << 16
    assert "'link' is not an ordinary file" in refused(by_hand({"link": of(b"/etc")}, [(entry, b"/etc")]), tmp_path)


def test_unpack__refuses_what_the_manifest_does_not_say(tmp_path: Path) -> None:
    x = ("a", b"x")
    for data, problem in (
        (by_hand({}, [x]), "its files are not those"),
        (by_hand({"a": of(b"x"), "b": of(b"")}, [x]), "its files are not those"),
        (by_hand({"a": of(b"xy")}, [x]), "its files are not those"),
        (by_hand({"a": of(b"y")}, [x]), "'a' is not the file"),
        (by_hand({"a": of(b"x")}, [x, x]), "its files are not those"),
        (by_hand({"a": of(b"x"), "a/b": of(b"x")}, [x, ("a/b", b"x")]), "'a' is a file and a directory"),
        (by_hand({"a": [-1, "0" * 64]}, [x]), "gives no size"),
        (by_hand({"a": [True, 3]}, [x]), "gives no size"),
        (by_hand({"a": of(b"x")}, [x], packed_version=2), "it has version 2"),
        (by_hand({"a": of(b"x")}, [x], files=[]), "lists no files"),
        (whole()[:-1], "was changed or cut"),
        (whole()[: len(whole()) // 2], "was changed or cut"),
        (b"", "was changed or cut"),
        (b"PK\5\6" + bytes(18), f"its first member is not {packed.MANIFEST}"),
    ):
        assert problem in refused(data, tmp_path)


def test_unpack__bounds_what_it_writes_and_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = bytes(2 * MOST)
    assert "unpacks to 2000000 bytes, allowed are 1000000" in refused(
        by_hand({"a": of(zeros)}, [("a", zeros)]), tmp_path
    )
    # Says that it is small, in the manifest and in both headers, and is not.
    data = by_hand({"a": [5, "0" * 64]}, [("a", zeros)])
    small = data.replace(len(zeros).to_bytes(4, "little"), (5).to_bytes(4, "little"))
    assert small != data
    assert "is not the file that" in refused(small, tmp_path) or "was changed or cut" in refused(small, tmp_path)
    deep = io.BytesIO()
    with zipfile.ZipFile(deep, "w") as archive:
        archive.writestr(packed.MANIFEST, "[" * 100_000)
    assert "nested too deeply" in refused(deep.getvalue(), tmp_path)
    data = whole()
    monkeypatch.setattr(packed, "MOST_FILES", 3)
    assert "it has 4 files, at most 3" in refused(data, tmp_path)
    with pytest.raises(ValueError, match="it would have 3 files, at most 2 are packed"):
        whole()
    monkeypatch.setattr(packed, "MOST_READ", 100)
    assert "at most 100 are read" in refused(data, tmp_path)


def test_unpack__refuses_files_that_share_bytes(tmp_path: Path) -> None:
    """As in an archive of which each member is the same compressed megabyte: the directory is written by hand."""
    content = random.Random(1).randbytes(1000)
    data = bytearray(by_hand({"a": of(content), "b": of(content)}, [("a", content), ("b", content)]))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        first, second = archive.getinfo("a").header_offset, archive.getinfo("b").header_offset
    at = data.rindex(second.to_bytes(4, "little"))  # in the directory's entry of b
    data[at : at + 4] = first.to_bytes(4, "little")
    refused(bytes(data), tmp_path)  # b's header has the name a
    del data[second : second + 900]
    refused(bytes(data), tmp_path)


def test_unpack__takes_no_changed_file(tmp_path: Path) -> None:
    """Random damage: an unpacked file is always the packed one (damage of unused bytes may pass)."""
    good, chance, taken = whole(), random.Random(7), 0
    file, output = tmp_path / "file", tmp_path / "output"
    for _ in range(ROUNDS):
        data = bytearray(good)
        for _ in range(chance.choice((1, 1, 2, 8))):
            at = chance.randrange(len(data))
            match chance.randrange(4):
                case 0:
                    data[at] ^= 1 << chance.randrange(8)
                case 1:
                    data[at : at + chance.randrange(1, 9)] = chance.randbytes(chance.randrange(9))
                case 2:
                    data[at : at + 4] = chance.choice((b"\xff" * 4, bytes(4), b"PK\5\6", b"PK\1\2"))
                case 3:
                    del data[at : at + chance.choice((1, 100))]
        file.write_bytes(data)
        try:
            packed.unpack(file, output, MOST)
        except InputError:
            assert not output.exists()
            continue
        taken += 1
        made = {str(path.relative_to(output)): path.read_bytes() for path in output.rglob("*") if path.is_file()}
        assert made == FILES
        for path in sorted(output.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        output.rmdir()
    assert taken < ROUNDS / 2
