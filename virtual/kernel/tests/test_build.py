# SPDX-License-Identifier: MIT
"""The whole build, with a small tree that make builds at once: which steps are repeated after which change, and the
state after interruptions at the worst moments.
"""

import errno
import fcntl
import io
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from bufferscope.__main__ import main
from hosts.tests.patience import wait_until
from virtual.kernel import build, cache, command, config, patches, stage
from virtual.kernel.errors import KernelError
from virtual.kernel.progress import BuildProgress

# Replaces a kernel's Makefile: same calls, same files. The kernel is a copy of the sources. make hangs if a file `slow`
# exists.
MAKEFILE = """\
VERSION = 6
PATCHLEVEL = 0
SUBLEVEL = 1
O ?= .
allnoconfig:
\tmkdir -p $(O)/include/config
\tgrep -v '^#' $(KCONFIG_ALLCONFIG) >$(O)/.config
\techo 6.0.1-test >$(O)/include/config/kernel.release
linux: $(O)/linux
$(O)/linux: main.c $(wildcard drivers/net/bufferscope/softswitch/driver/main.c)
\t@echo "  CC      main.o"
\tif [ -e slow ]; then echo half >$@; exec sleep 600; fi
\tcat $^ >$@
.PHONY: linux allnoconfig
"""
RUNNER = """\
import signal, sys
from pathlib import Path
from virtual.kernel import build, config, patches
from virtual.kernel.progress import BuildProgress
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
config.FRAGMENT, patches.DIRECTORY = Path(sys.argv[2]), Path(sys.argv[3])
build.ensure(Path(sys.argv[1]), {"KERNEL_SOURCE": sys.argv[4]}, BuildProgress(sys.stdout), Path(sys.argv[5]))
"""
PATCH = "Subject: x\n\n--- a/main.c\n+++ b/main.c\n@@ -1 +1 @@\n-int main;\n+int other;\n"


class Setting:
    """A checkout's build directory, a cache, a source, patches and a fragment; build() uses them."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.cache, self.tree = directory / "build", directory / "cache", directory / "source"
        for name, content in {
            "Makefile": MAKEFILE,
            "main.c": "int main;\n",
            "arch/um/Kconfig": "",
            "drivers/net/Makefile": "",
            "net/ipv4/Kconfig": 'config TCP_CONG_X\n\ttristate "X"\n',
        }.items():
            path = self.tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        self.patches, self.fragment = directory / "patches", directory / "fragment"
        self.patches.mkdir()
        self.fragment.write_text("CONFIG_A=y\n")

    def build(self) -> dict[str, Any]:
        self.output = io.StringIO()
        return build.ensure(self.directory, {"KERNEL_SOURCE": str(self.tree)}, BuildProgress(self.output), self.cache)

    def ensure(self, **chosen: str) -> dict[str, Any]:
        """Builds the checkout's kernel from the given or stored choice; `output` holds the progress."""
        self.output = io.StringIO()
        return build.ensure(self.directory, chosen, BuildProgress(self.output), self.cache)

    def built(self, name: str) -> list[Path]:
        """Files of this name in the cached trees."""
        return list(self.cache.glob(f"trees/*/{name}"))

    def process(self, tree: Path | None = None) -> "subprocess.Popen[str]":
        words = [self.directory, self.fragment, self.patches, tree or self.tree, self.cache]
        return subprocess.Popen(
            [sys.executable, "-c", RUNNER, *map(str, words)], cwd=stage.CHECKOUT, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def phases(self) -> list[str]:
        return [line.split()[1] for line in self.output.getvalue().splitlines()]


@pytest.fixture
def setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    setting = Setting(tmp_path)
    monkeypatch.setattr(config, "FRAGMENT", setting.fragment)
    monkeypatch.setattr(patches, "DIRECTORY", setting.patches)
    monkeypatch.setattr("virtual.kernel.unpack.NEEDED_BYTES", 1000)
    return setting


def test_build__does_what_changed_and_no_more(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = setting.build()
    assert setting.phases() == ["unpacking", "patching", "configuring", "compiling", "Linux"]
    assert json.loads((setting.directory / "kernel.json").read_text()) == kernel
    assert (kernel["version"], kernel["source"]["kind"]) == ("6.0.1-test", "tree")
    assert kernel["compiler"].startswith("gcc")
    linux = setting.directory / "linux"
    assert linux.read_bytes().startswith(b"int main;\n")
    (makefile,) = setting.built("tree/drivers/net/Makefile")
    assert "obj-y += bufferscope/" in makefile.read_text()
    assert (setting.tree / "drivers/net/Makefile").read_text() == "", "the user's own tree must not change"

    before = linux.stat().st_mtime_ns
    assert setting.build() == kernel
    assert (setting.phases(), linux.stat().st_mtime_ns) == ([], before)

    our_code = stage.collect()
    with monkeypatch.context() as changed:
        changed.setattr(stage, "collect", lambda users: {**our_code, "softswitch/driver/main.c": b"int changed;\n"})
        setting.build()
        assert setting.phases() == ["compiling", "Linux"]
        assert linux.read_bytes() == b"int main;\nint changed;\n"
    setting.fragment.write_text("CONFIG_A=y\nCONFIG_B=y\n")
    setting.build()
    assert setting.phases() == ["configuring", "compiling", "Linux"]
    (setting.patches / "a.patch").write_text(PATCH)
    assert setting.build()["patches"] == ["a.patch"]
    assert setting.phases() == ["unpacking", "patching", "configuring", "compiling", "Linux"]
    assert linux.read_bytes().startswith(b"int other;\n")

    (setting.patches / "a.patch").unlink()
    (setting.tree / "main.c").write_text("int newest;\n")
    (setting.tree / "net/gone.c").write_text("x\n")
    setting.build()
    (setting.tree / "net/gone.c").unlink()
    setting.build()
    assert linux.read_bytes().startswith(b"int newest;\n")
    assert len(setting.built("tree")) == cache.TREES


def test_record__of_equal_builds_differs_only_in_the_build_time_whatever_the_environment(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = setting.build()
    shutil.rmtree(setting.directory)
    shutil.rmtree(setting.cache)
    for name, value in {"CC": "cubic", "MAKEFLAGS": "-n", "O": "/nowhere", "ARCH": "arm", "V": "0"}.items():
        monkeypatch.setenv(name, value)
    assert {**setting.build(), "build_s": 0} == {**first, "build_s": 0}


def test_checkouts__share_finished_kernels_and_do_not_undo_each_other(setting: Setting) -> None:
    kernel = setting.build()
    first, setting.directory = setting.directory, setting.directory.parent / "second"
    assert setting.build() == kernel
    assert setting.phases() == []
    assert (setting.directory / "linux").read_bytes() == (first / "linux").read_bytes()
    assert (setting.directory / "linux").stat().st_ino != (first / "linux").stat().st_ino
    (setting.patches / "a.patch").write_text(PATCH)
    assert setting.build()["patches_digest"] != kernel["patches_digest"]
    (setting.patches / "a.patch").unlink()
    setting.directory = first
    assert setting.build() == kernel
    assert setting.phases() == []


def test_cache__keeps_no_more_trees_and_kernels_than_it_says(setting: Setting) -> None:
    for count in range(cache.KERNELS + 2):
        (setting.patches / "a.patch").write_text(PATCH.replace("other", f"other_{count}"))
        setting.build()
    assert len(setting.built("tree")) == cache.TREES
    assert len(list(setting.cache.glob("kernels/*"))) == cache.KERNELS
    assert (setting.directory / "linux").read_bytes().startswith(f"int other_{count};\n".encode())


def test_cache__is_below_the_users_home_of_the_password_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/nowhere")
    home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.of_user() == home / ".cache/bufferscope/kernel"
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert cache.of_user() == Path("/elsewhere/bufferscope/kernel")


def as_package(setting: Setting) -> None:
    """The source as a package that the user has fetched."""
    top = setting.directory.parent / "package"
    for name in ("DEBIAN", "usr/src"):
        (top / name).mkdir(parents=True)
    fields = "Package: linux-source-9.9\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\nDescription: x\n"
    (top / "DEBIAN/control").write_text(fields)
    with tarfile.open(top / "usr/src/linux-source-9.9.tar.xz", "w:xz") as archive:
        archive.add(setting.tree, "linux-source-9.9")
    (setting.cache / "packages").mkdir(parents=True)
    file = setting.cache / "packages/linux-source-9.9_1_all.deb"
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", top, file], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb missing (not Debian?)")
def test_machines_cache__spares_a_second_user_source_and_compiler(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = setting.directory.parent
    machine, second = top / "machine", top / "second"
    as_package(setting)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(cache, "OF_MACHINE", machine)
    monkeypatch.setattr(cache, "of_user", lambda: setting.cache)

    def ensure() -> dict[str, Any]:
        return build.ensure(setting.directory, {"KERNEL_PACKAGE": "linux-source-9.9"}, BuildProgress(io.StringIO()))

    (machine / "kernels").mkdir(parents=True)
    kernel = ensure()
    (setting.tree / "main.c").unlink()
    setting.cache = top / "of another user"
    utime = os.utime

    def of_read_only_cache(path: Path, *times: Any, **how: Any) -> None:
        if Path(path).is_relative_to(machine):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        utime(path, *times, **how)

    monkeypatch.setattr(os, "utime", of_read_only_cache)
    mine, others = os.getegid(), [group for group in (54321,) if os.geteuid() == 0]  # only root gives files to a group
    cases = [(0o755, mine, True), (0o2775, mine, True), (0o777, mine, False)]
    for number, (mode, group, is_taken) in enumerate([*cases, *((0o2775, group, False) for group in others)]):
        os.chown(machine, -1, group)
        machine.chmod(mode)
        setting.directory = second / str(number)
        if is_taken:
            assert ensure() == ensure() == kernel
        else:
            with pytest.raises(KernelError, match=r"linux-source-9\.9"):
                ensure()


def test_lock__is_open_for_writing_without_which_nfs_locks_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        with build.locked(tmp_path / "lock", BuildProgress(io.StringIO())) as lock:
            assert fcntl.fcntl(lock, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR


def test_finished_kernel__can_be_given_if_it_has_our_code(setting: Setting) -> None:
    kernel = setting.build()
    (setting.patches / "a.patch").write_text(PATCH)
    setting.build()
    first, setting.directory = setting.directory, setting.directory.parent / "second"
    with pytest.raises(KernelError, match="no finished kernel"):
        setting.ensure(KERNEL=str(setting.tree))
    with pytest.raises(KernelError, match="not the file linux"):
        setting.ensure(KERNEL=str(first / "kernel.json"))
    other = setting.ensure(KERNEL=str(first / "linux"))
    assert setting.ensure() == other != kernel
    (setting.patches / "a.patch").unlink()
    for _ in range(2):
        with pytest.raises(KernelError, match="other patches than"):
            setting.ensure(KERNEL=str(first))
    (setting.patches / "a.patch").write_text(PATCH)
    (first / "linux").write_bytes(b"half")
    with pytest.raises(KernelError, match="not whole"):
        setting.ensure(KERNEL=str(first))
    assert setting.ensure() == other, "the copy is whole"


def test_source__chosen_and_interrupted_is_still_the_chosen_one(setting: Setting) -> None:
    setting.build()
    other = setting.directory.parent / "other"
    shutil.copytree(setting.tree, other)
    (other / "main.c").write_text("int other;\n")
    (other / "slow").write_text("")
    with setting.process(other) as process:
        wait_until(lambda: any(b"half" in path.read_bytes() for path in setting.built("obj/linux")))
        process.send_signal(signal.SIGTERM)
    (other / "slow").unlink()
    setting.ensure()
    assert (setting.directory / "linux").read_bytes().startswith(b"int other;\n")


def test_source__that_cannot_be_used_changes_nothing(setting: Setting) -> None:
    kernel = setting.build()

    def files() -> list[str]:
        paths = [*setting.directory.rglob("*"), *setting.cache.rglob("*")]
        return sorted(str(path) for path in paths if path.name != "digests.json" and path.suffix != ".lock")

    before, top = files(), setting.directory.parent
    (top / "no.tar").write_text("not a tar archive\n")
    with tarfile.open(top / "main.tar", "w") as archive:
        archive.add(setting.tree / "main.c", "top/main.c")
    with tarfile.open(top / "cut.tar", "w") as archive:
        archive.add(setting.tree, "top")
    (top / "cut.tar").write_bytes((top / "cut.tar").read_bytes()[:2000])
    shutil.copytree(setting.tree, top / "tree.tar")
    (top / "tree.tar/drivers/net/Makefile").unlink()
    for name in ("no.tar", "main.tar", "cut.tar", "tree.tar", "gone.tar"):
        with pytest.raises(KernelError, match=name):
            setting.ensure(KERNEL_SOURCE=str(top / name))
        assert files() == before, name
    assert setting.ensure() == kernel
    assert setting.phases() == []


def test_command__takes_its_words_alone_and_nothing_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    choices: list[object] = []

    def ensure(directory: Path, words: object, progress: object) -> dict[str, Any]:
        choices.append(words)
        return {"version": "1", "source": {"name": "x"}}

    monkeypatch.setattr(command, "ensure", ensure)
    monkeypatch.setenv("KERNEL_SOURCE", "/nowhere")
    monkeypatch.setenv("KERNEL_PACKAGE", "linux-source-9")
    monkeypatch.setenv("MAKEFLAGS", "s -- CC=reno KERNEL_PACKAGE=linux-source-6.1")
    assert main(["kernel"]) == main(["kernel", "--make"]) == main(["kernel", "kernel_source=/x"]) == 0
    assert main(["kernel", "KERNEL=/x"]) == 0
    assert choices == [{}, {"KERNEL_PACKAGE": "linux-source-6.1"}, {"KERNEL_SOURCE": "/x"}, {"KERNEL": "/x"}]
    monkeypatch.setenv("MAKEFLAGS", "s -- KERNEL_SOURCE= CC=reno")
    assert main(["kernel", "--make"]) == 1
    for words in (["FLOWS=1"], ["KERNEL_SOURCE=/x", "KERNEL_PACKAGE=y"], ["KERNEL_SRC=/x"]):
        assert main(["kernel", *words]) == 1
    assert len(choices) == 4


def test_damage__is_not_taken_for_a_finished_kernel(setting: Setting) -> None:
    setting.build()
    whole = (setting.directory / "linux").read_bytes()
    (entry,) = setting.cache.glob("kernels/*")
    for name, content in (("linux", None), ("linux", whole[:5]), ("kernel.json", b'{"'), ("kernel.json", b"[]")):

        def damage(directory: Path, name: str = name, content: bytes | None = content) -> None:
            (directory / name).unlink()
            if content is not None:
                (directory / name).write_bytes(content)

        damage(setting.directory)
        setting.build()
        assert setting.phases() == [], "the cache has a whole kernel: nothing needs to be built"
        assert (setting.directory / "linux").read_bytes() == whole
        damage(entry)
        damage(setting.directory)
        setting.build()
        assert "compiling" in setting.phases()
        assert (setting.directory / "linux").read_bytes() == whole


def test_failure__names_its_cause_and_leaves_the_old_kernel(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as context:
        context.setattr("shutil.copy2", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(KernelError, match=r"building the kernel in .*No space left"):
            setting.build()
    assert not setting.built("tree")
    setting.build()
    before = (setting.directory / "linux").read_bytes()
    for rule, other, named in (
        (
            "\tcat $^ >$@",
            "\techo 'main.c:1: error: expected;'; false",
            r"status 2; .*kernel\.log:\n  .*error: expected",
        ),
        ("grep -v '^#'", "grep -v CONFIG_A", "CONFIG_A=y cannot be set"),
    ):
        (setting.tree / "Makefile").write_text(MAKEFILE.replace(rule, other))
        for _ in range(2):
            with pytest.raises(KernelError, match=named):
                setting.build()
        assert (setting.directory / "linux").read_bytes() == before


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_interrupted__half_a_kernel_is_never_used(setting: Setting, number: int) -> None:
    (setting.tree / "slow").write_text("")
    process = setting.process()
    wait_until(lambda: setting.built("obj/linux"))
    process.send_signal(number)
    process.communicate()
    assert process.returncode != 0
    assert not (setting.directory / "linux").exists()
    # make's children end, too; until then they hold the lock.
    (setting.tree / "slow").unlink()
    kernel = setting.build()
    assert kernel["version"] == "6.0.1-test"
    assert b"half" not in (setting.directory / "linux").read_bytes()


def test_two_at_once__the_second_waits_unless_its_kernel_is_finished_or_its_tree_another(setting: Setting) -> None:
    made = setting.build()
    (setting.patches / "a.patch").write_text(PATCH)
    (setting.tree / "slow").write_text("")
    setting.directory, first = setting.directory.parent / "second", setting.directory
    slow = setting.process()
    wait_until(lambda: any(b"half" in path.read_bytes() for path in setting.built("obj/linux")))
    waiting = setting.process()
    assert waiting.stdout is not None
    assert "waiting for another build" in waiting.stdout.readline()
    (setting.tree / "slow").unlink()
    (setting.patches / "a.patch").unlink()
    setting.directory = first
    assert setting.build() | {"build_s": 0, "source": 0} == made | {"build_s": 0, "source": 0}
    assert "waiting" not in setting.output.getvalue()
    assert (slow.poll(), waiting.poll()) == (None, None)
    slow.terminate()
    slow.communicate()
    assert "unpacking" not in waiting.stdout.readline()  # the second continues where the first stopped
    waiting.terminate()
    waiting.communicate()
