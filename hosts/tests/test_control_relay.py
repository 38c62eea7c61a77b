# SPDX-License-Identifier: MIT
"""Messages pass whole, in both directions; anything else ends the relay. With --tcp the relay copies bytes."""

import io
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hosts import control_relay as relay


@pytest.fixture
def switch(tmp_path: Path) -> Path:
    """A socket that answers each message of one connection with two copies of the message, sent as one message."""
    path = tmp_path / "switch.sock"
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(str(path))
    listening.listen()

    def answer() -> None:
        connection, _ = listening.accept()
        with listening, connection:
            while message := connection.recv(relay.MAX_MESSAGE_BYTES):
                connection.send(2 * message)

    threading.Thread(target=answer, daemon=True).start()
    return path


def test_relay__passes_requests_and_replies(switch: Path) -> None:
    requests, replies = io.BytesIO(), io.BytesIO()
    for message in (b"program", b"x" * 70_000):
        relay.write_message(requests, message)
    requests.seek(0)
    relay.relay(str(switch), requests, replies)
    replies.seek(0)
    assert relay.read_message(replies) == b"programprogram"
    assert relay.read_message(replies) == b"x" * 140_000
    assert relay.read_message(replies) is None


def test_relay__refuses_anything_but_messages_and_reports_a_missing_switch(tmp_path: Path) -> None:
    for stream in (b"\0\0", b"\0\0\0\5abc", b"\xff\xff\xff\xff"):
        with pytest.raises(ValueError, match="is cut, or longer than"):
            relay.read_message(io.BytesIO(stream))
    words = [sys.executable, "-m", "hosts.control_relay", str(tmp_path / "none.sock")]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == relay.EXIT_REFUSED
    assert done.stderr.startswith(f"control_relay: {tmp_path}/none.sock: ")
    assert done.stderr.count("\n") == 1


def test_stream__passes_the_bytes_of_a_connection_until_it_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        words = [sys.executable, "-m", "hosts.control_relay", "--tcp", str(listening.getsockname()[1])]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            switch, _ = listening.accept()
            assert process.stdin
            assert process.stdout
            process.stdin.write(b"x" * 300_000)
            process.stdin.flush()
            with switch, switch.makefile("rb") as requests:
                assert requests.read(300_000) == b"x" * 300_000
                switch.sendall(b"reply")
            assert process.stdout.read() == relay.CONNECTED + b"reply"
            assert process.wait(timeout=10) == 0
    assert [relay.main(words) for words in ([], ["--help"], ["--tcp", "0"], ["--tcp", "x"], ["a", "b"])] == [2] * 5
