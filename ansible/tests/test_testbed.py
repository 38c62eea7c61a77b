# SPDX-License-Identifier: MIT
"""The hardware ring: the user's own testbed, reached over SSH. Skipped visibly without a testbed."""

from __future__ import annotations

import pytest

from ansible.tests.conftest import ANSIBLE, play

TESTBED = ANSIBLE / "inventories/testbed"


@pytest.mark.hardware
def test_testbed__deployed_twice_changes_nothing() -> None:
    if not TESTBED.is_dir():
        pytest.skip("no testbed: copy ansible/inventories/testbed-tofino.example to testbed beside it, and fill it in")
    for changes_allowed in (True, False):
        played = play("-i", TESTBED, ANSIBLE / "playbooks/deploy.yml")
        assert played.status == 0, played.stdout + played.stderr
        assert changes_allowed or played.changed == 0, played.stdout
