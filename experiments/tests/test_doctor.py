# SPDX-License-Identifier: MIT
"""What `doctor` says of a machine that lacks things. Its checks are those that refuse runs, which have tests there."""

import os
import platform

import pytest

from experiments.commands import doctor


def test_doctor__names_what_is_missing_and_what_adds_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("P4C", "/nowhere/p4c")
    monkeypatch.setenv("PATH", "/nowhere")
    assert doctor.run() == 1  # neither clock can run an experiment
    said = capsys.readouterr().out
    for line in (
        "virtual time                    no\n",
        "User-Mode Linux, runs on x86-64, and this processor is aarch64",
        "not root: network namespaces",
        "GNU parallel is missing; it runs a sweep's jobs; install it: apt-get install parallel",
        "ENGINE=slurm needs Slurm's commands; missing: sbatch",
        "/nowhere/p4c ($P4C) is not installed",
    ):
        assert line in said


def test_doctor__is_content_with_one_clock(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor, "_virtual", lambda: ["a reason"])
    monkeypatch.setattr(doctor.missing, "for_real_time", lambda: [])
    monkeypatch.setattr(doctor.missing, "tools", lambda without=(): [])
    assert doctor.run() == 0
    said = capsys.readouterr().out
    assert "virtual time                    no\n                                - a reason\n" in said
    assert "real time                       yes: CLOCK=real\n" in said
