# SPDX-License-Identifier: MIT
"""Translated programs behind a pipe: built once a session, with sanitizers."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from softswitch.translate.__main__ import main as translate

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
RUNTIME = ROOT / "softswitch" / "runtime"
PROGRAMS = HERE / "programs"
FLAGS = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I", str(RUNTIME)]
# The flags of softswitch/Makefile for translated programs: few warnings, so that no style of P4 breaks the build.
C_FLAGS = ROOT / "softswitch/translate/c_flags"
GENERATED = ["-std=gnu11", *C_FLAGS.read_text().split(), "-I", str(RUNTIME)]
SANITIZE = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]


def compiled(name: str) -> tuple[Path, str]:
    """JSON and digest of a test program, or of bufferscope's own P4 program."""
    directory = ROOT / "p4src" / "build" if name == "bufferscope" else PROGRAMS / "build"
    return directory / f"{name}.json", (directory / f"{name}.sha256").read_text().split()[0]


def cc(*arguments: str | Path, compiler: str = "gcc") -> None:
    result = subprocess.run([compiler, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def write_pipeline(name: str, directory: Path) -> Path:
    json, digest = compiled(name)
    path = directory / f"{name}.c"
    assert translate([str(json), "--digest", digest, "-o", str(path)]) == 0
    return path


class Switch:
    """One running program. Replies of the control plane are lists of lines, the first of them `ok` or `error ...`."""

    def __init__(self, binary: Path) -> None:
        self._process = subprocess.Popen(
            [str(binary)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def command(self, line: str) -> list[str]:
        assert self._process.stdin
        assert self._process.stdout
        assert self._process.stderr
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer: list[str] = []
        while (text := self._process.stdout.readline()) != ".\n":
            if not text:
                pytest.fail(f"the switch died of {line[:200]!r}: {self._process.stderr.read()}")
            answer.append(text.rstrip("\n"))
        return answer

    def ask(self, request: str) -> list[str]:
        return self.command("request " + request)

    def do(self, request: str) -> list[str]:
        """A request that must succeed: its lines without `ok`."""
        answer = self.ask(request)
        assert answer[0] == "ok", f"{request}: {answer}"
        return answer[1:]

    def refused(self, request: str) -> str:
        answer = self.ask(request)
        assert len(answer) == 1, f"{request}: {answer}"
        assert answer[0].startswith("error "), f"{request}: {answer}"
        return answer[0]

    def send(self, frame: bytes, port: int = 1) -> list[tuple[str, str, bytes]]:
        """(kind, port, frame) of each frame that leaves; ("dropped", pipeline, b"") of each drop."""
        result = []
        for line in self.command(f"frame {port} {frame.hex()}"):
            kind, where, *rest = line.split(" ")
            result.append((kind, where, bytes.fromhex(rest[0]) if rest and rest[0] not in ("-", "") else b""))
        return result

    def send_one(self, frame: bytes, port: int = 1) -> bytes:
        out = self.send(frame, port)
        assert [kind for kind, _, _ in out] == ["normal"], out
        return out[0][2]

    def close(self) -> None:
        assert self._process.stdin
        assert self._process.stderr
        self._process.stdin.close()
        errors = self._process.stderr.read()
        assert self._process.wait(timeout=60) == 0, errors


@pytest.fixture(scope="session")
def runtime_objects(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    directory = tmp_path_factory.mktemp("runtime")
    objects = []
    for source in [*sorted(RUNTIME.glob("p4_*.c")), RUNTIME / "text.c", HERE / "harness.c"]:
        objects.append(directory / (source.stem + ".o"))
        cc(*FLAGS, *SANITIZE, "-c", source, "-o", objects[-1])
    return objects


@pytest.fixture(scope="session")
def binary(runtime_objects: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Builds a program at its first use."""
    directory = tmp_path_factory.mktemp("programs")
    built: dict[str, Path] = {}

    def build(name: str) -> Path:
        if name not in built:
            source = write_pipeline(name, directory)
            cc(*GENERATED, *SANITIZE, source, *runtime_objects, "-o", directory / name)
            built[name] = directory / name
        return built[name]

    return build


@pytest.fixture
def switch(request: pytest.FixtureRequest, binary: Callable[[str], Path]) -> Iterator[Switch]:
    """The program that the test module names in PROGRAM, freshly started."""
    running = Switch(binary(request.module.PROGRAM))
    yield running
    running.close()
