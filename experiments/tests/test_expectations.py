# SPDX-License-Identifier: MIT
"""EXPECT: what is read, what holds, fails or is undecided, and how programs learn it."""

import re
import xml.etree.ElementTree as ET

import pytest

from experiments.machine.host import Host
from experiments.run.expectations import Expecting, Result, begin, is_decided, is_measured, judge, read, report
from experiments.spec.resolve import resolve
from lib.errors import RunError, SpecError
from lib.exit_codes import Exit
from runs.quantities import QUANTITIES

VIRTUAL = Host(("bbr", "cubic"), netem=True, clock="virtual")


def results(text: str, *values: float, path: tuple[str, str] = ("utilization", "mean")) -> list[Result]:
    summaries = [{path[0]: {path[1]: value}} for value in values]
    return [each.result for each in judge(read(text), {"": summaries})]


def test_read__takes_units_percent_ranges_and_several():
    delay, used, goodput, share = read("delay_p99<20ms, utilization>=98%,goodput > 1.5mbit, share.bbr=0.4..60%")
    assert (delay.most, delay.is_open, used.least, used.is_open) == (20e6, True, 0.98, False)
    assert (goodput.least, share.name, share.least, share.most) == (1.5e6, "share.bbr", 0.4, 0.6)
    assert read("lateness_max<=0.5ms")[0].most == 500  # us, as in the summary


def test_read__takes_every_number_that_a_run_measures():
    for each in filter(is_measured, QUANTITIES):
        assert read(f"{each.name}<1{ {'s': 's', 'b/s': 'bit'}.get(each.unit.base, '') }")


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "utilization",
        "speed<1",
        "delay_p99<20",
        "utilization>=high",
        "loss=0.1",
        "loss=0.2..0.1",
        "loss<nan",
        "loss<0.1..2",
    ],
)
def test_read__refuses(text):
    with pytest.raises(ValueError, match="allowed: "):
        read(text)


def test_one_repetition__decides_by_its_value():
    assert results("utilization>=0.9, utilization<0.9, utilization>0.9", 0.9) == ["holds", "fails", "fails"]


def test_several_repetitions__decide_by_the_interval_of_their_mean():
    text = "utilization>0.5, utilization>0.9, utilization<0.895, utilization=0.8..0.95"
    assert results(text, 0.89, 0.90, 0.91) == ["holds", "undecided", "undecided", "holds"]


def test_a_run__does_not_end_early_by_one_valid_repetition_of_several():
    summaries = [{"utilization": {"mean": value}} for value in (0.89, 0.90, 0.91)]
    assert not is_decided(judge(read("utilization>0.5"), {"": summaries[:1]}))
    assert is_decided(judge(read("utilization>0.5"), {"": summaries}))


def test_without_a_value__nothing_is_decided():
    assert results("jain>0.5", 0.9) == ["undecided"]
    assert results("utilization>0.5") == ["undecided"]


def test_report__has_a_status_and_junit_that_names_what_failed(tmp_path, capsys):
    summaries = {"cc=cubic": [{"utilization": {"mean": 0.5}}], "cc=bbr": [{"utilization": {"mean": 0.9}}]}
    judged = judge(read("utilization>=0.8"), summaries)
    assert report(judged, "name", tmp_path / "junit.xml") == Exit.FAILED
    suite = ET.parse(tmp_path / "junit.xml").getroot()
    assert {name: suite.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "2",
        "failures": "1",
        "errors": "0",
    }
    assert [(case.get("classname"), [child.tag for child in case]) for case in suite] == [
        ("cc=cubic", ["failure"]),
        ("cc=bbr", []),
    ]
    assert "50.00 %" in capsys.readouterr().out
    assert report(judged[1:], "name", None) == Exit.DONE
    assert report(judge(read("jain>0.5"), summaries), "name", None) == Exit.DOUBTFUL


def test_begin__leaves_no_results_of_an_earlier_run_and_refuses_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "junit.xml").write_text("old")
    expect = "jain>0.5"
    begin(Expecting.model_validate({"expect": expect, "junit": tmp_path / "junit.xml"}), [])
    assert not list(tmp_path.iterdir())
    with pytest.raises(RunError, match="JUNIT="):
        begin(Expecting.model_validate({"expect": expect, "junit": tmp_path / "missing/junit.xml"}), [])


def test_begin__refuses_what_no_run_could_decide(tmp_path):
    specs = [resolve({"cc": cc, "flows": "2", "clock": "virtual"}, VIRTUAL) for cc in ("cubic", "cubic:1,bbr:1")]
    begin(Expecting.model_validate({"expect": "share.bbr>0.1, share.cubic<1"}), specs)  # a point of the sweep has it
    for text, junit, problem in (
        (
            "share.typo>0.1",
            None,
            "EXPECT=share.typo>0.1 names an algorithm that no flow has; allowed: share.bbr, share.c",
        ),
        (" ", tmp_path / "junit.xml", "has no results without EXPECT; give EXPECT, too"),
    ):
        with pytest.raises(SpecError, match=re.escape(problem)):
            begin(Expecting.model_validate({"expect": text, "junit": junit}), specs)
    assert not list(tmp_path.iterdir())


def test_read__refuses_a_share_of_a_count_and_a_count_of_a_share():
    for text, kind in (("drops<5%", "a number"), ("utilization<5p", "a share or a ratio"), ("share.bbr<3p", "a share")):
        with pytest.raises(ValueError, match=kind):
            read(text)
    assert read("drops<5")[0].most == read("depth_p99<5p")[0].most == 5
