# SPDX-License-Identifier: MIT
"""Tables against models in Python: exact, lpm, ternary, mixtures, const entries, defaults, counters, exit."""

import random

from .conftest import Switch

PROGRAM = "tables"

EXACT, TWO, _, LPM_WIDE, TERNARY, MIXTURE, FIXED, FIXED_TERNARY, ABSENT, NO_KEY, RETURN = range(11)


def frame(which: int, a: int = 0, b: int = 0, c: int = 0, wide: int = 0, odd: int = 0) -> bytes:
    head = bytes([which]) + a.to_bytes(4, "big") + b.to_bytes(2, "big") + bytes([c])
    return head + wide.to_bytes(16, "big") + (odd << 7).to_bytes(2, "big")


def apply(switch: Switch, which: int, **keys: int) -> tuple[int, int, int]:
    """(number, flags, wide) that the program writes into the packet."""
    out = switch.send_one(frame(which, **keys))
    return int.from_bytes(out[:2], "big"), out[2], int.from_bytes(out[3:19], "big")


def test_exact__random_sets_replacements_and_deletions_match_a_dict(switch: Switch) -> None:
    rng = random.Random(1)
    model: dict[int, int] = {}
    keys = [rng.getrandbits(32) for _ in range(120)]
    for step in range(900):
        key = rng.choice(keys)
        if rng.random() < 0.45 and key in model:
            switch.do(f"table delete I.exact_one {key:#x}")
            del model[key]
        else:
            model[key] = rng.randrange(65536)
            switch.do(f"table set I.exact_one {key} = I.found {model[key]}")
        probe = rng.choice(keys)
        number, flags, _ = apply(switch, EXACT, a=probe)
        assert (number, flags) == ((model[probe], 0x10) if probe in model else (0, 0xFF)), step
    dump = switch.do("table dump I.exact_one")
    assert sorted(dump[:-1]) == sorted(f"I.exact_one {key} = I.found {value}" for key, value in model.items())
    assert dump[-1] == "default I.exact_one I.missed"


def test_exact__a_dump_can_be_fed_back(switch: Switch) -> None:
    ones = "0x" + "f" * 32
    switch.do(f"table set exact_two 0x20010db8000000000000000000000001 511 = found_wide 300 {ones} 5")
    switch.do("table set exact_two 1 2 = found 9")
    dump = switch.do("table dump exact_two")
    for line in dump[:-1]:
        switch.do("table delete " + line.split(" = ")[0])
    assert len(switch.do("table dump exact_two")) == 1
    for line in dump[:-1]:
        switch.do("table set " + line)
    switch.do("table " + dump[-1])
    assert switch.do("table dump exact_two") == dump
    assert apply(switch, TWO, wide=0x20010DB8 << 96 | 1, odd=511) == (300, 5, 0)
    assert apply(switch, TWO, wide=1, odd=2) == (9, 0, 1)
    assert apply(switch, TWO, wide=1, odd=3) == (7, 0, 1)


def test_exact__holds_as_many_entries_as_its_size_and_counts_the_hits_of_each(switch: Switch) -> None:
    for key in range(300):
        switch.do(f"table set exact_one {key} = found {key}")
    assert "full: its size in the P4 program is 300" in switch.refused("table set exact_one 300 = found 1")
    switch.do("table set exact_one 299 = found 1000")
    for key in range(0, 300, 2):
        switch.do(f"table delete exact_one {key}")
    for key in range(300):
        number, _, _ = apply(switch, EXACT, a=key)
        assert number == (0 if key % 2 == 0 else 1000 if key == 299 else key)
    size = len(frame(EXACT))
    hits = switch.do("counter read I.exact_hits")
    assert [line.split(" ", 1)[1] for line in hits] == [f"1 {size}"] * 150
    switch.do("table set exact_one 299 = found 3")
    assert len(switch.do("counter read exact_hits")) == 149
    switch.do("counter reset exact_hits")
    assert switch.do("counter read exact_hits") == []


def lpm_model(entries: dict[tuple[int, int], int], value: int, bits: int) -> int | None:
    for length in range(bits, -1, -1):
        entry = entries.get((value >> (bits - length), length))
        if entry is not None:
            return entry
    return None


def test_lpm__longest_prefix_wins_also_in_128_bits_and_beside_an_exact_key(switch: Switch) -> None:
    rng = random.Random(3)
    base = 0x20010DB8 << 96
    entries: dict[int, dict[tuple[int, int], int]] = {0: {}, 1: {}}
    for _ in range(200):
        length, exact = rng.choice([0, 1, 32, 63, 64, 65, 100, 127, 128]), rng.randrange(2)
        prefix = (base | rng.getrandbits(70)) >> (128 - length)
        entries[exact][prefix, length] = rng.randrange(1, 65536)
        number = entries[exact][prefix, length]
        switch.do(f"table set lpm_wide {exact} {prefix << (128 - length):#x}/{length} = found {number}")
        if rng.random() < 0.4:
            prefix, length = rng.choice(list(entries[exact]))
            switch.do(f"table delete lpm_wide {exact} {prefix << (128 - length):#x}/{length}")
            del entries[exact][prefix, length]
    known = [prefix << (128 - length) for exact in entries for prefix, length in entries[exact]]
    for _ in range(200):
        probe, exact = rng.choice(known) ^ (1 << rng.randrange(128) if rng.random() < 0.5 else 0), rng.randrange(3)
        number, flags, _ = apply(switch, LPM_WIDE, c=exact, wide=probe)
        expected = lpm_model(entries.get(exact, {}), probe, 128)
        assert (number, flags) == ((expected, 0) if expected is not None else (0, 0xFF))


def test_ternary__highest_priority_wins_then_the_oldest(switch: Switch) -> None:
    rng = random.Random(4)
    entries: list[tuple[tuple[int, int], tuple[int, int], int, int]] = []
    for number in range(1, 300):
        masks = rng.choice([0, 0xFF, 0xFFFFFFFF]), rng.choice([0, 0x0F, 0xFFFF])
        values = rng.getrandbits(2) & masks[0], rng.getrandbits(2) & masks[1]
        keys = " ".join(f"{value}&&&{mask:#x}" for value, mask in zip(values, masks, strict=True))
        old = next((entry for entry in entries if entry[:2] == (values, masks)), None)
        if old and rng.random() < 0.3:
            switch.do(f"table delete ternary_two {keys}")
            entries.remove(old)
        else:
            priority = rng.randrange(1, 6)
            switch.do(f"table set ternary_two {keys} = found {number} priority {priority}")
            if old and old[2] == priority:
                entries[entries.index(old)] = (values, masks, priority, number)
            else:
                if old:
                    entries.remove(old)
                entries.append((values, masks, priority, number))
        a, b = rng.getrandbits(3), rng.getrandbits(3)
        fits = [e for e in entries if a & e[1][0] == e[0][0] and b & e[1][1] == e[0][1]]
        best = max(fits, key=lambda e: e[2], default=None)
        got, flags, _ = apply(switch, TERNARY, a=a, b=b)
        assert (got, flags) == ((best[3], 0) if best else (0, 0xFF))


def test_mixture__exact_lpm_range_and_ternary_in_one_key(switch: Switch) -> None:
    switch.do("table set mixture 1 0x0a000000/8 100..200 * = found 1 priority 1")
    switch.do("table set mixture 1 0x0a010000/16 150 0x8&&&0xc = found 2 priority 2")
    assert apply(switch, MIXTURE, c=1, a=0x0A010203, b=150, wide=0xA)[0] == 2
    assert apply(switch, MIXTURE, c=1, a=0x0A010203, b=150, wide=0x4)[0] == 1
    for b, expected in ((99, 0), (100, 1), (200, 1), (201, 0)):
        assert apply(switch, MIXTURE, c=1, a=0x0A020000, b=b)[0] == expected
    assert apply(switch, MIXTURE, c=2, a=0x0A010203, b=150)[1] == 0xFF
    assert switch.do("table dump mixture") == [
        "I.mixture 1 167837696/16 150..150 0x8&&&0xc = I.found 2 priority 2",
        "I.mixture 1 167772160/8 100..200 0x0&&&0x0 = I.found 1 priority 1",
        "default I.mixture I.missed",
    ]


def test_const_entries__are_there_and_stay(switch: Switch) -> None:
    for a, number in ((0x0A010203, 32), (0x0A010204, 16), (0x0A020304, 8)):
        assert apply(switch, FIXED, a=a)[:2] == (number, 1)
    assert apply(switch, FIXED, a=0x0B000000)[:2] == (0, 2)
    for b, c, number, flags in ((0x1234, 1, 1, 3), (0x1299, 1, 1, 3), (0x1334, 1, 0, 4), (7, 2, 3, 3), (7, 3, 0, 4)):
        assert apply(switch, FIXED_TERNARY, b=b, c=c)[:2] == (number, flags)


def test_absent_header__its_fields_match_as_zero(switch: Switch) -> None:
    switch.do("table set of_absent 0 0 0 = found 77")
    assert apply(switch, ABSENT)[0] == 77


def test_default__without_key_can_be_changed(switch: Switch) -> None:
    assert apply(switch, NO_KEY)[:2] == (1, 9)
    switch.do("table default no_key found 5")
    assert apply(switch, NO_KEY) == (5, 9, 1)
    switch.do("table default no_key missed")
    assert apply(switch, NO_KEY) == (0, 9, 1)


def test_exit__ends_the_pipeline_and_return_the_control(switch: Switch) -> None:
    switch.do("table set exact_one 1 = stop")
    assert apply(switch, EXACT, a=1) == (0, 0xEE, 0)
    assert apply(switch, RETURN)[2] == apply(switch, NO_KEY)[2] - 1


def test_list__gives_keys_and_actions_of_each_table(switch: Switch) -> None:
    lines = switch.do("table list")
    names = "exact_one exact_two lpm_one lpm_wide ternary_two mixture fixed fixed_ternary of_absent no_key"
    assert " ".join(line.split(" ")[0].removeprefix("I.") for line in lines) == names
    assert lines[1] == (
        "I.exact_two hdr.key.wide:exact:128,odd_key:exact:9 I.found(number:16),I.found_wide(number:9,wide:128,flags:3)"
    )
    assert lines[-1] == "I.no_key - I.found(number:16),I.missed()"


def test_requests__that_do_not_fit_change_nothing_and_say_why(switch: Switch) -> None:
    before = {line.split(" ")[0]: switch.do(f"table dump {line.split(' ')[0]}") for line in switch.do("table list")}
    for request, named in REFUSED.items():
        assert named in switch.refused(request), request
    assert before == {name: switch.do(f"table dump {name}") for name in before}


REFUSED = {  # request -> what its line of error names
    "table": "list, or set, delete, default or dump",
    "table set nowhere 1 = found 1": "the program has I.exact_one, I.exact_two,",
    "table set exact_one = found 1": "keys given: 0, needed: hdr.key.a",
    "table set exact_one 1 2 = found 1": "should follow the keys hdr.key.a",
    "table set exact_one 1": "should follow the keys hdr.key.a",
    "table set exact_one 4294967296 = found 1": "'4294967296' does not fit in 32 bits: at most 4294967295",
    "table set exact_two 0x1" + 32 * "0" + " 1 = found 1": "does not fit in 128 bits: at most 0x" + 32 * "f",
    "table set exact_one ten = found 1": "'ten' is not a number",
    "table set exact_one 1 = fond 1": "action 'fond' is not one of I.found, I.found_wide, I.stop, I.missed",
    "table set exact_one 1 = found": "I.found: arguments given: 0, needed: number:16",
    "table set exact_one 1 = found 70000": "number: '70000' does not fit in 16 bits: at most 65535",
    "table set exact_one 1 = found 1 priority 3": "before 'priority'",
    "table set lpm_one 10/33 = found 1": "'10/33' should be VALUE/BITS",
    "table set lpm_one 0x0a000001/8 = found 1": "did you mean 0xa000000?",
    "table set ternary_two 3&&&2 * = found 1 priority 1": "did you mean 0x2?",
    "table set ternary_two 3&&&x * = found 1 priority 1": "'3&&&x' should be VALUE&&&MASK",
    "table set ternary_two 1 1 = found 1": "`priority N`",
    "table set ternary_two 1 1 = found 1 priority 2147483648": "priority '2147483648'",
    "table set mixture 1 0/0 200..100 * = found 1 priority 1": "'200..100' ends before it starts",
    "table delete exact_one 12345": "no entry has this key",
    "table set no_key = found 1": "it has no key",
    "table default lpm_one found 1": "its default action is const",
    "table default exact_one found_wide 1 2": "arguments given: 2, needed: number:9, wide:128, flags:3",
    "table set fixed 1/32 = found 1": "its entries are const",
    "table dump exact_one now": "before 'now'",
    "hello": "unknown request 'hello'",
}
