# SPDX-License-Identifier: MIT
"""The output of `make advise`: the papers' own examples, assumptions, memory, and one line for each mistake."""

import json
import math
import os
import re
import signal
import subprocess
import sys
from typing import Any

import pytest

from analysis.advise import brief, memory, parameters, rules
from analysis.advise.evidence import Evidence, EvidenceRun
from analysis.advise.link import Link
from analysis.theory import many_flows
from bufferscope.__main__ import main
from experiments.host import CHECKOUT, Host
from experiments.resolve import resolve
from lib import units
from lib.errors import SpecError


@pytest.fixture
def advice(capsys, tmp_path):
    """A function that returns advise's JSON document for `words`, without any runs; for Reno unless CC= is given."""

    def ask(*words):
        cc = () if any(word.startswith("CC=") for word in words) else ("CC=reno",)
        assert main(["advise", *words, *cc, f"EVIDENCE={tmp_path}", "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return ask


def by_key(document):
    return {rule["key"]: rule for rule in document["rules"]}


def test_section_7_1__comes_out(advice):
    # Spang et al.: 100 ms x 100 Gb/s, 10,000 Reno flows. A single flow needs a buffer of 10 Gbit. Theorem 5 needs 100
    # Mbit. "An instantaneous utilization higher than 99%" needs a few tens of packets.
    document = advice("RATE=100gbit", "RTT=100ms", "FLOWS=10000", "CC=reno", "UTIL=0.99")
    assert document["link"]["bdp_bits"] == 10**10
    advice_by_key = by_key(document)
    assert advice_by_key["bdp"]["buffer"]["wire_bits"] == pytest.approx(10e9)
    assert advice_by_key["bdp"]["memory"] == "off-chip"
    assert advice_by_key["bdp"]["holds"] is False
    for key in ("sqrt-n", "theorem-6"):
        assert advice_by_key[key]["buffer"]["wire_bits"] == pytest.approx(100e6)
        assert advice_by_key[key]["buffer"]["time_s"] == pytest.approx(1e-3)
        assert advice_by_key[key]["memory"] == "package"
    assert 10 <= advice_by_key["theorem-7"]["buffer"]["packets"] <= 99
    assert advice_by_key["theorem-7"]["memory"] == "on-chip SRAM"


def test_section_7_1__of_bbr_needs_100_mbit(advice):
    advice_by_key = by_key(advice("CC=bbr", f"RISK={math.exp(-2):.15f}"))
    assert advice_by_key["theorem-8"]["buffer"]["wire_bits"] == pytest.approx(100e6)
    assert advice_by_key["bdp"]["holds"] is False
    assert advice_by_key["one-flow"]["buffer"]["packets"] == pytest.approx((0.99 - 0.75) * 1e10 / 8 / 1538)


def test_second_papers_abstract__comes_out(advice):
    # 10,000 flows on 2.5 Gb/s need 99 % less buffer. 50,000 flows on 10 Gb/s with 250 ms need about 10 Mbit, on chip.
    small = by_key(advice("RATE=2.5gbit", "RTT=250ms", "FLOWS=10000"))
    assert small["sqrt-n"]["buffer"]["wire_bits"] == pytest.approx(0.01 * small["bdp"]["buffer"]["wire_bits"])
    large = by_key(advice("RATE=10gbit", "RTT=250ms", "FLOWS=50000"))
    assert large["bdp"]["buffer"]["wire_bits"] == pytest.approx(2.5e9)
    assert large["sqrt-n"]["buffer"]["wire_bits"] == pytest.approx(11.2e6, rel=0.01)
    assert large["sqrt-n"]["buffer"]["ram_bits"] == 2**24


def test_infocom_papers_example__comes_out(advice):
    # 1000 flows, 10 Gb/s, 100 ms, windows of 64 KB in packets of 1 KB. The BDP is 125,000 packets, the square root rule
    # needs 3950, and Theorem 1 twelve and a constant.
    advice_by_key = by_key(
        advice("RATE=10gbit", "RTT=100ms", "FLOWS=1000", "MTU=962", "WINDOW=64p", "UTIL=90%", "INPUT=10mbit")
    )
    assert advice_by_key["bdp"]["buffer"]["packets"] == pytest.approx(125_000)
    assert advice_by_key["sqrt-n"]["buffer"]["packets"] == pytest.approx(3950, abs=5)
    assert 12 < advice_by_key["theorem-1"]["buffer"]["packets"] < 16
    assert advice_by_key["ex-form"]["holds"] is None


def test_rules_for_short_flows__take_load_and_sizes(advice):
    advice_by_key = by_key(advice("LOAD=0.8", "FLOW_SIZES=14p"))
    assert advice_by_key["short-flows"]["buffer"]["packets"] == pytest.approx(-math.log(0.025) * 12)  # kappa = 1/12
    assert advice_by_key["md1"]["buffer"]["packets"] == pytest.approx(-math.log(0.025) * 2)
    assert advice_by_key["rho-b"]["buffer"]["packets"] == pytest.approx(math.log(0.025) / math.log(0.8))
    same = by_key(advice("FLOW_SIZES=21000b"))  # 14 packets of 1500, at the papers' load
    assert same["short-flows"]["buffer"] == advice_by_key["short-flows"]["buffer"]
    assert by_key(advice("FLOW_SIZES=14p:1,2000p:1"))["short-flows"]["holds"] is False
    assert "short-flows" not in by_key(advice("LOAD=50%"))


def test_capacity_ratio__decides_which_of_prasads_rules_there_is(advice):
    slow_output = by_key(advice("INPUT=1tbit", "FLOW_SIZES=30p"))
    assert slow_output["l-model"]["buffer"]["packets"] == pytest.approx(0.8333 * 1e10 / 8 / 1538, rel=1e-3)
    assert {"s-model"} <= set(slow_output)
    assert "ex-form" not in slow_output
    fast_output = by_key(advice("INPUT=1gbit", "FLOW_SIZES=30p"))
    assert fast_output["ex-form"]["buffer"]["packets"] == 10
    assert not {"s-model", "l-model"} & set(fast_output)


@pytest.mark.parametrize(
    ("words", "key", "holds"),
    [
        (("FLOWS=1",), "bdp", True),
        (("FLOWS=10",), "bdp", None),
        (("FLOWS=1", "CC=cubic"), "bdp", False),
        (("FLOWS=1", "CC=cubic"), "one-flow", True),
        (("FLOWS=1", "CC=cubic", "RATE=1mbit"), "one-flow", False),  # the rule asks for fewer than twenty packets
        (("FLOWS=1", "RATE=1mbit"), "bdp", False),
        (("FLOWS=2", "RATE=2mbit"), "theorem-6", False),
        (("FLOWS=1", "CC=bbr", "RATE=1mbit"), "one-flow", None),  # BBR paces, so it needs no twenty packets for bursts
        (("FLOWS=501", "WINDOW=64kB"), "sqrt-n", False),  # BDP/n is 1622 packets, above WINDOW
        (("FLOWS=50",), "sqrt-n", False),
        (("FLOWS=300",), "sqrt-n", None),
        (("FLOWS=501",), "sqrt-n", None),  # windows may be uniform or not
        (("FLOWS=501", "CC=bbr"), "sqrt-n", False),
        (("FLOWS=1000000",), "sqrt-n", False),  # windows of less than two packets
        (("FLOWS=10000",), "theorem-6", None),
        (("FLOWS=500000",), "theorem-6", False),
        (("FLOWS=200000", "DELTA=4"), "theorem-6", None),  # windows may be 1 packet or larger
        (("RATE=1gbit", "RTT=10ms", "FLOWS=800"), "tcp-equation", False),  # nearly all packets would be lost
        (("LOAD=0.5", "CC=bbr"), "md1", False),  # a buffer of 2 packets loses 10 %
        (("LOAD=0.9", "CC=bbr"), "md1", None),  # CC matters to long flows only; whether arrivals are Poisson is open
        (("LOAD=0.5", "INPUT=1tbit", "CC=bbr"), "rho-b", False),
        (("WINDOW=64kB", "CC=bbr"), "theorem-1", False),
        (("WINDOW=64kB",), "theorem-1", None),
        (("CC=bbr",), "theorem-6", False),
        (("WINDOW=1MB",), "theorem-1", False),  # congested by the windows alone
        (("UTIL=1",), "gaussian", False),
        (("UTIL=1", "WINDOW=64kB"), "theorem-1", False),
    ],
)
def test_assumptions__hold_or_not_or_are_open(advice, words, key, holds):
    row = by_key(advice(*words))[key]
    assert row["holds"] is holds
    assert row["conditions"]


def test_buffer_without_end__is_null_and_needs_no_memory(advice):
    gaussian_row = by_key(advice("UTIL=1"))["gaussian"]
    assert (gaussian_row["buffer"], gaussian_row["memory"]) == (None, "none")
    full = by_key(advice("UTIL=100%", "DELTA=2"))
    assert full["theorem-7"]["buffer"] == pytest.approx(full["theorem-6"]["buffer"])


def test_losing__brings_equation_3(advice):
    document = advice("LOSING=1")
    assert by_key(document)["equation-3"]["buffer"]["wire_bits"] == pytest.approx(1e10 / 10_000)
    assert not any("LOSING" in text for text in document["not_asked"])
    assert any("LOSING" in text for text in advice()["not_asked"])


@pytest.mark.parametrize(("losing", "theorem_6"), [(99, None), (100, None), (101, False)])
def test_losing__decides_whether_few_enough_flows_lose_for_theorem_6(advice, losing, theorem_6):
    # n^2 / BDP = 123 flows may lose, and sqrt(n) = 100 more. LOSING counts those above 123. Fairness stays open.
    advice_by_key = by_key(advice(f"LOSING={losing}"))
    assert advice_by_key["theorem-6"]["holds"] is theorem_6
    assert advice_by_key["equation-3"]["holds"] is None
    texts = {key: [c for c in advice_by_key[key]["conditions"] if "see a loss" in c["text"]] for key in advice_by_key}
    assert texts["theorem-6"] == [{"text": "at most 223 of 10000 flows see a loss in one RTT", "holds": losing <= 100}]
    assert texts["equation-3"][0]["text"].startswith(f"at most {123 + losing} of 10000")
    assert texts["equation-3"][0]["holds"] is True


def test_without_runs__no_rule_is_said_to_be_supported(advice):
    for rule in advice()["rules"]:
        if rule["measured"] is not None:
            assert rule["measured"]["verdict"] == "not measured yet"
            assert rule["measured"]["counted"] == 0


def test_table__names_every_rule_with_its_source_and_assumptions(capsys, tmp_path):
    words = ["CC=bbr", "LOAD=0.5", "FLOW_SIZES=14p", "LOSING=3", "WINDOW=64kB", f"EVIDENCE={tmp_path}"]
    wide = ""
    for into in ("1tbit", "1gbit"):
        assert main(["advise", *words, f"INPUT={into}", "ADVISE=full"]) == 0
        wide += capsys.readouterr().out
    for rule in rules.RULES:
        assert rule.name in wide
        assert rule.source in wide
    assert "1.25 GB" in wide
    assert "10 Gbit" in wide
    assert "not measured yet" in wide
    assert (
        max(
            len(line)
            for part in wide.split("\n\n")
            for line in part.splitlines()
            if not line.startswith(("Regime", "Small", "Large", "Conf", "Long flows"))
        )
        <= 120
    )


@pytest.mark.parametrize(
    "words",
    [
        ("RATE=1kbit", "RTT=1ns", "FLOWS=1", "MTU=65535"),
        ("RATE=1000tbit", "RTT=1000s", "FLOWS=1000000000000", "MTU=46"),
        ("FLOWS=1000000000000", "UTIL=0.001", "DELTA=1000000"),
        ("FLOWS=2", "UTIL=0.999999999999", "RISK=0.000000000000001", "LOAD=0.999999", "FLOW_SIZES=1000000000p"),
        ("LOAD=0.9999999999999999", "RISK=0.9999999999999999", "FLOW_SIZES=14p", "INPUT=1tbit"),
        ("LOAD=0.9999999999999999", "RISK=0.000000000000000001", "FLOW_SIZES=14p", "INPUT=1gbit"),
        ("LOAD=0.000001", "FLOW_SIZES=1p", "WINDOW=1b", "INPUT=1kbit"),
        ("RATE=1kbit", "FLOWS=1000", "UTIL=1", "CC=bbr"),
    ],
)
@pytest.mark.parametrize("cc", ["reno", "scalable"])
def test_extremes__have_an_answer(advice, words, cc):
    document = advice(*words, *(() if any(word.startswith("CC=") for word in words) else (f"CC={cc}",)))
    for rule in document["rules"]:
        if rule["buffer"] is not None:
            assert rule["buffer"]["packets"] >= 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("RATE=1",), "RATE=1 is a number without a unit; allowed: bit, kbit, mbit, gbit, tbit"),
        (("RATE=0gbit",), "RATE=0gbit is out of bounds; allowed: 1kbit to 1000tbit"),
        (("RTT=10gbit",), "RTT=10gbit has a unit of rate (gbit); allowed: ns, us, ms, s"),
        (("FLOWS=0",), "FLOWS=0 is out of bounds; allowed: 1 to 1000000000000"),
        (("FLOWS=2.5",), "FLOWS=2.5 is not a whole number"),
        (("CC=vegas",), "CC=vegas has no rule in the papers; allowed: reno, cubic, scalable, bbr"),
        (("UTIL=0",), "UTIL=0 is out of bounds; allowed: 0.001 to 1, or percent as in 99%"),
        (("UTIL=101%",), "UTIL=101% is out of bounds"),
        (("UTIL=nan",), "UTIL=nan is not a decimal number"),
        (("DELTA=0.5",), "DELTA=0.5 is out of bounds; allowed: 1 to 1e+06"),
        (("LOAD=1",), "LOAD=1 is out of bounds; allowed: above 0 to below 1"),
        (
            ("LOAD=0.999999999999999999",),
            "LOAD=0.999999999999999999 cannot be distinguished from 1; allowed: above 0 to below 1",
        ),
        (
            ("RISK=0.999999999999999999", "LOAD=0.5"),
            "RISK=0.999999999999999999 cannot be distinguished from 1; allowed: above",
        ),
        (
            ("LOAD=99.9999999999999999%",),
            "LOAD=99.9999999999999999% cannot be distinguished from 1; allowed: above 0 to below 1",
        ),
        (("FLOW_SIZES=14",), "FLOW_SIZES=14 is a number without a unit; allowed: p as in 166p; b, kb, mb, gb"),
        (("FLOW_SIZES=14p:x",), "FLOW_SIZES=14p:x cannot be read at '14p:x'; allowed: sizes in packets or bytes"),
        (("FLOW_SIZES=0p",), "FLOW_SIZES=0p has a size or frequency of 0 at '0p'"),
        (("FLOW_SIZES=2.5p",), "FLOW_SIZES=2.5p is not a whole number of p"),
        (("WINDOW=0p",), "WINDOW=0p is zero; allowed: above zero"),
        (("FLOW=1",), "FLOW is not a parameter of advise; did you mean FLOWS?"),
        (("SPEC=x",), "SPEC is not a parameter of advise; allowed: RATE, RTT"),
        (("PACKAGE=1kB",), "PACKAGE=1kB is less than SRAM; allowed: as much or more"),
        (("EVIDENCE=/nowhere",), "EVIDENCE=/nowhere is not a directory; allowed: one with runs or tables"),
        (("ADVISE=all",), "ADVISE=all is not known; allowed: brief, full"),
        (("RESULTS=x",), "RESULTS=x has no meaning here; allowed: with MEASURE=1"),
        (("MEASURE=1", "RTT=1ns"), "RTT=1ns cannot be measured; allowed with MEASURE=1: 100us to 10s"),
        (("MEASURE=1", "MTU=100"), "MTU=100 cannot be measured; allowed with MEASURE=1: 576 to 9000"),
        (("MEASURE=1", "LOAD=0.5"), "LOAD=0.5 is not measured: the search has only long flows"),
        (("MEASURE=1", "JSON=1"), "JSON=1 cannot show a measurement; allowed: JSON=1 without MEASURE=1"),
        (("JSON=yes",), "JSON=yes is not known; allowed: 0, 1"),
        (("hello",), "hello is not a parameter; write KEY=VALUE or --key VALUE"),
        (("RTT=",), "RTT has no value; give one, or leave the key out"),
        (("RTT=1ms", "RTT=2ms"), "RTT=2ms is given twice; give it once"),
        (("CC=\x1b[31m",), "'CC=\\x1b[31m has no rule in the papers"),
    ],
)
def test_mistakes__get_one_line_and_no_advice(capsys, words, says):
    assert main(["advise", *words]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.splitlines()) == 1
    assert output.err.startswith(f"error: {says}")


def test_mistakes__are_all_reported_at_once(capsys):
    assert main(["advise", "RATE=1", "CC=vegas", "NOPE=1", "x"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 4


def test_parameters__are_explained_with_defaults_that_can_be_given(capsys):
    assert main(["advise-parameters"]) == 0
    said = capsys.readouterr().out
    for key, row in parameters.PARAMETERS.items():
        assert f"{key.upper()} " in said
        if row.default is not None:
            row.read(row.default)
    assert "The environment" in said
    assert parameters.read({}).link == Link(10**11, 10**8, 10_000, "cubic", 0.99)


def test_spellings__of_options_are_those_of_experiments(capsys, tmp_path):
    assert main(["advise", "--rate", "10gbit", "--flow-sizes", "14p", "--evidence", str(tmp_path), "JSON=1"]) == 0
    link = json.loads(capsys.readouterr().out)["link"]
    assert (link["rate_bps"], link["flow_packets"], link["load"]) == (10**10, [[14, 1.0]], 0.8)
    assert main(["advise", "--help"]) == 0
    assert capsys.readouterr().out.startswith("usage:")


@pytest.mark.parametrize("more", [(), ("JSON=1",)])
def test_reader__may_stop_reading(more):
    words = [sys.executable, "-m", "bufferscope", "advise", *more]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(words, cwd=CHECKOUT, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")


def test_make__passes_parameters_without_a_shell(tmp_path):
    (tmp_path / "runs").mkdir()
    base = ["make", "--no-print-directory", "-o", ".venv/ready", "advise", "JSON=1", f"EVIDENCE={tmp_path}/runs"]
    environment = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MFLAGS")}

    def run(*words):
        return subprocess.run(
            [*base, *words], cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False
        )

    done = run("CC=cubic", "FLOWS=7", "UTIL=95%")
    link = json.loads(done.stdout)["link"]
    assert (done.returncode, link["cc"], link["flows"], link["utilization"]) == (0, "cubic", 7, 0.95)
    value = f"a b;touch {tmp_path}/x;`touch {tmp_path}/x`$$(touch {tmp_path}/x)"
    done = run(f"CC={value}")
    assert done.returncode != 0
    assert done.stderr.splitlines()[0].startswith("error: CC=a b;touch")
    assert not (tmp_path / "x").exists()


def test_memory__classes_are_the_second_papers():
    assert memory.memory_class(10e6 / 8) == "on-chip SRAM"  # abstract: 10 Mbits
    assert memory.memory_class(10e6 / 8 + 1) == "package"
    assert memory.memory_class(2**28 / 8) == "package"  # 1.3: 256 Mbits
    assert memory.memory_class(2**28 / 8 + 1) == "off-chip"
    assert memory.memory_class(0.02 * 40e9 * 0.25 / 8) == "package"  # 1.3: 2 % of 250 ms at 40 Gb/s needs no other chip
    assert memory.memory_class(100, memory.MemoryLimits(50, 99)) == "off-chip"


@pytest.mark.parametrize(
    ("packets", "bits"),
    [  # Appenzeller et al., Figure 15, columns Pkts and RAM
        (64, 2**20), (129, 2**21), (258, 2**22), (387, 2**23), (46, 2**20), (91, 2**21), (182, 2**22), (273, 2**22),
        (37, 2**19), (74, 2**20), (148, 2**21), (222, 2**22), (32, 2**19), (128, 2**21), (192, 2**22),
    ],
)  # fmt: skip
def test_memory__ram_sizes_are_those_of_figure_15(packets, bits):
    assert memory.ram_bits(packets * 1500) == bits


def test_memory__overrides_are_in_force(advice):
    document = advice("SRAM=1gb", "PACKAGE=2gb")
    assert by_key(document)["sqrt-n"]["memory"] == "on-chip SRAM"
    assert by_key(document)["bdp"]["memory"] == "package"


def test_theorem_7__asks_for_a_burst_where_theory_asks_for_nothing():
    link = parameters.read({"flows": "10000", "util": "0.99"}).link
    assert many_flows.buffer_for_utilization(link.bdp, 10_000, 1, 0.99) < 1
    advice_by_key = {advice.rule.key: advice for advice in rules.advise(link)}
    assert advice_by_key["theorem-7"].packets == 20
    with pytest.raises(SpecError):
        parameters.read({"util": "2"})


def test_amounts__are_of_whole_packets(capsys, tmp_path):
    words = ["RATE=1kbit", "RTT=1ms", "FLOWS=100", "ADVISE=full", f"EVIDENCE={tmp_path}"]
    assert main(["advise", *words]) == 0
    cells = next(line for line in capsys.readouterr().out.splitlines() if line.lstrip().startswith("3  BDP/sqrt(n)"))
    assert "1.514 kB" in cells  # one packet; the rule asks for a fraction of it
    assert main(["advise", "RATE=1kbit", "RTT=1ms", "FLOWS=100", "JSON=1", f"EVIDENCE={tmp_path}"]) == 0
    buffer = by_key(json.loads(capsys.readouterr().out))["sqrt-n"]["buffer"]
    assert buffer["packets"] < 1e-4
    assert buffer["whole_packets"] == 1


def test_window__brings_the_rule_of_tiny_buffers(advice):
    assert "theorem-1" not in by_key(advice())
    assert any("WINDOW" in text for text in advice()["not_asked"])
    assert by_key(advice("WINDOW=64KiB"))["theorem-1"]["buffer"]["whole_packets"] == 19


@pytest.mark.parametrize("words", [(), ("RATE=10gbit", "RTT=40ms", "FLOWS=500"), ("RATE=200mbit", "RTT=10ms"),
                                   ("RATE=10gbit", "RTT=1.2ms", "MTU=9000", "FLOWS=1", "CC=reno")])  # fmt: skip
def test_five_lines__give_a_buffer_that_can_be_pasted_in_every_unit(words, capsys, tmp_path):
    assert main(["advise", *words, f"EVIDENCE={tmp_path}"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said] == ["Start", "Range:", "Confidence:", "Check", "All"]
    found = re.match(r"Start with BUF=(\d+)p \(or (\d+)b, or ([0-9.]+[a-z]+)\): when full, it adds", said[0])
    assert found
    packets, size, time = found.groups()
    link = parameters.read(dict(pair.lower().split("=") for pair in words)).link
    small = {"rate": units.show(min(link.rate_bps, 10**10), "rate"), "rtt": "10ms", "mtu": str(link.mtu_bytes)}
    host = Host(("cubic", "reno"), netem=True, clock="virtual")
    for given in (f"{packets}p", f"{size}b", time) if link.rate_bps <= 10**10 else (f"{packets}p", f"{size}b"):
        assert resolve({**small, "flows": "1", "buf": given}, host).buffer_packets == int(packets)


def test_header_sizes__are_those_of_experiment(capsys, tmp_path):
    """advise and experiment agree on the BDP and on the bytes of a packet in the buffer."""
    host = Host(("cubic",), netem=True, clock="virtual")
    for mtu in ("1500", "9000", "576"):
        spec = resolve({"rate": "1gbit", "rtt": "20ms", "mtu": mtu, "buf": "1mb"}, host)
        link = parameters.read({"rate": "1gbit", "rtt": "20ms", "mtu": mtu}).link
        assert round(link.bdp) == spec.bdp_packets
        assert link.bytes(1) == spec.frame_bytes
        assert spec.threshold_bytes == 1_000_000
        assert spec.buffer_packets == round(1_000_000 / link.bytes(1))


def runs_of(**values):
    row: dict[str, Any] = {
        "cc": "cubic", "flows": 1, "rate_bps": 10**8, "rtt_ns": 2 * 10**7, "mtu_bytes": 1500, "buffer_packets": 70.0,
        "utilization_mean": 0.95, "utilization_p01": 0.9, "nonempty": 0.8, "delta": 2.0, "flows_losing": 1.0,
    }  # fmt: skip
    return EvidenceRun(**(row | values))


def test_start__passes_over_a_rule_that_our_runs_contradict():
    link = parameters.read({"rate": "100mbit", "rtt": "20ms", "flows": "1"}).link
    free = brief.start(link, [])
    assert (free.advice.rule.key, free.packets, free.refuted) == ("one-flow", 68, [])
    bad = [runs_of(), runs_of(buffer_packets=72.0)]
    kept = brief.start(link, bad)
    assert (kept.advice.rule.key, kept.packets) == ("bdp", 163)
    assert kept.refuted == ["0 of 2 runs kept what one flow, UTIL promises"]
    good = [runs_of(utilization_p01=0.999)] * 3
    assert brief.start(link, good).packets == 68
    assert "high: 3 of 3" in "".join(brief.lines(link, Evidence(good, 0, [], [])))
    elsewhere = [runs_of(utilization_p01=0.999, rate_bps=10**7, buffer_packets=7.0)]
    assert "low: 1 of 1 runs with this rule's buffer kept its promise, but on other links" in "".join(
        brief.lines(link, Evidence(elsewhere, 0, [], []))
    )
