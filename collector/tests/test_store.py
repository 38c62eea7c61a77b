# SPDX-License-Identifier: MIT
"""Postcards are stored as sent, byte for byte, with the kernel's stamp and in whole blocks."""

import json
import random
import signal
import subprocess
import time

import pytest

from collector.tests.harness import blocks, card, postcards, records, wait_until, whole_bytes
from wire.wire import POSTCARD


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


def test_collector__with_two_receivers_numbers_their_blocks_and_judges_the_numbers_of_both(start, sanitized):
    running = start(sanitized, "--receivers", "2")
    sent = [card(seq) for seq in range(4000) if seq not in (7, 8, 2222)]
    shares = sent[::3], [each for index, each in enumerate(sent) if index % 3]
    for number in range(0, 2700, 100):
        for share in shares:  # each has a socket, so a port, of its own, by which the kernel chooses the receiver
            running.send(*share[number : number + 100])
    summary = running.stop()
    assert sorted(postcards(running.output)) == sorted(sent)
    assert [summary[name] for name in ("stored", "missing", "gaps", "duplicates")] == [len(sent), 3, 2, 0]
    received = [receiver["received"] for receiver in summary["receivers"]]
    assert sum(received) == len(sent)
    assert all(received)
    stored = blocks(running.output)
    counts = [block.header["record_count"] for block in stored]
    assert [block.header["first_record"] for block in stored] == [sum(counts[:n]) for n in range(len(counts))]


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


@pytest.mark.parametrize("listen", ["", "127.0.0.1", "[::1]", "[::]", "0.0.0.0"])
def test_collector__listens_on_the_given_address_alone(start, sanitized, listen):
    hears4 = listen in ("", "127.0.0.1", "0.0.0.0")
    hears6 = listen in ("", "[::1]", "[::]")
    running = start(sanitized, listen=listen)
    for seq in range(0, 50, 2):
        running.send(card(seq), to="127.0.0.1")
        running.send(card(seq + 1), to="::1")
    running.stop()
    assert postcards(running.output) == [card(seq) for seq in range(50) if (hears4, hears6)[seq % 2]]


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
    words = ["--to", f"127.0.0.1:{running.port}", "--count", "3000000", "--rate", "100000"]
    sender = subprocess.Popen([build / "postcard_generator", *words], stdout=subprocess.DEVNULL)
    wait_until(lambda: running.output.stat().st_size)
    began = time.monotonic()
    summary = running.stop(signal.SIGINT)
    assert time.monotonic() - began < 15  # the sender would continue for 30 s
    sender.kill()
    sender.wait(timeout=60)
    assert summary["stored"] == len(records(running.output)) > 0
    assert summary["missing"] == 0


def test_status__is_a_json_line_a_second_and_a_reader_that_goes_away_does_not_end_the_run(start, build):
    running = start(build, "--status")
    running.send(*[card(seq) for seq in range(10)])
    lines = [json.loads(running.process.stdout.readline())]
    while lines[-1]["received"] < 10:  # a line may be due before all postcards were sent
        lines.append(json.loads(running.process.stdout.readline()))
    line = lines[-1]
    assert [line[name] for name in ("received", "stored", "missing", "kernel_drops")] == [10, 10, 0, 0]
    assert 0.9 * len(lines) < line["elapsed_s"] < 30
    running.process.stdout.close()
    running.process.stdout = None
    time.sleep(1.2)
    running.send(card(10))
    assert running.stop()["stored"] == 11
