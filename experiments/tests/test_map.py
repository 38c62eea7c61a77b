# SPDX-License-Identifier: MIT
"""The published map agrees with the committed tables, and PAPER=all refuses every parameter that it would ignore."""

import pytest

from analysis.map import build, points
from bufferscope.__main__ import main
from experiments.commands import map_of_papers
from lib.errors import InputError

REFRESH = f"the run tables or the code changed; write the map again: {build.REFRESH}"
DOCS = map_of_papers.DOCS


@pytest.fixture(scope="module")
def least_buffers():
    return points.read(DOCS, map_of_papers.spreads_ns())


def test_map__has_its_table_and_its_figure_in_the_page(least_buffers):
    path = DOCS / build.PAGE
    assert build.with_table(path, least_buffers) == path.read_text(encoding="utf-8"), REFRESH
    assert f"]({build.NAME}.svg)" in path.read_text(encoding="utf-8")


def test_map__is_drawn_into_results(capsys, tmp_path):
    assert main(["figures", "PAPER=all", f"RESULTS={tmp_path}"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"the map of all papers -> {tmp_path}/figures/map/map.svg"
    assert (tmp_path / "figures/map/map.csv").read_bytes() == (DOCS / build.NUMBERS).read_bytes(), REFRESH


def test_words__that_the_map_would_ignore_get_one_line_each(capsys):
    assert main(["figures", "PAPER=all", "DRAW=only", "FIGURE=3"]) == 1
    problem = "has no meaning with PAPER=all, which only draws published tables; leave it out"
    assert capsys.readouterr().err.splitlines() == [f"error: DRAW=only {problem}", f"error: FIGURE=3 {problem}"]


def test_map__without_a_place_or_tables_is_one_line(tmp_path):
    path = tmp_path / build.PAGE
    path.write_text("no map")
    with pytest.raises(InputError):
        build.with_table(path, [])
    with pytest.raises(InputError):
        points.read(tmp_path, {})
