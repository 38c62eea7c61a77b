# SPDX-License-Identifier: MIT
"""Translated programs in the switch's core."""

from pathlib import Path

import pytest

from softswitch.library import ROOT, Core

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"


def compiled(name: str) -> tuple[Path, str]:
    """JSON and digest of a test program, or of bufferscope's own P4 program."""
    directory = ROOT / "p4src" / "build" if name == "bufferscope" else PROGRAMS / "build"
    return directory / f"{name}.json", (directory / f"{name}.sha256").read_text().split()[0]


class Switch(Core):
    """A core with a translated program. Replies of the control plane are lists of lines, the first of them `ok` or
    `error ...`.
    """

    def __init__(self, program: Path) -> None:
        super().__init__(str(program), ports=(1, 2, 3, 7, 8), packets=64, frame_bytes=9216)
        self._now_ns = 0

    def do(self, request: str) -> list[str]:
        """A request that must succeed: its lines without `ok`."""
        answer = self.control(request)
        assert answer[0] == "ok", f"{request}: {answer}"
        return answer[1:]

    def refused(self, request: str) -> str:
        answer = self.control(request)
        assert len(answer) == 1, f"{request}: {answer}"
        assert answer[0].startswith("error "), f"{request}: {answer}"
        return answer[0]

    def send(self, frame: bytes, port: int = 1) -> list[tuple[int, bytes]]:
        """(port, frame) of each frame that leaves, by port."""
        self._now_ns += 1
        assert self.receive(self._now_ns, port, frame) == 0
        return sorted((output.port, output.frame) for output in self.run())

    def send_one(self, frame: bytes, port: int = 1) -> bytes:
        ((_, out),) = self.send(frame, port)
        return out


@pytest.fixture
def switch(request: pytest.FixtureRequest) -> Switch:
    """The program that the test module names in PROGRAM, or writes, in a new core."""
    module = request.module
    return Switch(module.write() if hasattr(module, "write") else compiled(module.PROGRAM)[0])
