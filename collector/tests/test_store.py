# SPDX-License-Identifier: MIT
"""Postcards are stored as sent, byte for byte, with the kernel's stamp and in whole blocks."""

from __future__ import annotations

import json
import os
import pty
import random
import signal
import socket
import subprocess
import time

import numpy as np
import pytest

from collector.tests.harness import ROOT, blocks, card, free_port, postcards, records, wait_until, whole_bytes
from wire.wire import BLOCK, POSTCARD


def random_card(chance: random.Random, seq: int) -> bytes:
    """A postcard with random fields, except those that the collector reads."""
    fields = {name: chance.getrandbits(bits) for name, bits in POSTCARD.fields}
    fields.update(version=POSTCARD.const["POSTCARD_VERSION"], flags=0, switch_id=1, egress_port=2, card_seq=seq)
    return POSTCARD.encode(**fields)


def test_collector__stores_postcards_byte_for_byte(start, sanitized):
    chance = random.Random(1)
    sent = [random_card(chance, seq) for seq in range(3000)]
    running = start(sanitized)
    running.send(*sent)
    summary = running.stop()
    assert postcards(running.output) == sent
    assert (summary["received"], summary["stored"], summary["missing"], summary["kernel_drops"]) == (3000, 3000, 0, 0)
    assert summary["bytes"] == running.output.stat().st_size == whole_bytes(running.output)
    assert summary["blocks"] == len(blocks(running.output))


def test_collector__stamps_with_the_kernels_receive_time_on_the_monotonic_clock(start, build):
    running = start(build)
    running.deliver(signal.SIGSTOP)  # the stamp must not be the time of reading
    before = time.monotonic_ns()
    running.send(card(0), card(1))
    after = time.monotonic_ns()
    time.sleep(0.05)
    running.deliver(signal.SIGCONT)
    summary = running.stop()
    stamps = records(running.output)["rx_mono_ns"]
    assert before - 1000 <= stamps[0] <= stamps[1] <= after + 1000
    assert (summary["first_rx_mono_ns"], summary["last_rx_mono_ns"]) == tuple(stamps)
    clock = summary["clock"]
    assert clock["steps"] == clock["max_step_ns"] == 0
    used = blocks(running.output)[0].header["realtime_minus_mono_ns"]
    assert abs(used - clock["last_realtime_minus_mono_ns"]) < 1000
    before, now, after = min(
        ((time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range(100)),
        key=lambda read: read[2] - read[0],
    )
    assert now - after - 1_000_000 < used < now - before + 1_000_000


def test_collector__numbers_records_across_blocks(start, build):
    running = start(build)
    total = 25_013
    generate(build, running.port, total, rate=250_000)
    summary = running.stop()
    assert summary["stored"] == total
    expected = 0
    for block in blocks(running.output):
        assert block.header["first_record"] == expected
        assert block.header["lost_records"] == 0
        assert len(block.payload) <= BLOCK.const["BLOCK_MAX_PAYLOAD_BYTES"]
        expected += block.header["record_count"]
    assert expected == total
    assert np.array_equal(records(running.output)["card_seq"], np.arange(total))


def generate(build, port: int, count: int, rate: int, *options: str) -> dict:
    command = [build / "postcard_generator", "--to", f"127.0.0.1:{port}", "--count", str(count), "--rate", str(rate)]
    done = subprocess.run([*command, *options], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def test_collector__stores_the_wire_vectors_as_they_are(start, sanitized):
    vectors = json.loads((ROOT / "wire/vectors/postcard.json").read_text())
    running = start(sanitized)
    running.send(*[bytes.fromhex(vector["bytes"]) for vector in vectors.values()])
    assert running.stop()["stored"] == len(vectors)
    decoded = [POSTCARD.decode(stored) for stored in postcards(running.output)]
    assert decoded == [vector["fields"] for vector in vectors.values()]


@pytest.mark.parametrize("method", ["segment", "sendmmsg"])
def test_generator__sends_numbered_correct_postcards(start, build, method):
    running = start(build)
    result = generate(build, running.port, 1009, 100_000, "--method", method, "--first-seq", str(2**32 - 9))
    summary = running.stop()
    assert (result["sent"], result["method"]) == (1009, method)
    stream = summary["streams"][0]
    assert (stream["first_seq"], stream["last_seq"]) == (2**32 - 9, 2**32 + 999)
    assert (summary["stored"], summary["missing"], summary["duplicates"]) == (1009, 0, 0)
    first = POSTCARD.decode(postcards(running.output)[0])
    assert (first["switch_id"], first["egress_port"], first["dst_port"]) == (1, 2, 5201)
    assert first["src_addr"] == 0xFFFF << 32 | 10 << 24 | 77 << 16 | 1


@pytest.mark.parametrize("listen", ["", "127.0.0.1", "[::1]", "[::]", "0.0.0.0"])
def test_collector__listens_on_the_given_address_alone(start, sanitized, listen):
    hears4 = listen in ("", "127.0.0.1", "0.0.0.0")
    hears6 = listen in ("", "[::1]", "[::]")
    running = start(sanitized, listen=listen)
    running.send(card(0), to="127.0.0.1")
    running.send(card(1), to="::1")
    summary = running.stop()
    assert postcards(running.output) == [card(0)] * hears4 + [card(1)] * hears6
    assert summary["received"] == hears4 + hears6


def test_collector__writes_a_partial_block_while_nothing_comes(start, build):
    running = start(build)
    time.sleep(0.3)
    running.send(card(0), card(1), card(2))
    wait_until(lambda: len(records(running.output)) == 3, 30)
    running.stop()


def test_collector__stores_queued_postcards_when_stopped(start, build):
    running = start(build)
    running.deliver(signal.SIGSTOP)
    sent = [card(seq) for seq in range(2000)]
    running.send(*sent)
    running.deliver(signal.SIGTERM)
    running.deliver(signal.SIGCONT)
    assert running.stop(signal.SIGTERM)["stored"] == 2000
    assert postcards(running.output) == sent


def test_collector__stops_although_a_sender_goes_on(start, build):
    running = start(build)
    command = [
        build / "postcard_generator",
        "--to",
        f"127.0.0.1:{running.port}",
        "--count",
        "3000000",
        "--rate",
        "100000",
    ]
    sender = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: running.output.stat().st_size)
    began = time.monotonic()
    summary = running.stop(signal.SIGINT)
    assert time.monotonic() - began < 15  # the sender would continue for 30 s
    sender.wait(timeout=60)
    assert summary["stored"] == len(records(running.output)) > 0
    assert summary["missing"] == 0


def test_status__is_a_json_line_a_second(start, build):
    running = start(build, "--status")
    running.send(*[card(seq) for seq in range(10)])
    lines = [json.loads(running.process.stdout.readline())]
    while lines[-1]["received"] < 10:  # a line may be due before all postcards were sent
        lines.append(json.loads(running.process.stdout.readline()))
    line = lines[-1]
    assert (line["received"], line["missing"], line["kernel_drops"]) == (10, 0, 0)
    assert line["stored"] == 10
    assert 0.9 * len(lines) < line["elapsed_s"] < 30
    running.stop()


def test_status__reader_that_goes_away_does_not_end_the_run(start, build):
    running = start(build, "--status")
    running.process.stdout.close()
    running.process.stdout = None
    running.send(card(0))
    time.sleep(1.2)
    running.send(card(1))
    assert running.stop()["stored"] == 2


def test_status__is_one_line_on_a_terminal(build, tmp_path):
    master, terminal = pty.openpty()
    arguments = ["--listen", f":{free_port()}", "--output", tmp_path / "p.bsp", "--summary", tmp_path / "c.json"]
    process = subprocess.Popen([build / "collector", *arguments], stdout=subprocess.DEVNULL, stderr=terminal)
    os.close(terminal)
    assert b"0 postcards, 0/s, 0 stored, 0 missing" in os.read(master, 1000)
    process.terminate()
    assert process.wait(timeout=60) == 0
    os.close(master)


def test_help__lists_every_option(build):
    done = subprocess.run([build / "collector", "--help"], capture_output=True, text=True, check=True)
    for option in ("--listen", "--output", "--summary", "--status", "--discard", "--synthetic", "--receive-buffer"):
        assert option in done.stdout


def test_discard__counts_and_stores_nothing(start, build):
    running = start(build, "--discard")
    running.send(*[card(seq) for seq in range(100)])
    running.stop()
    summary = json.loads(running.rest)
    assert (summary["received"], summary["stored"], summary["kernel_drops"]) == (100, 0, 0)
    assert not running.output.exists()


def test_synthetic__stores_all_and_says_how_fast(build, tmp_path):
    output = tmp_path / "synthetic.bsp"
    command = [build / "collector", "--synthetic", "30011", "--buffers", "2", "--output", output]
    result = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    assert (result["stored"], result["write_errors"]) == (30011, 0)
    assert result["postcards_per_s"] > 0
    assert np.array_equal(records(output)["card_seq"], np.arange(30011))


def test_collector__serves_two_families_at_once(start, sanitized):
    running = start(sanitized)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as four,
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as six,
    ):
        for seq in range(0, 200, 2):
            four.sendto(card(seq), ("127.0.0.1", running.port))
            six.sendto(card(seq + 1), ("::1", running.port))
    assert running.stop()["missing"] == 0
    assert postcards(running.output) == [card(seq) for seq in range(200)]
