# SPDX-License-Identifier: MIT
"""A host's report about itself."""

import json

import pytest

from hosts import facts


def test_facts__of_this_host(capsys: pytest.CaptureFixture[str]) -> None:
    assert facts.main(["--interface", "lo"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["lost_frames"].keys() == said["passed_frames"].keys() == {"lo"}
    assert said["passed_frames"]["lo"].keys() == {"received", "sent"}
    assert said["tcp_memory_pressures"] >= 0
    assert "net.ipv4.tcp_rmem" in said["settings"]["sysctls"]


def test_facts__of_a_missing_interface_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        facts.main(["--interface", "none0"])
    assert "there is no interface 'none0' here" in capsys.readouterr().err
