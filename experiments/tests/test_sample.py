# SPDX-License-Identifier: MIT
"""Reading status lines while programs still write them; percentiles of histograms; progress without a terminal."""

import contextlib
import io
from pathlib import Path

from experiments.progress import RunProgress
from experiments.sample import Sample, last_object, percentile

SAMPLE = Sample(196_800_000.0, 154, 705, 62_978, 0, 33_873, 0, 2785.4)


def test_last_object__ignores_what_is_torn_or_no_object(tmp_path: Path) -> None:
    assert last_object(tmp_path / "log") == {}
    for text, expected in (
        ("", {}), ("ready\n", {}), ('ready\n{"a":1}\n', {"a": 1}), ('{"a":1}\n{"a":2}\n', {"a": 2}),
        ('{"a":1}\n{"a":', {"a": 1}), ('{"a":1}\nnoise\n', {"a": 1}), ("[1]\n", {}), ("\xff\n", {}),
        ('{"a":1}\n' * 5000, {"a": 1}),
    ):  # fmt: skip
        (tmp_path / "log").write_text(text, encoding="latin-1")
        assert last_object(tmp_path / "log") == expected


def test_percentile__is_the_edge_of_the_bucket_that_reaches_it() -> None:
    assert [percentile(histogram, 0.99) for histogram in ([], [(10, 0)], [(10, 99), (20, 1)], [(10, 98), (20, 2)])] == [
        0, 0, 10, 20]  # fmt: skip
    assert percentile([(10, 0), (20, 5)], 0.5) == 20


def test_progress__writes_plain_lines_where_there_is_no_terminal() -> None:
    output = io.StringIO()
    with contextlib.redirect_stdout(output), RunProgress("cubic16", 18.0) as progress:
        progress.phase("making the network")
        progress.last_plain_s -= 10
        progress.sample(SAMPLE)
        progress.sample(SAMPLE)
    assert output.getvalue().splitlines() == [
        "cubic16: making the network (0 of about 18 s)",
        "cubic16: traffic (0 of about 18 s), 196.8 Mb/s, queue 154 packets, 705 drops so far, "
        "postcards 62978 (0 missing), trace 33873 (0 lost), late p99 2785 us",
    ]
