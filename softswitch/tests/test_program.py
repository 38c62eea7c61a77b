# SPDX-License-Identifier: MIT
"""The compiled P4 program in the core: the postcards it emits against the independent model of a queue."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from controlplane.policy import TailDrop, Unit
from p4src.tests.under_test import POSTCARD_HEADERS_BYTES, RATE_BPS, RECEIVER_PORT, SENDER_PORT, SoftCore
from wire.wire import POSTCARD

from .core_driver import BUILD, ROOT, make
from .fifo_model import fifo
from .test_flows import udp

DROPPED = POSTCARD.const["POSTCARD_DROPPED"]
FRAME = udp("10.77.0.1", "10.77.0.2", 30000, 5201)
PROGRAMS = ROOT / "softswitch/tests/translate/programs/build"


def random_arrivals(rng: random.Random, count: int) -> list[tuple[int, int]]:
    arrivals, now_ns = [], 10**15
    for _ in range(count):
        # Bursts at the same ns, gaps around the service time, and departures that coincide with arrivals.
        now_ns += rng.choice((0, 61520, rng.randrange(150_000)))
        arrivals.append((now_ns, rng.choice((1514, 1514, 64, rng.randrange(60, 1515)))))
    return arrivals


@pytest.mark.parametrize(("seed", "in_bytes"), [(0, False), (1, True), (2, False), (2, True)])
def test_tail_drop__depths_and_times_equal_the_model(seed: int, in_bytes: bool) -> None:
    rng = random.Random(seed)
    threshold = rng.choice((1, 7, 40)) * (900 if in_bytes else 1)
    switch = SoftCore().configure()
    switch.policy(TailDrop(threshold, Unit.BYTES if in_bytes else Unit.PACKETS))
    switch.control.set_port(RECEIVER_PORT, delay=5_000_000)
    arrivals, outputs = random_arrivals(rng, 3001), []
    for arrival_ns, length in arrivals:
        switch.send(arrival_ns, SENDER_PORT, FRAME[:length].ljust(length, b"\0"))
        if not rng.randrange(20):
            outputs += switch.core.run(arrival_ns)
    outputs += switch.core.run()
    model = fifo(arrivals, RATE_BPS, admits=lambda _, packets, size: (size if in_bytes else packets) < threshold)
    reported = [POSTCARD.decode(output.frame[POSTCARD_HEADERS_BYTES:]) for output in outputs if output.port == 3]
    expected = []
    for packet, (arrival_ns, length) in zip(model, arrivals, strict=True):
        sojourn_ns = 0 if packet.departure_ns is None else packet.departure_ns - arrival_ns
        depths = (packet.depth_packets, packet.depth_bytes)
        expected.append((arrival_ns % 2**48, *depths, sojourn_ns, packet.dropped, length))
    names = ("enqueue_switch_ns", "depth_packets", "depth_bytes", "sojourn_ns", "flags", "packet_bytes")
    actual = [[card[name] for name in names] for card in reported]
    assert sorted((*at, bool(flags & DROPPED), size) for *at, flags, size in actual) == sorted(expected)
    sent = [output.due_ns for output in outputs if output.port == 2]
    assert sent == [packet.departure_ns + 5_000_000 for packet in model if packet.departure_ns is not None]
    assert any(packet.dropped for packet in model)
    assert "can only be read" in switch.core.control("register write queue_packets 2 5")[0]


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("pipeline", ["test", "p4", "checksums", "expressions", "tables"])
def test_freestanding__core_and_pipeline_need_no_libc(pipeline: str, compiler: str) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    where = f"{BUILD}/obj/{compiler}"
    program = f"PIPELINE={pipeline}" if pipeline in ("test", "p4") else f"P4_JSON={PROGRAMS / pipeline}.json"
    make(program, f"CC={compiler}", f"OBJ={where}", f"PROGRAM_OBJ={where}/{pipeline}", "freestanding")


def test_objects__know_their_headers_in_a_checkout_that_was_moved(tmp_path: Path) -> None:
    def make_core(checkout: Path) -> str:
        words = ["P4_JSON=../p4src/build/bufferscope.json", f"{checkout}/build/obj/softswitch/core.o"]
        return subprocess.check_output(
            ["make", "V=1", "COVERAGE=", "-C", "softswitch", *words], cwd=checkout, text=True
        )

    for name in ("softswitch", "lib", "wire", "p4src/build"):
        shutil.copytree(ROOT / name, tmp_path / "first" / name)
    assert "runtime/core.c" in make_core(tmp_path / "first")
    moved = (tmp_path / "first").rename(tmp_path / "moved")
    assert "is up to date" in make_core(moved)
    (moved / "softswitch/runtime/link.h").touch()
    assert "runtime/core.c" in make_core(moved)
