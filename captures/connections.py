# SPDX-License-Identifier: MIT
"""The connections of packets: starts connection_table, which reads them beside this process."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import IO

import numpy as np

from captures.reader import program
from lib import files
from lib.errors import InputError
from lib.terminal import one_line
from wire.wire import CAPTURED_PACKET, CONNECTION

LAYOUT = CAPTURED_PACKET.dtype()
ROW = CONNECTION.dtype()


class ConnectionTable:
    """`add` packets in the order of time, then `end`; then `rows` has the connections in the order of their ends. A
    context manager: without `end`, leaving it ends the program. Raises InputError if it is missing or failed.
    """

    def __init__(self, directory: Path, rate_bps: int, mtu_bytes: int) -> None:
        self._file: IO[bytes] = os.fdopen(files.without_name(directory), "w+b")  # vanishes with this object
        command = [str(program().with_name("connection_table")), "--rate", str(rate_bps), "--mtu", str(mtu_bytes)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=self._file, stderr=pipe)

    def __enter__(self) -> ConnectionTable:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()

    def add(self, columns: dict[str, np.ndarray], way: np.ndarray) -> None:
        """Packets by columns of wire/captured_packet.def. `way`: 0 forward on the link, 1 back, 2 neither."""
        records = np.zeros(len(way), dtype=LAYOUT)
        for name in LAYOUT.names or ():
            if name in columns:
                records[name] = columns[name]
        records["real_ns"] = columns["time_ns"].view(np.uint64)
        records["packet_type"] = way
        assert self._process.stdin
        try:
            self._process.stdin.write(records.data)
        except BrokenPipeError:
            self.end()

    def end(self) -> None:
        _, said = self._process.communicate()
        if self._process.returncode:
            raise InputError(f"connection_table failed: {one_line(Exception(said.decode()))}")

    def rows(self, numbers: np.ndarray) -> np.ndarray:
        return np.asarray(self._map()[numbers])

    def column(self, name: str) -> np.ndarray:
        return np.array(self._map()[name])

    def _map(self) -> np.ndarray:
        """All rows, by the kernel's cache of the file."""
        empty = not self._file.seek(0, 2)
        return np.empty(0, dtype=ROW) if empty else np.memmap(self._file, dtype=ROW, mode="r")
