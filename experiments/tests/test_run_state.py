# SPDX-License-Identifier: MIT
"""Reading status lines while programs still write them; percentiles of histograms."""

from pathlib import Path

from experiments.lab.run_state import last_object, percentile


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
