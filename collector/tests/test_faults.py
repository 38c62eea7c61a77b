# SPDX-License-Identifier: MIT
"""Losses, garbage, full disks, kills and wrong options are counted and reported, and never damage stored postcards."""

import json
import os
import random
import resource
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from collector.tests.harness import (
    Running,
    blocks,
    card,
    postcards,
    records,
    wait_until,
    whole_bytes,
)
from hosts.tests.processes import free_port, privileges_of, refused
from lib.tests.fuzzing import fuzz
from wire.wire import BLOCK, POSTCARD, STORED_POSTCARD

NOBODY, CAP_DAC_OVERRIDE = 65534, 1
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def send_many(build: Path, port: int, count: int, rate: int) -> None:
    command = [build / "postcard_generator", "--to", f"127.0.0.1:{port}", "--count", str(count), "--rate", str(rate)]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def test_collector__counts_garbage_and_stores_whole_postcards(start, sanitized):
    newer = card(0, version=POSTCARD.const["POSTCARD_VERSION"] + 1)
    kinds = {"short": card(0)[:-1], "bad_version": newer, "trailing": card(0) + b"x", "stored": card(0)}
    sent = random.Random(20).choices(["", *kinds], k=1000)
    running = start(sanitized)
    running.send(*(kinds.get(kind, b"") for kind in sent))
    summary = running.stop()
    assert {name: summary[name] for name in kinds} == {name: sent.count(name) for name in kinds} | {
        "short": sent.count("short") + sent.count("")
    }
    assert summary["received"] == len(sent)
    assert postcards(running.output) == [card(0)] * sent.count("stored")


@pytest.mark.parametrize(
    ("listen", "allowed", "strangers"),
    [
        ("127.0.0.1", "127.0.0.2", {"127.0.0.1": "127.0.0.1", "127.0.0.3": "127.0.0.1"}),
        ("", "127.0.0.2", {"127.0.0.1": "127.0.0.1", "::1": "::1"}),
        ("", "::1", {"127.0.0.2": "127.0.0.1"}),
    ],
)
def test_collector__counts_datagrams_of_strangers_and_stores_none(start, sanitized, listen, allowed, strangers):
    running = start(sanitized, "--from", f"[{allowed}]" if ":" in allowed else allowed, listen=listen)
    to = "::1" if ":" in allowed else "127.0.0.1"
    for number in range(50):
        for source, target in strangers.items():
            running.send(card(1000 + number), b"no postcard", to=target, source=source)
        running.send(card(number), to=to, source=allowed)
    running.send(b"short", to=to, source=allowed)
    summary = running.stop()
    assert postcards(running.output) == [card(number) for number in range(50)]
    assert summary["stranger_datagrams"] == 100 * len(strangers)
    assert [summary[name] for name in ("received", "stored", "short", "missing", "untracked")] == [51, 50, 1, 0, 0]


@ROOT_ONLY
def test_collector__keeps_no_capability_and_becomes_the_owner_of_its_directory(build):
    with tempfile.TemporaryDirectory() as directory:  # other users cannot reach pytest's directories
        os.chown(directory, NOBODY, NOBODY)
        running = Running(build, Path(directory))
        assert privileges_of(running.pid) == ({NOBODY}, 0)
        running.send(card(0))
        assert running.stop()["stored"] == 1


@ROOT_ONLY
def test_collector__whose_directory_its_owner_cannot_reach_stays_root_to_write_there(build, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o700)
    directory = tmp_path / "closed/run"
    directory.mkdir()
    os.chown(directory, NOBODY, NOBODY)
    running = Running(build, directory)
    assert privileges_of(running.pid) == ({0}, 1 << CAP_DAC_OVERRIDE)
    running.send(card(0))
    assert running.stop()["stored"] == 1


def test_intake__holds_its_invariants_under_fuzzing(tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "seed").write_bytes(b"".join(bytes([len(card(0))]) + card(seq) for seq in (5, 6, 6, 9, 7, 2**32 - 1)))
    options = ["-seed=1", "-runs=20000", "-max_len=4096"]
    fuzz("collector", "fuzz_intake", *options, corpus=corpus)


def test_collector__tells_gaps_duplicates_and_reordering_apart(start, sanitized):
    running = start(sanitized)
    ingress = POSTCARD.const["POSTCARD_AT_INGRESS"]
    numbers = [2**32 - 2, 2**32 - 1, 0, 1, 1, 5, 4, 9]
    running.send(*[card(number) for number in numbers], *[card(number, flags=ingress) for number in (7, 8)])
    summary = running.stop()
    assert [summary[name] for name in ("stored", "missing", "gaps", "duplicates", "reordered")] == [10, 5, 2, 1, 1]
    by_origin = {stream["at_ingress"]: stream for stream in summary["streams"]}
    assert (by_origin[False]["first_seq"], by_origin[False]["last_seq"]) == (2**32 - 2, 2**32 + 9)
    assert (by_origin[True]["first_seq"], by_origin[True]["last_seq"], by_origin[True]["missing"]) == (7, 8, 0)


@pytest.mark.parametrize("more", [True, False])
def test_collector__counts_kernel_drops_and_the_gaps_agree(start, build, more):
    running = start(build, "--receive-buffer", "200000")
    running.send(*[card(seq) for seq in range(100)])
    running.wait_until_read()
    running.deliver(signal.SIGSTOP)
    running.send(*[card(seq) for seq in range(100, 5000)])
    running.deliver(signal.SIGCONT)
    running.wait_until_read()
    if not more:  # drops after the last postcard are counted, too
        assert running.stop()["kernel_drops"] == 5000 - len(records(running.output)) > 0
        return
    running.send(*[card(seq) for seq in range(5000, 5010)])
    summary = running.stop()
    assert summary["kernel_drops"] == summary["missing"] == 5010 - summary["stored"] > 0
    assert blocks(running.output)[-1].header["lost_records"] == summary["kernel_drops"]
    assert summary["gaps"] == 1
    assert summary["host_drops"]["udp_receive_buffer"] >= summary["kernel_drops"]


def slow_disk(build: Path) -> tuple[str, str]:
    return "env", f"LD_PRELOAD={build / 'obj/collector/slow_disk.so'}"


def test_collector__loses_nothing_while_the_disk_stalls(start, build):
    running = start(build, "--buffers", "2", prefix=slow_disk(build))
    send_many(build, running.port, 60_000, 200_000)
    summary = running.stop()
    assert summary["buffer_stalls"] > 0
    assert (summary["stored"], summary["missing"], summary["kernel_drops"]) == (60_000, 0, 0)
    assert np.array_equal(records(running.output)["card_seq"], np.arange(60_000))


@ROOT_ONLY
@pytest.mark.software
def test_collector__reports_a_smaller_receive_buffer(start, build, tmp_path):
    tmp_path.chmod(0o777)
    for directory in tmp_path.parents[:2]:
        directory.chmod(0o755)
    running = start(build, prefix=("setpriv", "--reuid=65534", "--clear-groups"))
    summary = running.stop()
    assert f"receive buffer is {summary['receive_buffer_bytes']} bytes instead of" in running.stderr


@pytest.mark.parametrize("receivers", [1, 2])
def test_collector__killed_leaves_whole_blocks_of_sent_postcards(start, build, receivers):
    chance = random.Random(9)
    for _ in range(5 // receivers):
        running = start(build, "--receivers", str(receivers))
        command = [build / "postcard_generator", "--to", f"127.0.0.1:{running.port}", "--count", "200000"]
        sender = subprocess.Popen([*command, "--rate", "100000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda path=running.output: path.stat().st_size)
        time.sleep(chance.uniform(0, 0.3))
        running.deliver(signal.SIGKILL)
        running.kill()
        sender.kill()
        sender.wait(timeout=60)
        rows = np.sort(records(running.output), order="rx_mono_ns")
        seq = np.arange(len(rows)) if receivers == 1 else rows["card_seq"].astype(int)
        assert np.array_equal(rows["card_seq"], seq)
        assert np.array_equal(rows["tcp_seq"], seq * 1448)
        # A later sample may correct the clock offset, and so move a stamp back by a few ns.
        assert np.diff(rows["rx_mono_ns"].astype(np.int64)).min() >= -10
        left = running.output.stat().st_size - whole_bytes(running.output)
        assert left < BLOCK.length + BLOCK.const["BLOCK_MAX_PAYLOAD_BYTES"]
        assert not running.summary_path.exists()
        running.output.unlink()


@pytest.mark.parametrize("receivers", [1, 2])
def test_collector__file_size_limit_is_counted_and_whole_blocks_stay(start, build, receivers):
    running = start(build, "--receivers", str(receivers))
    resource.prlimit(running.pid, resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
    send_many(build, running.port, 60_000, 200_000)
    summary = running.stop(status=2)
    assert "File too large" in running.stderr
    assert summary["write_errors"] > 0
    assert summary["received"] == summary["stored"] + summary["write_lost"]
    assert summary["missing"] == summary["kernel_drops"] == 0
    assert running.output.stat().st_size == summary["bytes"] == whole_bytes(running.output)
    rows = records(running.output)
    assert len(rows) == summary["stored"] > 0
    # Each block's first_record is the number of its first postcard.
    for block in blocks(running.output):
        first = block.header["first_record"]
        part = np.frombuffer(block.payload, STORED_POSTCARD)["card_seq"]
        assert receivers > 1 or np.array_equal(part, np.arange(first, first + len(part)))
    assert running.stderr.count("postcards lost") == 1


def test_collector__summary_that_cannot_be_written_goes_to_stderr(build, tmp_path):
    directory = tmp_path / "gone"
    directory.mkdir()
    output = tmp_path / "postcards.bsp"
    arguments = ["--listen", f":{free_port()}", "--output", output, "--summary", directory / "collector.json"]
    process = subprocess.Popen(
        [build / "collector", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    directory.rmdir()
    process.terminate()
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 2
    line, account = stderr.split("\n", 1)
    assert f"writing {directory}/collector.json: " in line
    assert json.loads(account)["received"] == 0


def test_options__that_are_wrong_are_refused_in_one_line(sanitized):
    here = ["--listen", ":5577", "--discard"]
    for address in (":0", ":65536", "5577", "localhost:5577", "::1:5577", "[::1:5577", "[::1%nosuchif]:5577", "[]:5577",
                    "[10.0.0.1]:5577", "1.2.3:5577", "x" * 500 + ":5577", "192.0.2.1:5577"):  # fmt: skip
        assert "listen" in refused(sanitized / "collector", "--listen", address, "--discard")
    for address in ("10.0.0.1:5577", "localhost", "fd00::1", "[fd00::1", "0.0.0.0", "255.255.255.255", "224.0.0.1",
                    "[::]", "[ff02::1]", "[::ffff:0.0.0.0]"):  # fmt: skip
        assert "--from" in refused(sanitized / "collector", *here, "--from", address)
    for arguments, says in (
        ([], "--listen"),
        (["--listen", ":5577"], "--output FILE and --summary FILE"),
        (["--listen", "127.0.0.1:5577", "--discard", "--from", "[fd00::1]"], "different address families"),
        ([*here, "--from", "10.0.0.1", "--from", "10.0.0.2"], "--from"),
        (["--colour"], "--colour"),
        ([*here, "--receivers", "17"], "--receivers"),
        (["postcards.bsp"], "postcards.bsp"),
        ([*here, "--output", "x"], "leave out"),
        (["--listen", ":5577", "--output", "x", "--summary", "x"], "choose two"),
        ([*here, "--buffers", "1"], "--buffers"),
        ([*here, "--receive-buffer", "64M"], "--receive-buffer"),
    ):
        assert says in refused(sanitized / "collector", *arguments)


def test_collector__refuses_what_is_taken_or_missing_and_leaves_nothing(start, sanitized, tmp_path):
    other = tmp_path / "other"
    other.mkdir()

    def line(port=0, output=other / "postcards.bsp", summary=other / "collector.json") -> str:
        listen = ["--listen", f":{port or free_port()}"]
        return refused(sanitized / "collector", *listen, "--output", output, "--summary", summary)

    assert "Address already in use" in line(start(sanitized).port)
    for missing in ("output", "summary"):
        assert "none/x" in line(**{missing: tmp_path / "none/x"})
    assert not list(other.iterdir())
    for name in ("postcards.bsp", "collector.json"):
        (other / name).write_text("earlier")
        said = line()
        assert name in said
        assert "never overwritten" in said
        assert [(path.name, path.read_text()) for path in other.iterdir()] == [(name, "earlier")]
        (other / name).unlink()
    (other / "postcards.bsp").symlink_to(tmp_path / "elsewhere")
    assert "never overwritten" in line()
    assert not (tmp_path / "elsewhere").exists()
