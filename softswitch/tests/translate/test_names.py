# SPDX-License-Identifier: MIT
"""Names that are reserved in C, conditions inside actions, headers compared and copied."""

from softswitch.translate.names import Names, comment, string

from .conftest import Switch

PROGRAM = "names"


def test_names__are_unique_and_never_reserved() -> None:
    names = Names()
    assert [names.unique(name) for name in ("a.b", "a_b", "a b", "int", "packet", "p4_x", "9lives", "__x")] == [
        "a_b", "a_b_2", "a_b_3", "int_", "packet_", "p4_x_", "x9lives", "x__x",
    ]  # fmt: skip


def test_comment__cannot_be_ended_by_a_name() -> None:
    assert "*/" not in comment("a */ b /* c\n d")
    assert string('say "\\?"\n') == '"say \\"\\\\\\077\\"\\012"'


def test_conditions_in_actions__take_the_right_branch(switch: Switch) -> None:
    def run(static: int, phv: int) -> bytes:
        return switch.send_one(bytes([0, 0, static, phv]))[:3]

    assert run(1, 2) == b"\x61\x62\x00"
    assert run(1, 3) == b"\x61\x63\x00"
    assert run(2, 3) == b"\x22\x00\x00"
    assert run(3, 3) == b"\x33\x00\x44"
    assert run(3, 4) == b"\x33\x00\x00"
    switch.do("table set goto 9 = memset")
    assert run(9, 0) == b"\x55\x00\x00"


def test_headers__copied_and_compared_whole(switch: Switch) -> None:
    same = bytes([1, 2, 3, 4]) * 2
    assert switch.send_one(same)[3:] == b"\x01" + bytes([1, 2, 3, 4])
    assert switch.send_one(bytes([1, 2, 3, 4, 1, 2, 3, 5]))[3:] == b"\x00" + bytes([1, 2, 3, 5])
    # An invalid header is copied as invalid, and is not equal to a valid one.
    assert switch.send_one(bytes([0, 2, 3, 4]))[3:] == b"\x00"


def test_key_names__with_spaces_and_quotes_stay_one_word(switch: Switch) -> None:
    assert switch.do("table list")[0].startswith('memcpy.goto ?_what*/_"is"_this_\\:exact:8 ')
