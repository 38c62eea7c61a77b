# SPDX-License-Identifier: MIT
"""Passes the soft switch's control messages between its Unix socket and the standard streams, for a runner on another
machine: `ssh switch python -m hosts.control_relay SOCKET`. No port is opened for it.

A message is its length in 4 bytes (big-endian), then its bytes. Each request has one reply. Standard library only
(Python 3.9 or later).
"""

from __future__ import annotations

import socket
import struct
import sys
from typing import BinaryIO

LENGTH = struct.Struct("!I")
MAX_MESSAGE_BYTES = 1 << 20
TIMEOUT_S = 5.0
EXIT_REFUSED = 1


def read_message(stream: BinaryIO) -> bytes | None:
    """None at the end of the stream. Raises ValueError for a message that is cut or too long."""
    head = stream.read(LENGTH.size)
    if not head:
        return None
    (length,) = LENGTH.unpack(head) if len(head) == LENGTH.size else (MAX_MESSAGE_BYTES + 1,)
    message = stream.read(length) if length <= MAX_MESSAGE_BYTES else b""
    if len(message) != length:
        raise ValueError(f"a message of {length} bytes is cut, or longer than {MAX_MESSAGE_BYTES}")
    return message


def write_message(stream: BinaryIO, message: bytes) -> None:
    stream.write(LENGTH.pack(len(message)) + message)
    stream.flush()


def relay(path: str, requests: BinaryIO, replies: BinaryIO) -> None:
    """Returns at the end of the requests. Raises OSError, ValueError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as switch:
        switch.settimeout(TIMEOUT_S)
        switch.connect(path)
        while (request := read_message(requests)) is not None:
            switch.send(request)
            write_message(replies, switch.recv(MAX_MESSAGE_BYTES))


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m hosts.control_relay SOCKET", file=sys.stderr)
        return 2
    try:
        relay(arguments[0], sys.stdin.buffer, sys.stdout.buffer)
    except (OSError, ValueError) as error:
        print(f"control_relay: {arguments[0]}: {error}", file=sys.stderr)
        return EXIT_REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
