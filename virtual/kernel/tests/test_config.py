# SPDX-License-Identifier: MIT
"""The configuration has all congestion controls of the source, and no required setting is lost."""

from pathlib import Path

import pytest

from virtual.kernel import config
from virtual.kernel.errors import KernelError

KCONFIG = """\
config TCP_CONG_CUBIC
\ttristate "CUBIC TCP"
config TCP_CONG_NEW2
\ttristate "something new"
config TCP_CONG_ADVANCED
\tbool "TCP: advanced congestion control"
config TCP_CONG_CUBIC
\ttristate
config DEFAULT_TCP_CONG
\tstring
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "net/ipv4").mkdir(parents=True)
    (tmp_path / "net/ipv4/Kconfig").write_text(KCONFIG)
    return tmp_path


def test_congestion_controls__are_those_of_the_source(tree: Path) -> None:
    assert config.congestion_controls(tree) == ["TCP_CONG_CUBIC", "TCP_CONG_NEW2"]
    requested = config.fragment(tree)
    assert "CONFIG_TCP_CONG_NEW2=y\n" in requested
    assert requested.count("CONFIG_TCP_CONG_CUBIC=y\n") == 1
    with (tree / "net/ipv4/Kconfig").open("a") as file:
        file.write('config TCP_CONG_HSTCP\n\ttristate "High Speed TCP"\n')
    assert config.offered(tree) == ("cubic", "highspeed", "new2", "reno")


def test_congestion_controls__that_went_elsewhere_are_an_error(tree: Path) -> None:
    (tree / "net/ipv4/Kconfig").write_text("source other\n")
    with pytest.raises(KernelError, match=r"has no TCP_CONG_\* any more"):
        config.congestion_controls(tree)
    (tree / "net/ipv4/Kconfig").unlink()
    with pytest.raises(KernelError, match="reading the congestion controls"):
        config.congestion_controls(tree)


def test_check__names_everything_that_is_lacking_but_what_a_version_does_not_have() -> None:
    config.check("CONFIG_A=y\nCONFIG_B=3\n# CONFIG_X=y in a comment\n", "CONFIG_B=3\nCONFIG_A=y\n", "6.0")
    config.check("CONFIG_BASE_FULL=y\n", "", "6.12")
    with pytest.raises(KernelError, match="CONFIG_B=3, CONFIG_C=y cannot be set"):
        config.check("CONFIG_A=y\nCONFIG_B=3\nCONFIG_C=y\n", "CONFIG_A=y\nCONFIG_B=4\n# CONFIG_C is not set\n", "6.0")
