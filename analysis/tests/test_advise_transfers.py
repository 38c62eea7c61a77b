# SPDX-License-Identifier: MIT
"""advise with INPUT and FLOW_SIZES: the five lines about transfers, and where their numbers come from."""

from __future__ import annotations

import shutil

import pytest

from analysis.advise import loss_forms, parameters
from analysis.map import ratio
from bufferscope.__main__ import main
from experiments.machine.host import CHECKOUT

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
    assert [line.split()[0] for line in said] == ["Regime:", "Small", "Large", "Confidence:", "Long"]
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


def test_ratio_near_one__has_the_form_of_these_sizes_and_rests_on_the_testbed(advise):
    said = advise("RATE=1gbit", "RTT=60ms", "INPUT=1.1gbit", "FLOW_SIZES=14p:3,2000p:1")
    assert "loss falls as a power of the buffer: more always helps a little (our runs at 1: Ratios: evidence" in said[0]
    drawn = advise("RATE=1gbit", "RTT=60ms", "INPUT=1.1gbit", "FLOW_SIZES=exponential:80kB")
    assert "a power of the buffer or exponentially is not decided (our runs at 0.8: Figure 10: " in drawn[0]
    assert "within 5 % from 300p to 1300p" in said[1]  # under each of three loads
    assert "no buffer came within 5 % of the best under every load" in said[2]
    assert "figures 4, 5" in said[3]


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
