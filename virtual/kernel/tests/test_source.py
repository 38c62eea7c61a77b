# SPDX-License-Identifier: MIT
"""The source: the user's own source is known by its content, and a one-line error for everything else."""

import io
import os
import shutil
import tarfile
from pathlib import Path

import pytest

from virtual.kernel import choice, source, tools
from virtual.kernel.errors import KernelError
from virtual.kernel.progress import BuildProgress


def find(directory: Path, **selected: str) -> source.KernelSource:
    (directory / "build").mkdir(exist_ok=True)
    return source.find(selected or choice.remembered(directory), directory / "build", BuildProgress(io.StringIO()))


@pytest.mark.skipif(shutil.which("apt-cache") is None, reason="apt-cache missing (not Debian?)")
def test_package__unknown_or_of_another_kind_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)  # root's command would refresh the package lists
    with pytest.raises(KernelError, match=r"linux-source-9\.9 is not in the package lists .*KERNEL_SOURCE="):
        find(tmp_path, KERNEL_PACKAGE="linux-source-9.9")
    for name in ("linux-image-6.12", "linux-source-6.12 -o X", "--help", "linux-source-../x"):
        with pytest.raises(KernelError, match="not the name of a kernel source package"):
            find(tmp_path, KERNEL_PACKAGE=name)


def test_own_archive__is_known_by_its_content(tmp_path: Path) -> None:
    archive = tmp_path / "linux.tar.xz"

    def write(member: str) -> None:
        with tarfile.open(archive, "w:xz") as tar:
            tar.addfile(tarfile.TarInfo(member))

    write("linux/a")
    first = find(tmp_path, KERNEL_SOURCE=str(archive))
    assert first == find(tmp_path, KERNEL_SOURCE=str(archive))
    write("linux/another")
    assert find(tmp_path, KERNEL_SOURCE=str(archive)).digest != first.digest


def test_version__comes_from_the_makefile(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("# SPDX\nVERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\nEXTRAVERSION =\n")
    assert source.kernel_version(tmp_path) == "6.12.117"
    (tmp_path / "Makefile").write_text("all:\n")
    with pytest.raises(KernelError, match="does not say which version"):
        source.kernel_version(tmp_path)


def test_tools__everything_missing_is_named_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "make").write_text("")
    (tmp_path / "make").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        KernelError, match=r"needs bc, bison, flex, gcc, ld, .*: as root, apt-get install bc binutils bison"
    ):
        tools.check_build_tools()
    with pytest.raises(KernelError, match=r"needs apt-cache, apt-get, dpkg-deb.*KERNEL_SOURCE="):
        find(tmp_path)
