# SPDX-License-Identifier: MIT
"""Passes a switch's control messages between its socket and the standard streams, for a runner on another machine. The
relay opens no port.

`ssh switch python -m hosts.control_relay SOCKET` is for the soft switch's Unix socket. On the standard streams a length
prefix of 4 bytes (big-endian) precedes each message. Each request has one reply. `... --tcp PORT` connects to PORT of
127.0.0.1, prints CONNECTED, and then copies the byte stream in both directions. Standard library only (Python 3.9 or
later).
"""

from __future__ import annotations

import os
import select
import socket
import struct
import sys
from typing import BinaryIO

LENGTH = struct.Struct("!I")
MAX_MESSAGE_BYTES = 1 << 20
BLOCK_BYTES = 1 << 16
CONNECTED = b"connected\n"
TIMEOUT_S = 5.0
EXIT_REFUSED = 1


def read_message(stream: BinaryIO) -> bytes | None:
    """The next message; None at the end of the stream. Raises ValueError for a message that is cut or too long."""
    head = stream.read(LENGTH.size)
    if not head:
        return None
    (length,) = LENGTH.unpack(head) if len(head) == LENGTH.size else (MAX_MESSAGE_BYTES + 1,)
    message = stream.read(length) if length <= MAX_MESSAGE_BYTES else b""
    if len(message) != length:
        raise ValueError(f"a message is cut, or longer than {MAX_MESSAGE_BYTES} bytes")
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


def stream(port: int, requests: int, replies: int) -> None:
    """Copies bytes between two file descriptors and a connection, until either side ends. Raises OSError."""
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as switch:
        switch.settimeout(None)
        _write_all(replies, CONNECTED)
        to = {requests: switch.fileno(), switch.fileno(): replies}
        while True:
            for ready in select.select(list(to), [], [])[0]:
                if not (came := os.read(ready, BLOCK_BYTES)):
                    return
                _write_all(to[ready], came)


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def main(arguments: list[str]) -> int:
    port = arguments[1] if len(arguments) == 2 and arguments[0] == "--tcp" else ""
    if (len(arguments) != 1 or arguments[0].startswith("-")) and not (port.isdigit() and 0 < int(port) < 1 << 16):
        print("usage: python -m hosts.control_relay SOCKET, or --tcp PORT", file=sys.stderr)
        return 2
    try:
        if port:
            stream(int(port), sys.stdin.fileno(), sys.stdout.fileno())
        else:
            relay(arguments[0], sys.stdin.buffer, sys.stdout.buffer)
    except (OSError, ValueError) as error:
        print(f"control_relay: {arguments[-1]}: {error}", file=sys.stderr)
        return EXIT_REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
