# SPDX-License-Identifier: MIT
"""Sweep specs: their points, changes by parameters and SMOKE, and one clear line for each error."""

from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.sweep.spec import Sweep, has_version, read
from lib.errors import SpecError

Write = Callable[..., Path]


def errors(file: Path, words: dict[str, object] | None = None, smoke: bool = False) -> list[str]:
    with pytest.raises(SpecError) as failure:
        read(file, words or {}, smoke)
    return failure.value.lines()


def test_points__are_the_product_of_grid_and_list(small: Sweep, write_spec: Write) -> None:
    assert len(small.points) == 6
    assert {"cc": "reno", "flows": "4"} in small.points
    sweep = read(write_spec(("grid:", "points: [{buf: 10pkt, rtt: none}, {buf: 20pkt}]\ngrid:")), {}, smoke=False)
    assert len(sweep.points) == 12
    assert {"buf": "10pkt", "rtt": "none", "cc": "bbr", "flows": "1"} in sweep.points
    assert ["rtt" in sweep.given(point) for point in sweep.points].count(False) == 6  # none: without the base's


def test_points__with_lists_are_every_combination(write_spec: Write) -> None:
    lists = "[{buf: 9p, rtt: [1ms, 2ms], rate: [1mbit, 2mbit]}, {buf: 7p}]"
    sweep = read(
        write_spec(text=f"name: a\npoints: {lists}\nheadlines: {{reps: 3, points: {lists}}}\n"), {}, smoke=False
    )
    assert [" ".join(point.values()) for point in sweep.points] == [
        "9p 1ms 1mbit", "9p 1ms 2mbit", "9p 2ms 1mbit", "9p 2ms 2mbit", "7p",
    ]  # fmt: skip
    assert sweep.headlines.points == sweep.points


def test_words__replace_base_parameters_and_extend_the_name(write_spec: Write) -> None:
    file = write_spec()
    sweep = read(file, {"rate": "1gbit", "clock": "real"}, smoke=False)
    assert (sweep.base["rate"], sweep.base["clock"], sweep.name) == ("1gbit", "real", "small-clock-real-rate-1gbit")
    assert read(file, {"reps": "9", "keep": "all"}, smoke=False).name == "small"  # the same runs, and more
    assert read(file, {"seed": "9"}, smoke=False).name == "small-seed-9"
    assert read(file, {"seed": "9", "name": "mine"}, smoke=False).name == "mine"
    assert errors(file, {"cc": "reno"})[0].startswith("CC=reno is varied by the sweep")
    assert "did you mean RATE" in errors(file, {"rat": "1"})[0]


def test_smoke__of_a_file_without_a_short_version_makes_one(write_spec: Write) -> None:
    text = "name: a\nreps: 5\nbase: {buf: 1bdp, duration: 9000rtt}\ngrid: {flows: ['1', '2', '4', '8'], cc: [reno]}\n"
    sweep = read(write_spec(text=text), {}, smoke=True)
    assert (sweep.name, sweep.reps) == ("a-smoke", 1)
    assert sweep.base == {"buf": "1bdp", "duration": "100rtt", "warmup": "60rtt"}
    assert [point["flows"] for point in sweep.points] == ["1", "8"]
    assert "no short version" in sweep.note
    varied = "name: a\nbase: {buf: 1bdp}\npoints: [{duration: 50rtt}, {duration: 60rtt}, {duration: 70rtt}]\n"
    sweep = read(write_spec(text=varied), {}, smoke=True)
    assert [point["duration"] for point in sweep.points] == ["50rtt", "70rtt"]
    assert "duration" not in sweep.base
    assert read(write_spec(), {}, smoke=True).note == ""
    assert "grid is not a mapping" in errors(write_spec(text="name: a\ngrid: [1, 2, 3]\n"), smoke=True)[0]


def test_clock__real_takes_the_real_version_if_there_is_one(write_spec: Write) -> None:
    real = "real: {reps: 3, base: {rate: 10mbit}, grid: {cc: [reno, bbr]}}\nsmoke:"
    file = write_spec(("smoke:", real))
    sweep = read(file, {"clock": " Real"}, smoke=False)
    assert (sweep.reps, sweep.base["rate"], sweep.base["rtt"], sweep.name) == (3, "10mbit", "4ms", "small-real")
    assert sweep.base["clock"].strip().lower() == "real"
    assert [(point["cc"], point["flows"]) for point in sweep.points] == [
        ("reno", "1"), ("reno", "4"), ("bbr", "1"), ("bbr", "4"),
    ]  # fmt: skip
    assert read(file, {}, smoke=False).name == read(file, {"clock": "virtual"}, smoke=False).name[:5] == "small"
    changed = read(file, {"clock": "real", "rtt": "9ms"}, smoke=False)
    assert (changed.base["rate"], changed.base["rtt"], changed.name) == ("10mbit", "9ms", "small-real-rtt-9ms")
    short = read(file, {"clock": "real"}, smoke=True)
    assert (short.reps, short.base["rate"], short.name) == (1, "50mbit", "small-real-smoke")
    names = [read(file, {"rtt": "5ms", **words}, smoke=True).name for words in ({}, {"clock": "real"})]
    assert names == ["small-rtt-5ms-smoke", "small-real-rtt-5ms-smoke"]
    assert [(point["cc"], point["flows"]) for point in short.points] == [("reno", "2"), ("bbr", "2")]


def test_switch__ns3_takes_the_version_for_ns3_if_there_is_one(write_spec: Write) -> None:
    file = write_spec(("smoke:", "ns3: {reps: 1, base: {rate: 10mbit}, grid: {cc: [reno], flows: ['4']}}\nsmoke:"))
    sweep = read(file, {"switch": "ns3"}, smoke=False)
    assert (sweep.reps, sweep.base["rate"], sweep.base["switch"], sweep.name) == (1, "10mbit", "ns3", "small-ns3")
    assert [(point["cc"], point["flows"]) for point in sweep.points] == [("reno", "4")]
    assert read(file, {"switch": "ns3"}, smoke=True).name == "small-ns3-smoke"
    assert read(file, {"switch": "process"}, smoke=False).name == "small-switch-process"
    assert read(write_spec(), {"switch": "ns3"}, smoke=False).name == "small-switch-ns3"
    assert has_version(file, "smoke")
    assert not has_version(write_spec(), "ns3")
    assert has_version(like(write_spec, "ns3: {reps: 1}"), "ns3")


def like(write_spec: Write, text: str, *replaced: tuple[str, str], path: str = "below/link.yaml") -> Path:
    """A spec whose `like` names a file with this text."""
    file = write_spec(("about:", f"like: {path}\nabout:"), *replaced)
    (file.parent / "below").mkdir(exist_ok=True)
    (file.parent / "below/link.yaml").write_text(text)
    return file


def test_like__gives_the_defaults_of_a_spec(write_spec: Write) -> None:
    text = "reps: 5\nbase: {rate: 1gbit, mtu: 9000}\nreal: {base: {rate: 10mbit}}\nsmoke: {base: {mtu: 1500}}\n"
    sweep = read(like(write_spec, text), {}, smoke=False)
    assert (sweep.reps, sweep.base["rate"], sweep.base["mtu"]) == (2, "100mbit", "9000")
    assert (sweep.name, sweep.points) == ("small", read(write_spec(), {}, smoke=False).points)
    assert read(like(write_spec, text), {"clock": "real"}, smoke=False).base["rate"] == "10mbit"
    short = read(like(write_spec, text), {}, smoke=True)
    # The rate is from the spec's own smoke section, the mtu from that of the file that `like` names.
    assert (short.base["rate"], short.base["mtu"]) == ("50mbit", "1500")
    assert read(like(write_spec, "seed: 4", ("seed: 7\n", "")), {}, smoke=False).seed == 4


def test_like_and_a_version__that_are_wrong_are_one_line(write_spec: Write) -> None:
    for text, path, said in (
        ("reps: 5", "../link.yaml", "like=../link.yaml"),
        ("reps: 5", "[below/link.yaml]", "like=a list"),
        ("reps: 5", "below/missing.yaml", "below/missing.yaml: spec file cannot be read"),
        ("reps: 5", '"a\\0b"', "is not a file below the spec's own directory"),
        ("base: {rates: 1}", "below/link.yaml", "spec.yaml (like below/link.yaml): base.rates"),
        ("name: a", "below/link.yaml", "below/link.yaml: name"),
        ("[1]", "below/link.yaml", "below/link.yaml: spec file is not a mapping"),
    ):
        (line,) = errors(like(write_spec, text, path=path))
        assert said in line
    for version, key in (("100mbit", "real"), ("{name: other}", "real.name"), ("{grid: {cc: reno}}", "grid.cc")):
        (line,) = errors(write_spec(("smoke:", f"real: {version}\nsmoke:")), {"clock": "real"})
        assert f": {key} " in line


def test_errors__are_one_line_each(write_spec: Write) -> None:
    one = write_spec(text="name: one\ncc: reno\nflows: '2'\n")
    assert "is the spec of one experiment; allowed: make experiment SPEC=" in errors(one)[0]
    thousand = list(map(str, range(1000)))
    for old, new, said in (
        ("about:", "colour: red\nabout:", "colour "),
        ("name: small", "name: a/b", "name=a/b "),
        ("keep: summary", "keep: some", "keep=some "),
        ("reps: 2", "reps: 0", "reps=0 "),
        ("reps: 2", "reps: [2]", "reps=a list "),
        ("rate: 100mbit", "rates: 100mbit", "base.rates "),
        ("rate: 100mbit", "rate: [1mbit, 2mbit]", "base.rate "),
        ("rate: 100mbit", "seed: '3'", "base.seed "),
        ("cc: [reno, cubic, bbr]", "cc: reno", "grid.cc is not a list"),
        ("cc: [reno, cubic, bbr]", "cc: [reno, reno]", "grid.cc has a value twice"),
        ("grid:", "points: [{flows: '3'}]\ngrid:", "flows is in grid and in points"),
        ("grid:", "points: {}\ngrid:", "points is not a list"),
        ("grid:", "points: [{rtt: [1ms, 1ms]}]\ngrid:", "points[1].rtt has a value twice"),
        ("grid:", f"points: [{{rtt: {thousand}, load: {thousand}}}]\ngrid:", "points[1] makes 1000000 points"),
        ("grid:", "search: {criterion: nonempty, least: '1', low: 1p, high: 9p}\ngrid:", "buf is the result of"),
        ("base:", "base: {rtt: 1ms}\nbase:", "base is given twice in line 7"),
        ("buf: 20pkt", "buf: &b 20pkt, mtu: *b", "replace *b in line 6"),
        ("seed: 7", "seed: {a: [b]}", "seed=a dict "),
        ("smoke:", "headlines: {reps: 3, points: [{flows: '5'}]}\nsmoke:", "{flows: 5} is no point"),
        ("smoke:", "headlines: {reps: 3}\nsmoke:", "is not complete"),
        ("smoke:", "headlines: {reps: x, points: [{flows: '4'}]}\nsmoke:", "headlines.reps"),
        ("smoke:", "headlines: {reps: 3, points: [{seed: '4'}]}\nsmoke:", "seed"),
        ("flows: ['1', '4']}", f"flows: {thousand}, rate: {thousand}}}", "grid makes 3000000 points"),
    ):
        lines = errors(write_spec((old, new)))
        assert len(lines) == 1, lines
        assert lines[0].startswith(f"{write_spec()}: ")
        assert said in lines[0]


def test_errors__come_all_at_once(write_spec: Write) -> None:
    search = "search: {criterion: [x], least: '2', low: 1s, high: 2bdp, width: no, most_reps: {a: b}}\ngrid:"
    lines = errors(write_spec(("keep: summary", "keep: x"), ("buf: 20pkt", "mtu: '1500'"), ("grid:", search)))
    keys = ("keep", "search.criterion", "search.least", "search.low", "search.width", "search.most_reps")
    assert sorted(line.split(" ")[1].partition("=")[0] for line in lines) == sorted(keys)
