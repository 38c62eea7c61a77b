# SPDX-License-Identifier: MIT
"""What was set of BMv2's queues, noted on this machine: BMv2 takes rates and depths but tells neither.

A note holds for one life of one simple_switch, known by the time it was started; without a note its own defaults are
in force. Who sets a queue by other means (simple_switch_CLI) is not seen.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import NamedTuple

from controlplane.lock import lock_file
from controlplane.switch import Queue, SwitchError

DEFAULT_LIMIT_PACKETS = 64  # of a simple_switch that nobody told otherwise
UNBOUNDED_PACKETS = 2**31 - 1  # the most that Thrift's i32 can say
MAX_NOTE_BYTES = 1 << 16


class Life(NamedTuple):
    """When the switch was started, as far as asking can tell: between two times in us since 1970."""

    earliest_us: int
    latest_us: int

    def may_be(self, other: Life) -> bool:
        return self.earliest_us <= other.latest_us and other.earliest_us <= self.latest_us


class Notes:
    """The queues that were set in this life of the switch. `key` is its address, and whatever makes that one unique."""

    def __init__(self, key: str, life: Life) -> None:
        self._life = life
        self._path = lock_file("bmv2", key).with_suffix(".queues")

    def read(self) -> dict[int, Queue]:
        try:
            if self._path.lstat().st_uid not in (os.getuid(), 0):
                return {}  # anybody may write to this directory
            noted = json.loads(self._path.read_bytes()[:MAX_NOTE_BYTES])
            if not Life(*noted["life"]).may_be(self._life):
                return {}
            return {int(port): Queue(**settings) for port, settings in noted["queues"].items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def write(self, port: int, queue: Queue | None) -> None:
        """Notes what was set, None: that it is not known. Whole or not at all; SwitchError if it cannot be written."""
        queues = {number: one for number, one in self.read().items() if number != port}
        if queue is not None:
            queues[port] = queue
        note = {"life": self._life, "queues": {str(number): asdict(one) for number, one in queues.items()}}
        draft = self._path.with_suffix(f".{os.getpid()}")
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            with os.fdopen(descriptor, "w") as file:
                json.dump(note, file)
            draft.replace(self._path)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise SwitchError(f"cannot note the queue of port {port} in {self._path}: {error.strerror}") from error
