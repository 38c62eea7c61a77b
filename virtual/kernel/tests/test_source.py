# SPDX-License-Identifier: MIT
"""The source: packages fetched by name, the user's own source, and a one-line error for everything else.

A script replaces apt, so that the tests depend neither on the network nor on this machine's package lists.
"""

import io
import os
import tarfile
from pathlib import Path

import pytest

from virtual.kernel import choice, source, tools
from virtual.kernel.errors import KernelError
from virtual.kernel.progress import BuildProgress

APT_CACHE = """#!/bin/sh
case "$1 $*" in
pkgnames*) echo linux-source-6.1; echo linux-source-6.12; echo linux-source-rt-doc;;
*linux-source-6.12) printf 'Package: linux-source-6.12\\nSize: 11\\n';;
*" linux-source") printf 'Package: linux-source\\nDepends: linux-source-6.12 (= 6.12.1)\\nSize: 1\\n';;
*) exit 100;;
esac
"""
APT_GET = """#!/bin/sh
[ "$1" = download ] || exit 0
for word; do name=$word; done
echo "$name" >>"$APT_CALLS"
printf 'the package' >"${name}_6.12.1-1_all.deb"
"""


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts our apt first on PATH; returns the file that lists the downloads."""
    programs, calls = tmp_path / "bin", tmp_path / "calls"
    programs.mkdir()
    calls.write_text("")
    for name, text in (("apt-cache", APT_CACHE), ("apt-get", APT_GET)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("APT_CALLS", str(calls))
    return calls


def find(directory: Path, **selected: str) -> source.KernelSource:
    (directory / "build").mkdir(exist_ok=True)
    return source.find(selected or choice.remembered(directory), directory / "build", BuildProgress(io.StringIO()))


def test_package__is_fetched_once(apt: Path, tmp_path: Path) -> None:
    package = find(tmp_path)
    assert (package.kind, package.name, package.version) == ("package", "linux-source-6.12", "6.12.1-1")
    assert package.path.read_text() == "the package"
    assert find(tmp_path) == package
    assert apt.read_text() == "linux-source-6.12\n"


def test_package__of_no_version_is_the_one_it_depends_on(apt: Path, tmp_path: Path) -> None:
    assert find(tmp_path, KERNEL_PACKAGE="linux-source").version == "6.12.1-1"
    assert find(tmp_path, KERNEL_PACKAGE="linux-source").name == "linux-source-6.12"
    assert apt.read_text() == "linux-source-6.12\n"


def test_package__unknown_says_which_are_known_and_what_to_do(apt: Path, tmp_path: Path) -> None:
    with pytest.raises(KernelError) as error:
        find(tmp_path, KERNEL_PACKAGE="linux-source-9.9")
    assert str(error.value) == (
        "the package linux-source-9.9 is not in the package lists (they have: linux-source-6.1, linux-source-6.12): "
        "refresh them (as root: apt-get update), or give another source: make kernel KERNEL_PACKAGE=linux-source-X, or "
        "make kernel KERNEL_SOURCE=/path/to/tree-or-archive"
    )


def test_package__that_cannot_be_fetched_leaves_nothing(apt: Path, tmp_path: Path) -> None:
    (tmp_path / "bin/apt-get").write_text(
        "#!/bin/sh\nprintf half >linux-source-6.12_1_all.deb\necho 'E: no route' >&2\nexit 100\n"
    )
    with pytest.raises(KernelError, match=r"fetching the package linux-source-6\.12: E: no route; check the network"):
        find(tmp_path)
    assert not list((tmp_path / "build/packages").glob("*.deb"))


@pytest.mark.parametrize("name", ["linux-image-6.12", "linux-source-6.12 -o X", "--help", "linux-source-../x"])
def test_package__names_are_checked(tmp_path: Path, name: str) -> None:
    with pytest.raises(KernelError, match="not the name of a kernel source package"):
        find(tmp_path, KERNEL_PACKAGE=name)


def test_own__that_is_not_there_or_no_kernel_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match="no such file or directory"):
        find(tmp_path, KERNEL_SOURCE=str(tmp_path / "nothing"))
    with pytest.raises(KernelError, match="no kernel source, it has no Makefile, arch/um/Kconfig"):
        find(tmp_path, KERNEL_SOURCE=str(tmp_path))


@pytest.mark.parametrize(
    "content", [b"", b"text\n", b"\xfd7zXZ\0 cut short", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd zstd"]
)
def test_own_archive__that_is_no_archive_is_refused_before_unpacking(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "linux.tar.xz").write_bytes(content)
    with pytest.raises(KernelError, match=r"linux\.tar\.xz: neither a directory, nor a tar archive \(plain, "):
        find(tmp_path, KERNEL_SOURCE=str(tmp_path / "linux.tar.xz"))


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


def test_own_tree__is_known_by_its_files(tmp_path: Path) -> None:
    tree = tmp_path / "own"
    for name in ("Makefile", "arch/um/Kconfig", "drivers/net/Makefile"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 2\n")
    first = find(tmp_path, KERNEL_SOURCE=str(tree))
    assert (first.kind, first.path) == ("tree", tree)
    (tree / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 30\n")
    assert find(tmp_path, KERNEL_SOURCE=str(tree)).digest != first.digest


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
