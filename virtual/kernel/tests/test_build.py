# SPDX-License-Identifier: MIT
"""The whole build, with a small tree that make builds at once: which steps are repeated after which change, and the
state after interruptions at the worst moments.
"""

import io
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from bufferscope.__main__ import main
from virtual.kernel import build, cache, choice, command, compile, config, patches, stage
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


def until(condition: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.02)


def test_first_time__everything_is_done_and_recorded(setting: Setting) -> None:
    kernel = setting.build()
    assert setting.phases() == ["unpacking", "patching", "configuring", "compiling", "Linux"]
    assert json.loads((setting.directory / "kernel.json").read_text()) == kernel
    assert kernel["version"] == "6.0.1-test"
    assert kernel["source"]["kind"] == "tree"
    assert kernel["compiler"].startswith("gcc")
    assert (setting.directory / "linux").read_bytes().startswith(b"int main;\n")
    (makefile,) = setting.built("tree/drivers/net/Makefile")
    assert "obj-y += bufferscope/" in makefile.read_text()
    assert (setting.tree / "drivers/net/Makefile").read_text() == "", "the user's own tree must not change"


def test_second_time__nothing_is_done(setting: Setting) -> None:
    kernel = setting.build()
    before = (setting.directory / "linux").stat().st_mtime_ns
    assert setting.build() == kernel
    assert setting.phases() == []
    assert (setting.directory / "linux").stat().st_mtime_ns == before


def test_record__of_equal_builds_differs_only_in_the_build_time(setting: Setting) -> None:
    first = setting.build()
    shutil.rmtree(setting.directory)
    shutil.rmtree(setting.cache)
    second = setting.build()
    assert {**first, "build_s": 0} == {**second, "build_s": 0}


def test_second_checkout__takes_the_finished_kernel_of_the_cache(setting: Setting) -> None:
    kernel = setting.build()
    first, setting.directory = setting.directory, setting.directory.parent / "second"
    assert setting.build() == kernel
    assert setting.phases() == []
    assert (setting.directory / "linux").read_bytes() == (first / "linux").read_bytes()
    assert (setting.directory / "linux").stat().st_ino != (first / "linux").stat().st_ino


def test_two_checkouts__that_differ_in_patches_do_not_undo_each_other(setting: Setting) -> None:
    first, second = setting.directory, setting.directory.parent / "second"
    kernel = setting.build()
    (setting.patches / "a.patch").write_text(PATCH)
    setting.directory = second
    other = setting.build()
    assert len(setting.built("tree")) == 2
    (setting.patches / "a.patch").unlink()
    setting.directory = first
    assert setting.build() == kernel
    assert setting.phases() == []
    assert other["patches_digest"] != kernel["patches_digest"]


def test_cache__keeps_no_more_trees_and_kernels_than_it_says(setting: Setting) -> None:
    for count in range(cache.KERNELS + 2):
        (setting.patches / "a.patch").write_text(PATCH.replace("other", f"other_{count}"))
        setting.build()
    assert len(setting.built("tree")) == cache.TREES
    assert len(list(setting.cache.glob("kernels/*"))) == cache.KERNELS
    assert (setting.directory / "linux").read_bytes().startswith(f"int other_{count};\n".encode())


def test_cache__is_below_the_users_home_of_the_password_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    assert cache.of_user() == home / ".cache/bufferscope/kernel"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.of_user() == home / ".cache/bufferscope/kernel"
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert cache.of_user() == Path("/elsewhere/bufferscope/kernel")


def test_our_code__changed_needs_only_a_compilation(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    setting.build()
    our_code = stage.collect()
    changed = {**our_code, "softswitch/driver/main.c": b"int changed;\n"}
    monkeypatch.setattr(stage, "collect", lambda users: changed)
    setting.build()
    assert setting.phases() == ["compiling", "Linux"]
    assert (setting.directory / "linux").read_bytes() == b"int main;\nint changed;\n"


def test_fragment__changed_is_configured_again(setting: Setting) -> None:
    setting.build()
    setting.fragment.write_text("CONFIG_A=y\nCONFIG_B=y\n")
    setting.build()
    assert setting.phases() == ["configuring", "compiling", "Linux"]


def test_patch__changed_starts_from_the_source(setting: Setting) -> None:
    setting.build()
    (setting.patches / "a.patch").write_text(PATCH)
    kernel = setting.build()
    assert kernel["patches"] == ["a.patch"]
    assert setting.phases() == ["unpacking", "patching", "configuring", "compiling", "Linux"]
    assert (setting.directory / "linux").read_bytes().startswith(b"int other;\n")


def test_source__changed_replaces_the_old_one(setting: Setting) -> None:
    setting.build()
    (setting.tree / "main.c").write_text("int newer;\n")
    (setting.tree / "net/gone.c").write_text("x\n")
    setting.build()
    (setting.tree / "net/gone.c").unlink()
    setting.build()
    assert (setting.directory / "linux").read_bytes().startswith(b"int newer;\n")
    assert len(setting.built("tree")) == cache.TREES
    (setting.tree / "main.c").write_text("int newest;\n")
    setting.build()
    assert not setting.built("tree/net/gone.c")


def packaged(directory: Path, tree: Path, version: str, main: str) -> None:
    """Puts a package linux-source-<version> into packages/, as if fetched."""
    content, root = directory.parent / f"content-{version}", directory.parent / f"root-{version}"
    shutil.copytree(tree, content)
    (content / "main.c").write_text(main)
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN/control").write_text(
        f"Package: linux-source-{version}\nVersion: {version}.1-1\nArchitecture: all\n"
        "Maintainer: nobody <nobody@localhost>\nDescription: test\n"
    )
    (root / "usr/src").mkdir(parents=True)
    with tarfile.open(root / f"usr/src/linux-source-{version}.tar.xz", "w:xz") as archive:
        archive.add(content, f"linux-source-{version}")
    (directory / "packages").mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["dpkg-deb", "--build", root, directory / f"packages/linux-source-{version}_{version}.1-1_all.deb"],
        check=True, capture_output=True,
    )  # fmt: skip


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb missing (not Debian?)")
def test_package__another_one_is_built_and_stays_chosen(setting: Setting) -> None:
    for version in ("6.12", "6.1"):
        packaged(setting.cache, setting.tree, version, f"int from_{version.replace('.', '_')};\n")

    def names(**chosen: str) -> tuple[str, bytes]:
        kernel = setting.ensure(**chosen)
        return kernel["source"]["name"], (setting.directory / "linux").read_bytes().splitlines()[0]

    assert names() == ("linux-source-6.12", b"int from_6_12;")
    assert names(KERNEL_PACKAGE="linux-source-6.1") == ("linux-source-6.1", b"int from_6_1;")
    assert names() == ("linux-source-6.1", b"int from_6_1;")
    assert names(KERNEL_PACKAGE="linux-source-6.12") == ("linux-source-6.12", b"int from_6_12;")


def test_source__chosen_and_interrupted_is_still_the_chosen_one(setting: Setting) -> None:
    setting.build()
    other = setting.directory.parent / "other"
    shutil.copytree(setting.tree, other)
    (other / "main.c").write_text("int other;\n")
    (other / "slow").write_text("")
    with setting.process(other) as process:
        until(lambda: any(b"half" in path.read_bytes() for path in setting.built("obj/linux")))
        process.send_signal(signal.SIGTERM)
    (other / "slow").unlink()
    setting.ensure()
    assert (setting.directory / "linux").read_bytes().startswith(b"int other;\n")


@pytest.mark.parametrize("kind", ["no archive", "no kernel", "damaged", "a tree that is gone", "no kernel tree"])
def test_source__that_cannot_be_used_changes_nothing(setting: Setting, kind: str) -> None:
    kernel = setting.build()

    def files() -> list[str]:
        paths = [*setting.directory.rglob("*"), *setting.cache.rglob("*")]
        return sorted(str(path) for path in paths if path.name != "digests.json" and path.suffix != ".lock")

    before = files()
    bad = setting.directory.parent / "bad.tar"
    if kind == "no archive":
        bad.write_text("not a tar archive\n")
    elif kind == "no kernel":
        with tarfile.open(bad, "w") as archive:
            archive.add(setting.tree / "main.c", "top/main.c")
    elif kind == "damaged":
        with tarfile.open(bad, "w") as archive:
            archive.add(setting.tree, "top")
        bad.write_bytes(bad.read_bytes()[:2000])
    elif kind == "no kernel tree":
        shutil.copytree(setting.tree, bad)
        (bad / "drivers/net/Makefile").unlink()
    with pytest.raises(KernelError, match=r"bad\.tar"):
        setting.ensure(KERNEL_SOURCE=str(bad))
    assert files() == before
    assert setting.ensure() == kernel
    assert setting.phases() == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"kernel_package": "a", "kernel_source": "/b"}, "KERNEL_PACKAGE=a and KERNEL_SOURCE=/b: give one of them"),
        ({"kernel_src": "/x"}, "KERNEL_SRC is not a parameter of make kernel; allowed: KERNEL_PACKAGE, KERNEL_SOURCE"),
    ],
)
def test_words__that_choose_no_source_are_errors(words: dict[str, str], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        choice.read(words)


def test_words__of_other_goals_are_ignored(tmp_path: Path) -> None:
    assert choice.read({"cc": "reno", "kernel_source": "x"}) == {"KERNEL_SOURCE": str(Path.cwd() / "x")}


def test_command__takes_nothing_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    choices: list[object] = []

    def ensure(directory: Path, words: object, progress: object) -> dict[str, Any]:
        choices.append(words)
        return {"version": "1", "source": {"name": "x"}}

    monkeypatch.setattr(command, "ensure", ensure)
    monkeypatch.setenv("KERNEL_SOURCE", "/nowhere")
    monkeypatch.setenv("KERNEL_PACKAGE", "linux-source-9")
    monkeypatch.setenv("MAKEFLAGS", "s -- KERNEL_PACKAGE=linux-source-6.1")
    assert main(["kernel"]) == main(["kernel", "--make"]) == main(["kernel", "kernel_source=/x"]) == 0
    assert choices == [{}, {"KERNEL_PACKAGE": "linux-source-6.1"}, {"KERNEL_SOURCE": "/x"}]
    monkeypatch.setenv("MAKEFLAGS", "s -- KERNEL_SOURCE= CC=reno")
    assert main(["kernel", "--make"]) == 1
    assert main(["kernel", "FLOWS=1"]) == main(["kernel", "KERNEL_SOURCE=/x", "KERNEL_PACKAGE=y"]) == 1


def damage(directory: Path, kind: str) -> None:
    """Damages a finished kernel in a checkout or in the cache."""
    linux, record = directory / "linux", directory / "kernel.json"
    if kind == "linux gone":
        linux.unlink()
    elif kind == "linux cut":
        linux.write_bytes(linux.read_bytes()[:5])
    elif kind == "json cut":
        record.write_text(record.read_text()[:50])
    else:
        record.write_text("[]")


@pytest.mark.parametrize("kind", ["linux gone", "linux cut", "json cut", "json of another"])
def test_damage__is_not_taken_for_a_finished_kernel(setting: Setting, kind: str) -> None:
    setting.build()
    whole = (setting.directory / "linux").read_bytes()
    damage(setting.directory, kind)
    setting.build()
    assert setting.phases() == [], "the cache has a whole kernel: nothing needs to be built"
    assert (setting.directory / "linux").read_bytes() == whole
    (entry,) = setting.cache.glob("kernels/*")
    for directory in (entry, setting.directory):
        damage(directory, kind)
    setting.build()
    assert "compiling" in setting.phases()
    assert (setting.directory / "linux").read_bytes() == whole


def test_unpacking__cut_short_leaves_no_tree(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as context:
        context.setattr("shutil.copy2", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(KernelError, match=r"building the kernel in .*No space left"):
            setting.build()
    assert not setting.built("tree")
    assert setting.build()["version"] == "6.0.1-test"


def test_make__that_fails_says_the_error_and_leaves_the_old_kernel(setting: Setting) -> None:
    setting.build()
    before = (setting.directory / "linux").read_bytes()
    makefile = MAKEFILE.replace("\tcat $^ >$@", "\techo 'main.c:1: error: expected;'; false")
    (setting.tree / "Makefile").write_text(makefile)
    with pytest.raises(
        KernelError, match=r"make of the kernel failed with status 2; .*kernel\.log:\n  .*error: expected"
    ):
        setting.build()
    assert (setting.directory / "linux").read_bytes() == before


def test_config__that_lacks_something_is_not_built(setting: Setting) -> None:
    makefile = MAKEFILE.replace("grep -v '^#'", "grep -v CONFIG_A")
    (setting.tree / "Makefile").write_text(makefile)
    with pytest.raises(KernelError, match="CONFIG_A=y cannot be set"):
        setting.build()
    with pytest.raises(KernelError, match="CONFIG_A=y cannot be set"):
        setting.build()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_interrupted__half_a_kernel_is_never_used(setting: Setting, number: int) -> None:
    (setting.tree / "slow").write_text("")
    process = setting.process()
    until(lambda: setting.built("obj/linux"))
    process.send_signal(number)
    process.communicate()
    assert process.returncode != 0
    assert not (setting.directory / "linux").exists()
    # make's children end, too; until then they hold the lock.
    (setting.tree / "slow").unlink()
    kernel = setting.build()
    assert kernel["version"] == "6.0.1-test"
    assert b"half" not in (setting.directory / "linux").read_bytes()


def test_mark__of_a_killed_make_discards_the_objects(tmp_path: Path) -> None:
    objects = tmp_path / "obj"
    objects.mkdir()
    (objects / "half.o").write_text("half")
    compile.fresh_objects(objects)
    assert (objects / "half.o").exists()
    (objects / compile.MARK).touch()
    compile.fresh_objects(objects)
    assert list(objects.iterdir()) == []


def test_two_at_once__the_second_waits(setting: Setting) -> None:
    (setting.tree / "slow").write_text("")
    first = setting.process()
    until(lambda: setting.built("obj/linux"))
    second = setting.process()
    assert second.stdout is not None
    assert "waiting for another build" in second.stdout.readline()
    assert second.poll() is None
    first.terminate()
    first.communicate()
    # The second build continues where the first stopped, and is slow, too.
    assert "unpacking" not in second.stdout.readline()
    second.terminate()
    second.communicate()


def test_slow_build__keeps_no_other_checkout_from_a_finished_kernel_or_another_tree(setting: Setting) -> None:
    made = setting.build()
    first, setting.directory = setting.directory, setting.directory.parent / "second"
    (setting.patches / "a.patch").write_text(PATCH)
    (setting.tree / "slow").write_text("")
    slow = setting.process()
    until(lambda: any(b"half" in path.read_bytes() for path in setting.built("obj/linux")))
    (setting.tree / "slow").unlink()
    (setting.patches / "a.patch").unlink()
    setting.directory = first
    assert setting.build() | {"build_s": 0, "source": 0} == made | {"build_s": 0, "source": 0}
    assert "waiting" not in setting.output.getvalue()
    assert slow.poll() is None
    slow.terminate()
    slow.communicate()


def test_environment__of_the_caller_does_not_reach_make(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"CC": "cubic", "MAKEFLAGS": "-n", "O": "/nowhere", "ARCH": "arm", "V": "0"}.items():
        monkeypatch.setenv(name, value)
    assert setting.build()["version"] == "6.0.1-test"


def test_progress__in_a_pipe_is_one_line_per_phase() -> None:
    stream = io.StringIO()
    with BuildProgress(stream) as progress:
        progress.phase("compiling")
        for count in range(1000):
            progress.advance(str(count))
    assert stream.getvalue() == "kernel: compiling\n"
