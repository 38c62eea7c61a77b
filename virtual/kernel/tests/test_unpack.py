# SPDX-License-Identifier: MIT
"""Unpacking: extracts only needed files, and refuses paths out of the tree."""

import io
import tarfile
from pathlib import Path

import pytest

from virtual.kernel import unpack
from virtual.kernel.errors import KernelError

NEEDED = {
    "Makefile", "kernel/fork.c", "arch/um/kernel/time.c", "arch/arm/crypto/Kconfig", "drivers/gpu/drm/Kconfig",
    "drivers/net/veth.c",
}  # fmt: skip
NOT_NEEDED = {
    "arch/arm/mm/mmu.c", "drivers/gpu/drm/amd/big.h", "drivers/net/ethernet/intel/ice.c", "sound/core.c", ".config",
    "include/config/auto.conf", "kernel/fork.o", ".git/HEAD",
}  # fmt: skip


def archive(members: dict[str, str], top: str = "linux-6/", mode: str = "w:xz") -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=mode) as file:  # type: ignore[call-overload]
        for name, content in members.items():
            member = tarfile.TarInfo(top + name)
            member.size, member.mtime = len(content), 1000
            file.addfile(member, io.BytesIO(content.encode()))
    return data.getvalue()


def files(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_archive__gives_what_is_needed_whatever_its_compression(tmp_path: Path, mode: str) -> None:
    data = io.BytesIO(archive(dict.fromkeys(NEEDED | NOT_NEEDED, "int x;\n"), mode=mode))
    unpack.unpack_archive(data, tmp_path, "a.tar", lambda count: None)
    assert files(tmp_path) == NEEDED
    assert (tmp_path / "kernel/fork.c").read_text() == "int x;\n"
    # make compares modification times, so they must be those of the archive.
    assert (tmp_path / "kernel/fork.c").stat().st_mtime == 1000


def test_archive__refuses_paths_that_leave_the_tree(tmp_path: Path) -> None:
    for name in ("../../evil.c", "/etc/evil.c"):
        data = io.BytesIO(archive({name: "x"}, top=""))
        with pytest.raises(KernelError, match="leaves the tree"):
            unpack.unpack_archive(data, tmp_path / "tree", "a.tar", lambda count: None)
        assert files(tmp_path) == set()


def test_archive__links_stay_inside(tmp_path: Path) -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as file:
        for name, target in (("lib/in", "../kernel/fork.c"), ("lib/out", "../../../etc/passwd"), ("lib/abs", "/etc")):
            member = tarfile.TarInfo("linux/" + name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            file.addfile(member)
    unpack.unpack_archive(io.BytesIO(data.getvalue()), tmp_path, "a.tar", lambda count: None)
    assert [path.name for path in (tmp_path / "lib").iterdir()] == ["in"]


def test_space__is_asked_for_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match=r"needs 1000000\.0 GB, only .* GB are free: make room"):
        unpack.check_space(tmp_path, 10**15)
