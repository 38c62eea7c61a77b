# SPDX-License-Identifier: MIT
"""A kernel's congestion controls are queried once for each kernel file; no kernel boots here."""

from pathlib import Path

import pytest

from virtual import offers


def test_congestion_controls__are_asked_once_for_each_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tmp_path / "linux"
    asked: list[Path] = []

    def ask(kernel: Path) -> offers.Offer:
        asked.append(kernel)
        return offers.Offer(("bbr", "reno"), {})

    monkeypatch.setattr(offers, "ask", ask)
    for content in ("first", "first", "second"):
        kernel.write_text(content)
        assert offers.congestion_controls(kernel) == ("bbr", "reno")
    (tmp_path / offers.MEMORY).write_text("{")
    assert offers.congestion_controls(kernel) == ("bbr", "reno")
    assert len(asked) == 3
