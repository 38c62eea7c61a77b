# SPDX-License-Identifier: MIT
"""The formats: Python agrees with the vectors (C compiles the same definitions), readers stop at the first damage."""

import itertools
import json
import zlib
from pathlib import Path

import numpy as np
import pytest

from wire.wire import (
    ARTIFACT_POSTCARD,
    BLOCK,
    DEPTH_BUCKETS,
    FLOW_RECORD,
    GOODPUT_RECORD,
    POSTCARD,
    STORED_POSTCARD,
    TCP_RECORD,
    RawFileError,
    encode_block,
    read_blocks,
    wide,
)

ROOT = Path(__file__).resolve().parents[2]
FORMATS = {
    "postcard": POSTCARD, "tcp_record": TCP_RECORD, "goodput_record": GOODPUT_RECORD, "flow_record": FLOW_RECORD,
    "artifact_postcard": ARTIFACT_POSTCARD,
}  # fmt: skip
VECTORS = [
    (path.stem, bytes.fromhex(vector["bytes"]), vector["fields"])
    for path in sorted((ROOT / "wire/vectors").glob("*.json"))
    for vector in json.loads(path.read_text()).values()
]
KIND = BLOCK.const["BLOCK_POSTCARDS"]


def stored_cards(count: int, **header: int) -> bytes:
    cards = b"".join(
        (1000 + index).to_bytes(8, "little") + POSTCARD.encode(version=2, card_seq=index) for index in range(count)
    )
    return encode_block(KIND, 2, STORED_POSTCARD.itemsize, cards, **header)


def test_vectors__are_read_and_written_by_python_and_numpy():
    assert {name for name, _, _ in VECTORS} == set(FORMATS)
    for name, data, fields in VECTORS:
        fmt = FORMATS[name]
        assert fmt.decode(data) == fields
        assert fmt.encode(**fields) == data
        if fmt.byte_order == "big":
            columns = fmt.columns(np.frombuffer(data * 3, dtype=np.uint8).reshape(3, -1))
            decoded = {name: column.tolist() for name, column in columns.items()}
            for field in [field for field, bits in fmt.fields if bits == 128]:
                high, low = decoded.pop(f"{field}_hi"), decoded.pop(f"{field}_lo")
                decoded[field] = [hi << 64 | lo for hi, lo in zip(high, low, strict=True)]
            assert decoded == {n: [v] * 3 for n, v in fields.items()}
        if fmt is ARTIFACT_POSTCARD:  # its fields are no whole bytes
            continue
        row = np.frombuffer(data, dtype=fmt.dtype())
        for field, bits in fmt.fields:
            column = row[field]
            if bits == 128:
                assert int.from_bytes(column[0].tobytes(), "big") == fields[field]
            else:
                assert int((wide(column) if column.ndim == 2 else column)[0]) == fields[field]


def test_codec__refuses_short_records_unknown_fields_and_wide_values():
    with pytest.raises(ValueError, match="90 bytes, a record has 91"):
        POSTCARD.decode(bytes(90))
    with pytest.raises(ValueError, match="no field colour"):
        POSTCARD.encode(colour=1)
    with pytest.raises(OverflowError):
        POSTCARD.encode(version=256)


def test_reader__stops_at_a_torn_block():
    data = stored_cards(3) + stored_cards(2, first_record=3)
    for end in range(len(data)):
        blocks = list(read_blocks(data[:end], KIND))
        assert [block.header["record_count"] for block in blocks] == ([3] if end >= len(stored_cards(3)) else [])


def test_reader__stops_at_a_flipped_bit():
    whole = stored_cards(2)
    for bit in range(0, len(whole) * 8, 7):
        damaged = bytearray(whole + whole)
        damaged[len(whole) + bit // 8] ^= 1 << bit % 8
        assert len(list(read_blocks(bytes(damaged), KIND))) == 1


def test_reader__refuses_another_version_or_length():
    header = dict(BLOCK.decode(stored_cards(0)), version=BLOCK.const["BLOCK_VERSION"] + 1, crc32=0)
    record = bytes(STORED_POSTCARD.itemsize)
    for block in (
        BLOCK.encode(**{**header, "crc32": zlib.crc32(BLOCK.encode(**header))}),
        encode_block(KIND, 1, len(record), record),
        encode_block(KIND, 2, len(record) + 8, record + bytes(8)),
    ):
        with pytest.raises(RawFileError, match="this reader knows"):
            list(read_blocks(block, KIND))


def test_depth_buckets__are_exact_below_16_and_then_no_wider_than_an_eighth():
    widths = [above - lowest for lowest, above in itertools.pairwise(DEPTH_BUCKETS)]
    assert DEPTH_BUCKETS[:16] == tuple(range(16))
    assert len(DEPTH_BUCKETS) == 128
    assert all(8 * width <= lowest for lowest, width in zip(DEPTH_BUCKETS[16:], widths[16:], strict=False))
    assert DEPTH_BUCKETS[-1] + widths[-1] == 1 << 18, "the buckets must end above the cells of a Tofino's buffer"
