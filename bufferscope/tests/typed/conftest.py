# SPDX-License-Identifier: MIT
"""One clean clone for all tests here, deployed once by make."""

import pytest

from bufferscope.tests.typed.clone import Clone, make_clone


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    made = make_clone(tmp_path_factory.mktemp("typed"))
    deployed = made.type("make build/deployed kernel")
    print(f"deploying a clean clone took {deployed.seconds:.0f} s")
    assert deployed.status == 0, deployed.said
    return made
