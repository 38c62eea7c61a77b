# SPDX-License-Identifier: MIT
"""The output of `make advise`: the papers' own examples, assumptions, memory, and one line for each mistake."""

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
from typing import Any

import pytest

from analysis.advise import brief, loss_forms, memory, parameters, rules
from analysis.advise.evidence import Evidence, EvidenceRun
from analysis.map import ratio
from bufferscope.__main__ import main
from experiments.machine.host import CHECKOUT, Host
from experiments.spec.resolve import resolve

LINK = ("RATE=100gbit", "RTT=100ms", "FLOWS=10000")  # Spang et al., 7.1


def with_link(words, *more):
    """The words, and those of LINK and `more` whose keys are not among them."""
    keys = {word.partition("=")[0] for word in words}
    return [*words, *(word for word in (*LINK, *more) if word.partition("=")[0] not in keys)]


@pytest.fixture
def advice(capsys, tmp_path):
    """A function that returns advise's JSON document for `words`, without any runs; for LINK and Reno by default."""

    def ask(*words):
        assert main(["advise", *with_link(words, "CC=reno"), f"EVIDENCE={tmp_path}", "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return ask


def by_key(document):
    return {rule["key"]: rule for rule in document["rules"]}


KAPPA = -math.log(0.025)  # of the default RISK
PACKETS = 1e10 / 8 / 1538  # BDP of LINK
ENACHESCU = "RATE=10gbit RTT=100ms FLOWS=1000 MTU=962 WINDOW=64p UTIL=90% INPUT=10mbit"
EXAMPLES: list[tuple[str, dict[str, float]]] = [  # words, and packets by rule; test_theory_in_print.py has the formulas
    # Spang et al., 7.1. By theory, Theorem 7 needs less than a packet; the rule asks for a burst.
    ("", {"bdp": PACKETS, "sqrt-n": PACKETS / 100, "theorem-6": PACKETS / 100, "theorem-7": 20}),
    (f"CC=bbr RISK={math.exp(-2):.15f}", {"theorem-8": PACKETS / 100, "one-flow": 0.24 * PACKETS}),
    ("LOSING=1", {"equation-3": PACKETS / 1e4}),
    # Enachescu et al.: windows of 64 KB in packets of 1 KB
    (ENACHESCU, {"bdp": 125_000, "sqrt-n": 3953, "theorem-1": 14.83}),
    # Prasad et al.: the ratio of the capacities decides which rules there are.
    ("INPUT=1tbit FLOW_SIZES=30p", {"l-model": 0.8333 * PACKETS}),
    ("INPUT=1gbit FLOW_SIZES=30p", {"ex-form": 10}),
    ("LOAD=0.8 FLOW_SIZES=14p", {"short-flows": KAPPA * 12, "md1": KAPPA * 2, "rho-b": -KAPPA / math.log(0.8)}),
    ("FLOW_SIZES=21000b", {"short-flows": KAPPA * 12}),  # 14 packets of 1500, at the papers' load
]


def test_examples_of_the_papers__come_out(advice):
    for words, expected in EXAMPLES:
        found = by_key(advice(*words.split()))
        packets = {key: found[key]["buffer"]["packets"] for key in expected}
        assert packets == pytest.approx(expected, rel=2e-3), words
    ratio_rules = {"s-model", "l-model", "ex-form"}
    for words, keys_of_ratio in (
        ("INPUT=1tbit", {"s-model", "l-model"}), ("INPUT=1gbit", {"ex-form"}),
    ):  # fmt: skip
        found = by_key(advice("FLOW_SIZES=30p", words))
        assert ratio_rules & set(found) == keys_of_ratio, words
    of = by_key(advice())
    assert [of[key]["memory"] for key in ("bdp", "sqrt-n", "theorem-7")] == ["off-chip", "package", "on-chip SRAM"]
    assert of["bdp"]["buffer"]["wire_bits"] == pytest.approx(1e10)
    assert of["sqrt-n"]["buffer"]["time_s"] == pytest.approx(1e-3)
    large = by_key(advice("RATE=10gbit", "RTT=250ms", "FLOWS=50000"))
    assert large["sqrt-n"]["buffer"]["ram_bits"] == 2**24


ASSUMPTIONS = [
    ("FLOWS=1", "bdp", True),
    ("FLOWS=1 CC=cubic", "bdp", False),
    ("FLOWS=1 CC=cubic", "one-flow", True),
    ("FLOWS=1 CC=cubic RATE=1mbit", "one-flow", False),  # the rule asks for fewer than twenty packets
    ("FLOWS=2 RATE=2mbit", "theorem-6", False),
    ("FLOWS=1 CC=bbr RATE=1mbit", "one-flow", None),  # BBR paces, so it needs no twenty packets for bursts
    ("FLOWS=501 WINDOW=64kB", "sqrt-n", False),  # BDP/n is 1622 packets, above WINDOW
    ("FLOWS=50", "sqrt-n", False),
    ("FLOWS=501", "sqrt-n", None),  # windows may be uniform or not
    ("FLOWS=501 CC=bbr", "sqrt-n", False),
    ("FLOWS=1000000", "sqrt-n", False),  # windows of less than two packets
    ("FLOWS=500000", "theorem-6", False),
    ("FLOWS=200000 DELTA=4", "theorem-6", None),  # windows may be 1 packet or larger
    ("RATE=1gbit RTT=10ms FLOWS=800", "tcp-equation", False),  # nearly all packets would be lost
    ("FLOW_SIZES=14p:1,2000p:1", "short-flows", False),
    ("LOAD=0.5 CC=bbr", "md1", False),  # a buffer of 2 packets loses 10 %
    ("LOAD=0.9 CC=bbr", "md1", None),  # CC matters to long flows only; whether arrivals are Poisson is open
    ("LOAD=0.5 INPUT=1tbit CC=bbr", "rho-b", False),
    ("WINDOW=64kB", "theorem-1", None),
    ("CC=bbr", "theorem-6", False),
    ("WINDOW=1MB", "theorem-1", False),  # congested by the windows alone
    ("UTIL=1", "gaussian", False),
    ("LOSING=100", "theorem-6", None),  # n^2 / BDP = 123 flows may lose, and sqrt(n) = 100 more: LOSING counts these
    ("LOSING=101", "theorem-6", False),
    ("LOSING=101", "equation-3", None),
]


def test_assumptions__hold_or_not_or_are_open(advice):
    wrong = []
    for words, key, holds in ASSUMPTIONS:
        row = by_key(advice(*words.split()))[key]
        if row["holds"] is not holds or not row["conditions"]:
            wrong.append((words, key, row["holds"], row["conditions"]))
    assert wrong == []


def test_rules_that_need_a_word__are_named_without_it(advice):
    document = advice("UTIL=1")
    gaussian_row = by_key(document)["gaussian"]
    assert (gaussian_row["buffer"], gaussian_row["memory"]) == (None, "none")  # a buffer without end
    for word, key in (
        ("LOSING=3", "equation-3"), ("WINDOW=64KiB", "theorem-1"), ("LOAD=50%", "md1"),
        ("FLOW_SIZES=14p", "short-flows"),
    ):  # fmt: skip
        assert key not in by_key(document)
        assert any(word.partition("=")[0] in text for text in document["not_asked"])
        assert key in by_key(advice(word))


def test_table__names_every_rule_with_its_source(capsys, tmp_path):
    words = ["CC=bbr", "LOAD=0.5", "FLOW_SIZES=14p", "LOSING=3", "WINDOW=64kB", f"EVIDENCE={tmp_path}", "ADVISE=full"]
    assert [main(["advise", *with_link(words), f"INPUT={into}"]) for into in ("1tbit", "1gbit")] == [0, 0]
    table = capsys.readouterr().out
    assert [rule.key for rule in rules.RULES if rule.name not in table or rule.source not in table] == []
    assert all(said in table for said in ("1.25 GB", "10 Gbit", "not measured yet"))


def test_extremes__have_an_answer(advice):
    for words in (
        "RATE=1kbit RTT=1ns FLOWS=1 MTU=65535",
        "RATE=1000tbit RTT=1000s FLOWS=1000000000000 MTU=46",
        "FLOWS=2 UTIL=0.999999999999 RISK=0.000000000000001 LOAD=0.999999 FLOW_SIZES=1000000000p",
        "LOAD=0.9999999999999999 RISK=0.9999999999999999 FLOW_SIZES=14p INPUT=1tbit",
        "LOAD=0.000001 FLOW_SIZES=1p WINDOW=1b INPUT=1kbit",
    ):
        for cc in ("reno", "scalable", "bbr"):
            buffers = [rule["buffer"] for rule in advice(*words.split(), f"CC={cc}")["rules"]]
            assert all(buffer is None or buffer["packets"] >= 0 for buffer in buffers), (words, cc)


def test_mistakes__get_one_line_each_and_no_advice(capsys):
    """Mistakes in single words are reported at once, then a mistake in the combination of words."""
    for words in (
        "RATE=1 RTT=10gbit FLOWS=2.5 UTIL=101% DELTA=0.5 LOAD=0.999999999999999999 FLOW_SIZES=14p:x WINDOW=0p NOPE=1 x",
        "RATE=0gbit RTT= UTIL=nan LOAD=1 RISK=0.999999999999999999 FLOW_SIZES=2.5p CC=\x1b[31m",
        "FLOW_SIZES=pareto:80kB",
        "PACKAGE=1kB",
        "EVIDENCE=/nowhere",
        "ADVISE=all JSON=yes",
        "RTT=1ns MEASURE=1",
        "MTU=100 MEASURE=1",
        "LOAD=0.5 MEASURE=1",
        "JSON=1 MEASURE=1",
        "RTT=2ms RTT=1ms",
        "FLOWS=unknown MEASURE=1",
        "BUF=5p INPUT=1gbit FLOW_SIZES=14p",
    ):
        assert main(["advise", *with_link(words.split())]) == 1
        output = capsys.readouterr()
        words = words.removesuffix(" INPUT=1gbit FLOW_SIZES=14p")
        keys = [word.partition("=")[0] for word in words.removesuffix(" MEASURE=1").removesuffix(" RTT=1ms").split()]
        said = sorted(
            re.split(r"[= ]", line.removeprefix("error: ").lstrip("'"))[0] for line in output.err.splitlines()
        )
        assert (said, output.out, output.err.isprintable()) == (sorted(keys), "", False), output.err


def test_link_that_nobody_named__is_asked_for(capsys):
    for words, missing in (
        ([], "RATE RTT FLOWS"), (["RATE=1gbit", "RTT=10ms"], "FLOWS"), (["FLOWS=7", "RTT=1ms"], "RATE"),
        (["RTT=1ms", "INPUT=1gbit", "FLOW_SIZES=14p"], "RATE"),  # of transfers, not of long flows
        (["RATE=1gbit", "RTT=1ms", "INPUT=x", "FLOW_SIZES=14p"], "INPUT=x"),
    ):  # fmt: skip
        assert main(["advise", *words]) == 1
        output = capsys.readouterr()
        said = [line.split()[1] for line in output.err.splitlines()]
        assert (said, output.out) == (missing.split(), ""), words


def test_unknown_number_of_flows__is_answered_for_several(capsys):
    for text in ("unknown", "unknown number"):
        assert main(["advise", "RATE=1gbit", "RTT=20ms", f"FLOWS={text}", "BUF=1ms", "JSON=1"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["link"]["flows"] is None
        highs = {int(flows): each["high"] for flows, each in document["least_packets"]["by_flows"].items()}
        assert list(highs) == [1, 10, 100, 1000]  # fewer than the BDP has packets
        assert document["start_packets"] == math.ceil(max(highs.values()))
        assert set(document["buffer_gives"]) == {"1", "10", "100", "1000"}


def test_answer__follows_the_utilization_that_is_asked(capsys):
    starts = []
    for util in ("0.5", "0.9", "0.98", "0.99", "0.999"):
        assert main(["advise", "RATE=100gbit", "RTT=60ms", "FLOWS=20000", f"UTIL={util}", "JSON=1"]) == 0
        starts.append(json.loads(capsys.readouterr().out)["start_packets"])
    assert starts == sorted(starts)
    assert len(set(starts)) >= 4, starts


def test_buffer__is_answered_with_what_it_gives(capsys):
    words = ["advise", "RATE=10gbit", "RTT=40ms", "FLOWS=500"]
    assert main([*words, "BUF=0.02bdp"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("BUF=650p (or ")
    assert all(word in said[0] for word in ("in the mean", "1 % of windows of ten RTTs", "99th percentile", "lost"))
    assert said[1].startswith("Start with ")
    gives = {}
    for buf in ("100p", "3000p"):
        assert main([*words, f"BUF={buf}", "JSON=1"]) == 0
        gives[buf] = json.loads(capsys.readouterr().out)["buffer_gives"]["500"]
    assert gives["100p"]["utilization_mean"]["high"] < gives["3000p"]["utilization_mean"]["high"]
    assert gives["100p"]["loss"]["value"] > gives["3000p"]["loss"]["value"]
    assert gives["3000p"]["delay_p99_s"]["high"] <= 3000 * 1538 * 8 / 1e10


def test_reader__may_stop_reading():
    words = [sys.executable, "-m", "bufferscope", "advise", *LINK]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(words, cwd=CHECKOUT, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")


def test_memory__has_the_second_papers_classes_and_sizes():
    assert memory.memory_class(10e6 / 8) == "on-chip SRAM"  # abstract: 10 Mbits
    assert memory.memory_class(10e6 / 8 + 1) == "package"
    assert memory.memory_class(2**28 / 8) == "package"  # 1.3: 256 Mbits
    assert memory.memory_class(2**28 / 8 + 1) == "off-chip"
    assert memory.memory_class(100, memory.MemoryLimits(50, 99)) == "off-chip"
    # Figure 15, columns Pkts and RAM
    rows = {64: 20, 129: 21, 258: 22, 387: 23, 46: 20, 91: 21, 182: 22, 273: 22, 37: 19, 74: 20, 148: 21, 222: 22}
    assert {packets: memory.ram_bits(packets * 1500) for packets in rows} == {p: 2**bits for p, bits in rows.items()}


def test_five_lines__give_a_buffer_that_can_be_pasted_in_every_unit(capsys, tmp_path):
    """The buffer has as many packets for an experiment, too: both have the same BDP and bytes of a packet."""
    host = Host(("cubic", "reno"), netem=True, clock="virtual")
    for words in (
        "RATE=10gbit RTT=40ms FLOWS=500", "RATE=200mbit RTT=10ms FLOWS=3", "RATE=10gbit RTT=1.2ms MTU=9000 FLOWS=1",
    ):  # fmt: skip
        assert main(["advise", *words.split(), f"EVIDENCE={tmp_path}"]) == 0
        said = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in said] == ["Start", "Least", "Confidence:", "Rules:", "Check"]
        found = re.match(r"Start with BUF=(\d+)p \(or (\d+)b, or ([0-9.]+[a-z]+)\): when full, it adds", said[0])
        assert found
        packets, size, time = found.groups()
        given = dict(pair.lower().split("=") for pair in words.split())
        link = parameters.read(given).link
        for buffer in (f"{packets}p", f"{size}b", time):
            spec = resolve(given | {"rtt": "10ms", "flows": "1", "buf": buffer}, host)
            assert (spec.buffer_packets, spec.frame_bytes) == (int(packets), link.bytes(1))
        spec = resolve(given | {"flows": "1"}, host)
        assert spec.bdp_packets == round(link.bdp)


def test_start__passes_over_a_rule_that_our_runs_contradict():
    question = parameters.read({"rate": "100mbit", "rtt": "20ms", "flows": "1"})
    link = question.link
    values: dict[str, Any] = {
        "cc": "cubic", "flows": 1, "rate_bps": 10**8, "rtt_ns": 2 * 10**7, "mtu_bytes": 1500, "buffer_packets": 70.0,
        "utilization_mean": 0.95, "utilization_p01": 0.9, "nonempty": 0.8, "delta": 2.0, "flows_losing": 1.0,
    }  # fmt: skip
    free = brief.start(link, [])
    assert (free.advice.rule.key, free.packets, free.refuted) == ("one-flow", 68, [])
    kept = brief.start(link, [EvidenceRun(**values), EvidenceRun(**values | {"buffer_packets": 72.0})])
    assert (kept.advice.rule.key, kept.packets) == ("bdp", 163)
    assert kept.refuted == ["0 of 2 runs kept what one flow, UTIL promises"]
    good = values | {"utilization_p01": 0.999}
    assert brief.start(link, [EvidenceRun(**good)] * 3).packets == 68
    elsewhere = EvidenceRun(**good | {"rate_bps": 10**7, "buffer_packets": 7.0})
    for runs, said in (
        ([EvidenceRun(**good)] * 3, "high: 3 of 3"),
        ([elsewhere], "low: 1 of 1 runs with this rule's buffer kept its promise, but on other links"),
    ):
        answer = brief.answer(question, Evidence(runs, 0, [], []))
        assert said in "".join(brief.lines(answer, "Check"))


# Transfers: advise with INPUT and FLOW_SIZES, and where the five lines' numbers come from -----------------------------


DOCS = CHECKOUT / "docs/results"
LIKE_FIGURE_13 = ("RATE=50mbit", "RTT=60573596ns", "INPUT=500mbit", "FLOW_SIZES=pareto:80kB:1.5")


@pytest.fixture
def advise(capsys):
    """A function that returns the lines of advise."""

    def ask(*words):
        assert main(["advise", *words]) == 0
        return capsys.readouterr().out.splitlines()

    return ask


def test_link_of_published_runs__gets_their_own_buffers(advise):
    small, large = (best for best in ratio.read(DOCS) if best.figure == "13")
    said = advise(*LIKE_FIGURE_13)
    assert "is 0.1: loss falls as a power of the buffer: more always helps" in said[0]
    assert said[1].startswith(
        f"Small transfers: start with BUF={small.buffer:.0f}p (or 151400b, or 24.608ms); our runs"
    )
    assert f"within 5 % from {small.low:.0f}p to {small.high:.0f}p; 55p by equation 3." in said[1]
    assert f"(above 1 MB: 0.44 % of your transfers, 14 % of all packets): {large.buffer:.0f}p or more" in said[2]
    assert f"within 5 % from {large.low:.0f}p on; 206p by equation 7." in said[2]
    assert said[3].startswith("Confidence: medium: rests on prasad2007, figure 13, 3 runs a point (50mbit, BDP 246p, ")
    for word in ("INPUT=10gbit", "FLOW_SIZES=14p"):  # one word alone does not ask about transfers
        assert advise(word, "RATE=1gbit", "RTT=9ms", "FLOWS=9")[0].startswith("Start with BUF=")


def test_larger_link__gets_buffers_carried_over_and_low_confidence(advise):
    said = advise("RATE=800mbit", "RTT=60573596ns", "INPUT=8gbit", "FLOW_SIZES=fixed:30p")  # 16 times the BDP
    assert said[1].startswith("Small transfers: start with BUF=400p ")  # 4 x 100
    assert "carried over with the square root of the BDP" in said[1]
    assert "(above 1 MB: 0 % of your transfers, 0 % of all packets): 24000p or more" in said[2]  # 16 x 1500
    assert said[3].startswith("Confidence: low: ")
    assert said[3].endswith("your link: capacity ratio the same, BDP x 16, rate x 16, sizes fixed:30p.")
    # On a link faster than its inputs, the buffer of small transfers is a number of packets whatever the BDP.
    said = advise("RATE=1gbit", "RTT=60ms", "INPUT=100mbit", "FLOW_SIZES=pareto:80kB:1.5")
    assert "is 10: loss falls exponentially with the buffer" in said[0]
    assert said[1].startswith("Small transfers: start with BUF=63p ")
    assert "carried over" not in said[1] + said[2]


def test_without_published_runs__only_the_papers_rules_speak(advise, capsys, tmp_path):
    said = advise(*LIKE_FIGURE_13, f"EVIDENCE={tmp_path}")
    assert "by the paper, loss falls as a power of the buffer; no published run is at hand" in said[0]
    assert said[1].startswith("Small transfers: BUF=55p ")
    assert said[3].startswith("Confidence: low: ")
    # A damaged copy of the published runs is not the same as none.
    shutil.copytree(DOCS / "prasad2007-runs", tmp_path / "prasad2007-runs")
    (tmp_path / "prasad2007").mkdir()
    for name in ("figure_13", "figure_14"):
        shutil.copy(DOCS / f"prasad2007/{name}.csv", tmp_path / "prasad2007")
    assert main(["advise", *LIKE_FIGURE_13, f"EVIDENCE={tmp_path}"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {tmp_path}/prasad2007/table_1.csv: ")


def test_forms__are_those_that_the_published_table_accepts():
    forms = loss_forms.read(DOCS)
    assert [loss_forms.nearest(forms, gamma).form for gamma in (0.1, 0.8, 2, 3, 5, 10)] == ["PL"] * 4 + ["EX"] * 2
    assert {form.gamma: form.form for form in forms if form.exponential_sizes} == {0.8: ""}
    assert loss_forms.nearest(forms, 0.1).evidence == "3 of 4 rows of Table 1 accept it"
    # A distribution of sizes has its mean in equally likely parts.
    link = parameters.read({"flow_sizes": "exponential:150kB", "rate": "1gbit", "rtt": "9ms", "flows": "1"}).link
    mean = sum(packets * weight for packets, weight in link.flow_packets) / parameters.PARTS
    assert mean == pytest.approx(100.5, rel=0.01)  # the last packet is half full
