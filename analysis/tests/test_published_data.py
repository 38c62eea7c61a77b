# SPDX-License-Identifier: MIT
"""The published data of Spang et al., read from a tiny artifact of the same format, beside our runs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from analysis.papers.spang2021 import artifact, beside
from analysis.papers.spang2021.beside import Point

DEPTHS = """,experiment_id,num_flows,max_queue_depth_cells,max_queue_depth_packets,algorithm,min_depth,depth_p01,\
depth_p02,depth_p05,depth_p10,depth_p50,depth_p95,depth_p99,formatted_algorithm
0,a,16,15000,133.333333333333,reno,2.0,52.0,55.0,60.0,70.0,111.0,130.0,134.0,Reno
1,b,1,20000,177.777777777778,scalable,2.0,2.0,2.0,4.0,8.0,148.0,170.0,180.0,Scalable
2,c,1,25000,222.222222222222,reno,2.0,20.0,20.0,20.0,20.0,118.0,200.0,209.0,Reno
"""
DELTAS = """,algorithm,num_flows,buff_size,abs_delta_l,abs_delta_l_tail,abs_delta_r,abs_delta_r_tail,ave_delta_l,\
ave_delta_l_tail,ave_delta_r,ave_delta_r_tail,formatted_algorithm,abs_delta_inv
0,Reno,16,134.0,2.0,1.0,4.0,3.5,1.0,1.0,1.0,1.0,Reno,1.0
"""
LOSERS = """,algorithm,action,rounded_timestamp,num_flows,num_dropped_packets,num_packets,num_active_flows,\
num_dropped_flows
0,reno,drop,0.0,16,0,7,2,0
1,reno,drop,5.0,16,9,700,16,2
2,reno,drop,10.0,16,9,700,16,5
3,reno,ecn,10.0,16,9,700,16,16
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "notebooks"
    folder.mkdir()
    for name, text in (("generalized_test", DEPTHS), ("calculated_deltas", DELTAS), ("drops_per_2ms", LOSERS)):
        (folder / f"{name}.csv").write_text(text)
    return tmp_path


def test_reading__of_a_lone_packet_is_an_empty_queue() -> None:
    for packets in range(1, 200):  # the departing one included
        reading = math.ceil(packets * artifact.CELLS_PER_PACKET / artifact.NOTEBOOKS_CELLS)
        assert artifact.depth_of(reading) == packets - 1
    assert artifact.depth_of(0) == 0


def test_threshold__drops_the_first_packet_whose_queue_has_as_many_cells() -> None:
    assert artifact.buffer_of(15_000) == 131  # 132 packets, the departing one included, have 15 048 cells
    assert artifact.buffer_of(114) == 0
    assert artifact.buffer_of(115) == 1


def test_artifact__is_read_as_depths_in_packets(checkout: Path) -> None:
    published = artifact.read(checkout)
    assert published.depths.rows() == [("reno", 16, 131, 50, 108, 131), ("scalable_50", 1, 175, 0, 145, 176)]
    assert published.deltas.rows() == [("reno", 16, 131, 1.0, 3.5)]
    assert published.losers.rows() == [("reno", 16, 3.5)]


def test_artifact__that_is_damaged_is_one_line(checkout: Path) -> None:
    file = checkout / "notebooks/calculated_deltas.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=rf"^{file} is not the published table: .*$"):
        artifact.read(checkout)


def test_point__is_inside_if_the_published_run_may_be_another_of_ours() -> None:
    ours = (100.0, 104.0, 96.0)  # standard deviation 4: half the interval is 4.30 x 4 x sqrt(4/3) + 1 = 20.9
    for published, expected in ((100, True), (120, True), (80, True), (121, False)):
        assert Point("reno", 4, 131, "p50", ours, published).is_inside is expected, published
    assert Point("reno", 4, 131, "p50", (100.0,), 100).is_inside is None
    assert Point("reno", 4, 131, "p50", ours, None).is_inside is None


def test_facts__say_how_near_the_runs_are_and_where_the_least_buffers_lie() -> None:
    points = [
        Point("reno", 4, buffer, which, (depth, depth), published)
        for buffer, which, depth, published in (
            (43, "p01", 0.0, 0), (43, "p50", 20.0, 15), (109, "p01", 1.0, 0), (131, "p01", 9.0, 1),
        )
    ]  # fmt: skip
    data = {
        "points": points, "ccs": ["reno"], "bdp": 100.0, "beside": True,
        "least": {"measured": beside._least(points, "measured"), "published": beside._least(points, "published")},
    }  # fmt: skip
    assert data["least"] == {"measured": {("reno", 4): (43, 109)}, "published": {("reno", 4): (109, 131)}}
    facts: dict[str, Any] = {fact.what: fact for fact in beside.facts(data)}
    assert facts["Reno, 4 percentiles of depth: median distance"].measured.value == pytest.approx(0.03)
    assert facts["Reno, 4 percentiles of depth: share within 0.08 BDP"].measured.value == 1
    assert facts["Reno, 4 percentiles of depth: share inside our runs' spread"].measured.value == 0.5
    bracket = facts["Reno, n = 4: least buffer by the notebook's criterion, of the buffers tried"]
    assert (bracket.paper, bracket.measured.ends) == ("109 to 131 packets", (43, 109))
    assert beside.points(data).rows()[1] == ("reno", 4, 43, "p50", 2, 20.0, 15, False)
