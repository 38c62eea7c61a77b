# SPDX-License-Identifier: MIT
"""The formats: Python and C agree with the vectors, readers stop at the first damage, no format is defined twice."""

import itertools
import json
import random
import re
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest

from wire import dissector
from wire.wire import (
    ARTIFACT_POSTCARD,
    BLOCK,
    DEPTH_BUCKETS,
    FLOW_RECORD,
    GOODPUT_RECORD,
    POSTCARD,
    POSTCARD_1,
    STORED_POSTCARD,
    TCP_RECORD,
    TCP_RECORD_1,
    RawFileError,
    encode_block,
    read_blocks,
    wide,
)

ROOT = Path(__file__).resolve().parents[2]
FORMATS = {
    "postcard": POSTCARD,
    "postcard_1": POSTCARD_1,
    "tcp_record": TCP_RECORD,
    "tcp_record_1": TCP_RECORD_1,
    "goodput_record": GOODPUT_RECORD,
    "flow_record": FLOW_RECORD,
    "artifact_postcard": ARTIFACT_POSTCARD,
}
VECTORS = [
    pytest.param(FORMATS[path.stem], bytes.fromhex(vector["bytes"]), vector["fields"], id=f"{path.stem}-{name}")
    for path in sorted((ROOT / "wire/vectors").glob("*.json"))
    for name, vector in json.loads(path.read_text()).items()
]
KIND = BLOCK.const["BLOCK_POSTCARDS"]


@pytest.fixture(scope="module")
def decode_in_c(tmp_path_factory):
    program = tmp_path_factory.mktemp("wire") / "decode"
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", f"-I{ROOT}"]
    subprocess.run(["cc", *flags, ROOT / "wire/tests/decode.c", "-o", program], check=True)

    def decode(name: str, data: bytes) -> dict[str, int]:
        printed = subprocess.run([program, name], input=data, capture_output=True, check=True).stdout.decode()
        return {field: int(value, 16) for field, value in (line.split() for line in printed.splitlines())}

    return decode


def stored_cards(count: int, **header: int) -> bytes:
    cards = b"".join(
        (1000 + index).to_bytes(8, "little") + POSTCARD.encode(version=2, card_seq=index) for index in range(count)
    )
    return encode_block(KIND, 2, STORED_POSTCARD.itemsize, cards, **header)


@pytest.mark.parametrize(("fmt", "data", "fields"), VECTORS)
def test_python__reads_and_writes_the_vectors(fmt, data, fields):
    assert fmt.decode(data) == fields
    assert fmt.encode(**fields) == data


PYTHON_ONLY = (POSTCARD_1, TCP_RECORD_1, ARTIFACT_POSTCARD)
OF_WHOLE_BYTES = [v for v in VECTORS if v.values[0] is not ARTIFACT_POSTCARD]


@pytest.mark.parametrize(("fmt", "data", "fields"), [v for v in VECTORS if v.values[0] not in PYTHON_ONLY])
def test_c__reads_the_vectors(fmt, data, fields, decode_in_c):
    assert decode_in_c(fmt.name, data) == fields


@pytest.mark.parametrize(("fmt", "data", "fields"), OF_WHOLE_BYTES)
def test_numpy_layout__reads_the_vectors(fmt, data, fields):
    row = np.frombuffer(data, dtype=fmt.dtype())
    for name, bits in fmt.fields:
        column = row[name]
        if bits == 128:
            assert int.from_bytes(column[0].tobytes(), "big") == fields[name]
        else:
            assert int((wide(column) if column.ndim == 2 else column)[0]) == fields[name]


@pytest.mark.parametrize(("data", "fields"), [v.values[1:] for v in VECTORS if v.values[0] is ARTIFACT_POSTCARD])
def test_columns__read_the_vectors_of_bit_fields(data, fields):
    rows = np.frombuffer(data * 3, dtype=np.uint8).reshape(3, -1)
    columns = ARTIFACT_POSTCARD.columns(rows)
    assert {name: column.tolist() for name, column in columns.items()} == {n: [v] * 3 for n, v in fields.items()}


def test_columns__are_for_big_endian_fields_of_64_bits():
    with pytest.raises(TypeError, match="src_addr is not a column"):
        POSTCARD.columns(np.zeros((1, POSTCARD.length), dtype=np.uint8))
    with pytest.raises(TypeError, match="not whole bytes"):
        ARTIFACT_POSTCARD.dtype()


def test_decode__refuses_a_short_record():
    with pytest.raises(ValueError, match="90 bytes, a record has 91"):
        POSTCARD.decode(bytes(90))


def test_encode__refuses_unknown_fields_and_wide_values():
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


def test_reader__survives_random_bytes():
    chance = random.Random(1)
    magic = BLOCK.const["BLOCK_MAGIC"].to_bytes(4, "little")
    for _ in range(2000):
        assert list(read_blocks(magic + chance.randbytes(chance.randrange(200)), KIND)) == []


def test_reader__refuses_a_newer_version():
    header = dict(BLOCK.decode(stored_cards(0)), version=BLOCK.const["BLOCK_VERSION"] + 1, crc32=0)
    block = BLOCK.encode(**{**header, "crc32": zlib.crc32(BLOCK.encode(**header))})
    with pytest.raises(RawFileError, match="this reader knows"):
        list(read_blocks(block, KIND))


@pytest.mark.parametrize(("version", "fmt"), [(1, TCP_RECORD_1), (2, TCP_RECORD)])
def test_reader__reads_every_version_of_a_tcp_record(version, fmt):
    kind = BLOCK.const["BLOCK_TCP"]
    block = encode_block(kind, version, fmt.length, fmt.encode(snd_nxt=7) * 3)
    (stored,) = read_blocks(block, kind)
    assert stored.header["record_version"] == version
    assert fmt.decode(stored.payload) == dict.fromkeys(dict(fmt.fields), 0) | {"snd_nxt": 7}
    with pytest.raises(RawFileError, match="this reader knows"):
        list(read_blocks(encode_block(kind, version, fmt.length + 8, bytes(fmt.length + 8)), kind))


@pytest.mark.parametrize(("version", "fmt"), [(1, POSTCARD_1), (2, POSTCARD)])
def test_reader__reads_every_version_of_a_postcard(version, fmt):
    card = bytes(8) + fmt.encode(version=version, card_seq=7)
    (stored,) = read_blocks(encode_block(KIND, version, len(card), card * 3), KIND)
    assert fmt.decode(stored.payload[8:])["card_seq"] == 7


def test_earlier_version__is_cut_where_a_field_ends():
    assert TCP_RECORD_1.fields == TCP_RECORD.fields[:-1]
    with pytest.raises(ValueError, match="no field ends after 145 bytes"):
        TCP_RECORD.beginning(145)


def test_depth_buckets__are_exact_below_16_and_then_no_wider_than_an_eighth():
    widths = [above - lowest for lowest, above in itertools.pairwise(DEPTH_BUCKETS)]
    assert DEPTH_BUCKETS[:16] == tuple(range(16))
    assert len(DEPTH_BUCKETS) == 128
    assert all(8 * width <= lowest for lowest, width in zip(DEPTH_BUCKETS[16:], widths[16:], strict=False))
    assert DEPTH_BUCKETS[-1] + widths[-1] == 1 << 18, "the buckets must end above the cells of a Tofino's buffer"


def test_dissector__gives_the_depth_in_the_postcards_unit():
    text = dissector.lua()
    assert "local depth = string.format('%d packets', buffer(26, 4):uint())" in text
    assert "local unit = length > 90 and buffer(90, 1):uint()" in text
    assert "if unit == 1 then depth = string.format('%d cells', buffer(86, 4):uint()) end" in text
    assert "if unit == 2 then depth = 'unknown' end" in text


def test_definitions__have_one_entry_per_line():
    for path in [*ROOT.glob("wire/*.def"), *ROOT.glob("p4src/shared/*.def")]:
        for line in path.read_text().splitlines():
            if re.match(r"\s*(CONST|FIELD)\(", line):
                assert re.fullmatch(r"(CONST\(\w+, \w+\)|FIELD\(\d+, \w+\))( +// .*)?", line), f"{path.name}: {line}"


def test_no_other_module__unpacks_bytes_by_hand():
    """With a second list of fields, the formats would drift apart."""
    # ICMP, SO_PEERCRED, sched_setattr and a length prefix: not formats of wire/
    others = {"hosts/traffic/idle_rtt.py", "experiments/machine.py", "hosts/bmv2.py", "hosts/control_relay.py"}
    tracked = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    guilty = [
        name
        for name in tracked.splitlines()
        if "/tests/" not in name
        and name not in others
        and re.search(r"struct\.(un)?pack|\bStruct\(", (ROOT / name).read_text())
    ]
    assert guilty == []
