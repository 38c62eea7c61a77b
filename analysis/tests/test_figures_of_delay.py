# SPDX-License-Identifier: MIT
"""The figures of delay, throughput and depth against window show the run's own numbers, in the user's unit."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from analysis.analyse import analyse
from analysis.derive import derive
from analysis.figures import (
    canvas,
    common,
    depth_against_window,
    queue_and_windows,
    queue_depth_distribution,
    queueing_delay,
    throughput,
    zoom_on_loss,
)
from analysis.tests import simulate


@pytest.fixture(scope="module")
def repetition(tmp_path_factory):
    directory = tmp_path_factory.mktemp("delay") / "rep-1"
    simulate.write_run(directory, simulate.Scenario(flows=3, ccs=("cubic", "reno")))
    derive(directory)
    return directory


@pytest.fixture(scope="module")
def analysed(repetition):
    return analyse(repetition)


@pytest.fixture(scope="module")
def summary(repetition):
    return json.loads((repetition / "summary.json").read_text())


def texts(figure):
    """The texts that a figure draws, each with its box in pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    found = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    ticks = {id(t): ax.bbox for ax in figure.axes for axis in (ax.xaxis, ax.yaxis) for t in axis.get_ticklabels()}
    boxes = [(text, text.get_window_extent(canvas.get_renderer())) for text in found]
    return [(text.get_text(), box) for text, box in boxes if not is_beyond(box, ticks.get(id(text)))]


def is_beyond(box, axes_box):
    """Whether a tick label lies beyond the end of its axis: matplotlib keeps such labels, but does not draw them."""
    if axes_box is None:
        return False
    return (box.y0 + box.y1) / 2 > axes_box.y1 + 1 or (box.x0 + box.x1) / 2 > axes_box.x1 + 1


def test_delay__has_the_percentiles_of_the_summary(analysed, summary):
    data = queueing_delay.prepare(analysed)
    assert list(data["named"] * 1e6) == pytest.approx([summary["queue_delay_ns"][key] for key in ("p50", "p99")])
    assert (np.diff(data["delays"]) >= 0).all()
    assert data["full_ms"] == pytest.approx(20 * 1538 * 8 / 50e6 * 1e3, rel=0.02)


def test_throughput__adds_up_to_the_goodput(analysed, summary):
    data = throughput.prepare(analysed)
    assert data["kinds"] == ["cubic", "reno"]
    each = np.concatenate(list(data["flows"].values()))
    assert each.sum() * 1e6 == pytest.approx(summary["goodput_bps"])
    start = int(data["facts"]["warmup_s"] / data["step_s"]) + 1
    assert data["mbps"][:, start:-1].sum(axis=0).mean() * 1e6 == pytest.approx(summary["goodput_bps"], rel=0.05)


def test_throughput__leaves_out_datagrams(analysed):
    datagrams = [dict(entry, cc=None) if entry["id"] == 1 else entry for entry in analysed.run.traffic]
    data = throughput.prepare(replace(analysed, run=replace(analysed.run, traffic=datagrams)))
    whole = throughput.prepare(analysed)
    left_out = analysed.run.traffic[1]["cc"]
    assert None not in data["kinds"]
    assert sum(map(len, data["flows"].values())) == sum(map(len, whole["flows"].values())) - 1
    for kind in data["kinds"]:
        assert (len(data["flows"][kind]) < len(whole["flows"][kind])) == (kind == left_out)
    throughput.draw(data)


def test_window_and_depth__are_of_the_same_moments(analysed):
    data = depth_against_window.prepare(analysed)
    assert len(data["window"]) == len(data["depth"]) > 100
    assert data["depth"].max() <= 20
    correlation = np.corrcoef(data["window"], data["depth"])[0, 1]
    assert correlation > 0.5  # the queue follows the windows


@pytest.mark.parametrize(
    ("given", "name", "packets"),
    [("1bdp", "BDP", 41), ("20p", "packets", 1), ("30kB", "kB", 1000 / 1514), ("5ms", "ms", 50e6 * 5e-3 / 5 / 12304),
     (None, "packets", 1)],
)  # fmt: skip
def test_unit__is_that_of_the_buffer(given, name, packets):
    spec = {"buffer_given": given, "bdp_packets": 41, "mtu_bytes": 1500, "wire_bytes": 1538, "rate_bps": 50_000_000}
    unit = common.unit_of(spec)
    assert (unit.name, unit.packets) == (name, pytest.approx(packets))


@pytest.mark.parametrize("figure", [queueing_delay, throughput, depth_against_window, queue_depth_distribution])
def test_labels__do_not_collide(analysed, figure):
    data = figure.prepare(analysed)
    if figure is queue_depth_distribution:
        data["percentiles"] = [18, 19]  # close to each other and to the buffer
    boxes = texts(figure.draw(data))
    met = [
        (one, other)
        for at, (one, box) in enumerate(boxes)
        for other, other_box in boxes[at + 1 :]
        if box.overlaps(other_box)
    ]
    assert met == []


def test_drops__stand_above_the_label_of_the_buffer_on_a_phone(analysed):
    data = canvas.for_phone(queue_and_windows.prepare(analysed))
    assert len(data["drops"])
    figure = queue_and_windows.draw(data)
    boxes = dict(texts(figure))
    (label,) = (box for text, box in boxes.items() if text.startswith("buffer "))
    ax = figure.axes[0]
    marks = next(line for line in ax.lines if line.get_marker() == "|")
    height = float(np.asarray(marks.get_ydata(), dtype=float)[0])
    lowest = (
        float(np.asarray(ax.transData.transform([(0.0, height)]))[0, 1]) - marks.get_markersize() / 2 * figure.dpi / 72
    )
    assert lowest >= label.y1


@pytest.mark.parametrize("figure", [queue_and_windows, queue_depth_distribution, depth_against_window, zoom_on_loss])
def test_depths__are_in_the_unit_in_which_the_buffer_was_given(analysed, figure):
    data = figure.prepare(analysed)
    data["facts"]["unit"] = common.AxisUnit("BDP", 41)
    drawn = figure.draw(data)
    labels = [label for ax in drawn.axes for label in (ax.get_xlabel(), ax.get_ylabel())]
    depths = [label for label in labels if "queue" in label and "(" in label]
    assert depths
    assert all("(BDP)" in label for label in depths)
