# SPDX-License-Identifier: MIT
"""The writer of raw files: whole blocks only, even on a full disk, and no file is overwritten."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from wire.wire import BLOCK, STORED_TCP_RECORD, read_blocks

ROOT = Path(__file__).resolve().parents[3]
KIND = BLOCK.const["BLOCK_TCP"]
RECORDS_A_BLOCK = BLOCK.const["BLOCK_MAX_PAYLOAD_BYTES"] // STORED_TCP_RECORD.itemsize


@pytest.fixture(scope="module")
def writer_tool():
    subprocess.run(["make", "-s", "-C", ROOT / "hosts", "SANITIZE=1", "tools"], check=True)
    return ROOT / "build/sanitize/obj/hosts/writer_tool"


def write(tool, path, *numbers, status=0):
    done = subprocess.run([tool, path, *map(str, numbers)], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return done


def counts(done) -> dict[str, int]:
    names = ("stored", "unwritten", "write_errors", "blocks", "bytes")
    return dict(zip(names, map(int, done.stdout.split()), strict=True))


def read(path):
    """The blocks, and the numbers of their records."""
    data = path.read_bytes()
    blocks = list(read_blocks(data, KIND))
    assert sum(BLOCK.length + block.header["payload_bytes"] for block in blocks) == len(data), "something is torn"
    return blocks, [np.frombuffer(block.payload, STORED_TCP_RECORD)["mono_ns"] for block in blocks]


def test_writer__blocks_are_full_and_the_last_one_has_the_rest(writer_tool, tmp_path):
    path = tmp_path / "t.bst"
    total = 2 * RECORDS_A_BLOCK + 7
    counted = counts(write(writer_tool, path, total, 0, 0, 0))
    blocks, numbers = read(path)
    assert [len(each) for each in numbers] == [RECORDS_A_BLOCK, RECORDS_A_BLOCK, 7]
    assert np.array_equal(np.concatenate(numbers), np.arange(total))
    assert [block.header["first_record"] for block in blocks] == [0, RECORDS_A_BLOCK, 2 * RECORDS_A_BLOCK]
    assert blocks[-1].header["lost_records"] == (total - 1) // 10
    assert counted == {
        "stored": total,
        "unwritten": 0,
        "write_errors": 0,
        "blocks": 3,
        "bytes": path.stat().st_size,
    }


def test_writer__flushed_blocks_are_small_ones(writer_tool, tmp_path):
    path = tmp_path / "t.bst"
    write(writer_tool, path, 1009, 100, 0, 0)
    _, numbers = read(path)
    assert [len(each) for each in numbers] == [100] * 10 + [9]


def test_writer__full_disk_costs_whole_blocks_and_is_counted(writer_tool, tmp_path):
    path = tmp_path / "t.bst"
    done = write(writer_tool, path, 1000, 100, 300, 600, status=2)
    blocks, numbers = read(path)
    assert [block.header["first_record"] for block in blocks] == [0, 100, 200, 600, 700, 800, 900]
    assert [int(each[0]) for each in numbers] == [0, 100, 200, 600, 700, 800, 900]
    counted = counts(done)
    assert (counted["stored"], counted["unwritten"], counted["write_errors"], counted["blocks"]) == (700, 300, 3, 7)
    assert done.stderr.count("\n") == 1
    assert f"appending 100 records to {path}: File too large" in done.stderr


def test_writer__existing_file_is_never_overwritten(writer_tool, tmp_path):
    path = tmp_path / "t.bst"
    path.write_bytes(b"earlier result")
    done = write(writer_tool, path, 10, 0, 0, 0, status=1)
    assert "File exists; a result is never overwritten" in done.stderr
    assert path.read_bytes() == b"earlier result"
