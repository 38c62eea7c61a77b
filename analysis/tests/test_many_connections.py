# SPDX-License-Identifier: MIT
"""More flows than 16 bits can number, from raw files to tables and summary. Each flow has four packets."""

import numpy as np
import polars as pl
import pytest

from analysis.analyse import analyse
from analysis.summary import MAX_FLOWS, summarize
from analysis.tables import write_joined, write_raw_tables
from analysis.tests.join_flow_by_flow import join_flow_by_flow
from analysis.tests.synthesize import write_big

FLOWS, PACKETS = 66_000, 4


@pytest.fixture(scope="module")
def analysis(tmp_path_factory):
    directory = tmp_path_factory.mktemp("many") / "rep-1"
    write_big(directory, PACKETS * FLOWS, PACKETS * FLOWS, FLOWS, active=1000)
    return analyse(directory)


def test_many_connections__have_numbers_of_32_bits_and_their_own_packets(analysis):
    run = analysis.run
    assert len(run.flows) == FLOWS
    assert run.postcards["flow"].dtype == run.tcp["flow"].dtype == np.uint32
    assert np.bincount(analysis.queue["flow"]).tolist() == [PACKETS] * FLOWS
    assert all(run.flows[entry["flow"]] == entry["tuple"] for entry in run.traffic)


def test_many_connections__are_joined_as_one_by_one(analysis):
    last = analysis.queue["flow"] >= FLOWS - 20  # a join of all flows one by one would take minutes
    queue = {name: column[last] for name, column in analysis.queue.items()}
    expected = join_flow_by_flow(analysis.run, queue).segments
    rows = np.flatnonzero(last)
    assert (analysis.segments.seq[rows] == expected.seq).all()
    assert (analysis.segments.ack_row[rows] == expected.ack_row).all()
    assert (analysis.segments.trace_row[rows] == expected.trace_row).all()
    assert (expected.trace_row >= 0).any()


def test_many_connections__have_their_5_tuples_in_the_tables(analysis, tmp_path):
    write_raw_tables(tmp_path, analysis.run)
    write_joined(tmp_path, analysis.run, analysis.queue, analysis.segments, analysis.trace)
    for name in ("postcards", "tcp", "joined"):
        table = pl.read_parquet(tmp_path / f"{name}.parquet")
        assert table.schema["flow"] == pl.UInt32
        number, text = table.select("flow", "five_tuple").row(-1)
        assert text == str(analysis.run.flows[number])
        assert table["five_tuple"].n_unique() == table["flow"].n_unique()


def test_many_connections__are_summed_up_but_not_all_listed(analysis):
    summary = summarize(analysis)
    assert len(summary["flows"]) == MAX_FLOWS
    assert summary["flows_not_listed"] == FLOWS - MAX_FLOWS
    seconds = analysis.window.length_ns / 1e9
    assert summary["goodput_bps"] == pytest.approx(float(analysis.good.bits_per_flow.sum()) / seconds)
    assert {flow["packets"] for flow in summary["flows"]} <= set(range(PACKETS + 1))
