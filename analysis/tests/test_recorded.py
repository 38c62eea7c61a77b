# SPDX-License-Identifier: MIT
"""Replays of recorded repetitions give byte for byte the derived files that earlier versions gave (recordings.py).

If a change is meant to alter these files, refresh them with `python -m analysis.tests.recordings`, and say in the
commit which keys changed, and why.
"""

import json

import pytest

from analysis.tests import recordings


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("recorded")


@pytest.mark.parametrize("kind", [kind for kind in recordings.KINDS if kind != recordings.WHATIF_OF])
def test_recorded_run__gives_the_recorded_bytes(kind, scratch):
    _, files = recordings.replay(kind, scratch)
    assert recordings.differences(kind, files) == []


def test_recorded_run__and_its_what_if_give_the_recorded_bytes(scratch):
    directory, files = recordings.replay(recordings.WHATIF_OF, scratch)
    made = recordings.what_if(directory)
    lines = recordings.differences(recordings.WHATIF_OF, files) + recordings.differences(recordings.WHATIF, made)
    assert lines == []


def test_difference__names_file_and_key():
    text = (recordings.RECORDED / "real/summary.json").read_text()
    summary = json.loads(text)
    was = summary["utilization"]["mean"]
    summary["utilization"]["mean"], summary["drops_by_flow"] = 0.5, [1]
    lines = recordings.differences("real", {"summary.json": json.dumps(summary).encode(), "new.txt": b""})
    assert "real/report.html: is missing" in lines
    assert lines[-4:] == [
        "real/new.txt: is new",
        "real/summary.json: other bytes",
        "real/summary.json: drops_by_flow.0: was 'not there', is 1",
        f"real/summary.json: utilization.mean: was {was!r}, is 0.5",
    ]
