# SPDX-License-Identifier: MIT
"""Figures for print: a PDF as wide as asked for with embedded fonts, and the numbers that it draws."""

from __future__ import annotations

import csv
import importlib
import re

import numpy as np
import pytest

from analysis.figures import drawing, printed
from analysis.figures.printed import Printing
from bufferscope.__main__ import main


@pytest.fixture(autouse=True)
def _not_for_print():
    yield
    printed.begin(Printing())


@pytest.mark.parametrize(("width", "inches"), [("84mm", 84 / 25.4), ("7in", 7.0)])
def test_figure__is_as_wide_as_asked_for_with_its_fonts_and_numbers(known_runs, tmp_path, width, inches):
    printed.begin(Printing.model_validate({"figures": "pdf", "width": width}))
    drawing.warm_up()
    a = known_runs("two_flows").analysis
    data = {}
    for name in ("queue_and_windows", "throughput"):
        figure = importlib.import_module(f"analysis.figures.{name}")
        data[name] = figure.prepare(a)
        drawing.save_both(figure.draw, data[name], tmp_path, name)
        pdf = (tmp_path / f"{name}.pdf").read_bytes()
        (box,) = re.findall(rb"/MediaBox \[ 0 0 ([0-9.]+) [0-9.]+ \]", pdf)
        assert float(box) == pytest.approx(72 * inches, abs=0.1)
        assert b"/FontFile2" in pdf  # TrueType, embedded
        assert b"/Type3" not in pdf
        assert b"/Subtype /Image" not in pdf  # no part is made of pixels
    with (tmp_path / "queue_and_windows-drawn.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["panel"] for row in rows} == {"1", "2", "3"}
    first = next(row["series"] for row in rows if row["y label"].startswith("queue depth"))
    line = [(float(row["x"]), float(row["y"])) for row in rows if row["panel"] == "1" and row["series"] == first]
    assert np.allclose(np.array(line).T, data["queue_and_windows"]["depth"], rtol=1e-8)


def test_figures__are_for_print_only_if_asked_for(known_runs, tmp_path):
    drawing.warm_up()
    figure = importlib.import_module("analysis.figures.queue_depth_distribution")
    drawing.save_both(figure.draw, figure.prepare(known_runs("two_flows").analysis), tmp_path, "a")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-phone.svg", "a.png", "a.svg"]
    assert printed.words() == []
    printed.begin(Printing.model_validate({"figures": "pdf"}))
    assert printed.words() == ["FIGURES=pdf", "WIDTH=3.300in"]


def test_width__that_is_none_is_refused(tmp_path, capsys):
    (tmp_path / "rep-1").mkdir()
    for words, why in (
        (["WIDTH=3in"], "add FIGURES=pdf"), (["FIGURES=pdf", "WIDTH=3"], "is no width"),
        (["FIGURES=pdf", "WIDTH=1mm"], "2in to 20in"), (["FIGURES=eps"], "allowed: pdf"),
    ):  # fmt: skip
        assert main(["replay", str(tmp_path), *words]) == 1
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert why in err
