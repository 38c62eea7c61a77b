# SPDX-License-Identifier: MIT
"""Wrong command lines are refused, each with one line."""

from __future__ import annotations

import subprocess

import pytest

from .core_driver import BUILD, make

PREFIX = "softswitch: "
HELP = "(softswitch --help lists the options)"
PORT_FORM = "give NUMBER=INTERFACE, the number from 0 to 510, the interface with 1 to 15 characters"


@pytest.fixture(scope="module", autouse=True)
def _build() -> None:
    make("PIPELINE=test", "all")


def start(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BUILD / "softswitch-test", *words], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", f"--control PATH is missing {HELP}"),
        ("--control /tmp/x", f"--port N=INTERFACE is missing {HELP}"),
        ("--port 1=a", f"--control PATH is missing {HELP}"),
        ("--control /tmp/x --port 1", f"--port 1: {PORT_FORM}"),
        ("--control /tmp/x --port 511=a", f"--port 511=a: {PORT_FORM}"),
        ("--control /tmp/x --port -1=a", f"--port -1=a: {PORT_FORM}"),
        ("--control /tmp/x --port 1=", f"--port 1=: {PORT_FORM}"),
        ("--control /tmp/x --port 1=an_interface_name_too_long", f"--port 1=an_interface_name_too_long: {PORT_FORM}"),
        ("--control /tmp/x --port 1=a --port 1=b", "--port 1=b: port or interface given twice"),
        ("--control /tmp/x --port 1=a --port 2=a", "--port 2=a: port or interface given twice"),
        ("--frame-bytes 9k", "--frame-bytes '9k': give a whole number from 256 to 65535"),
        ("--packets 0", "--packets '0': give a whole number from 16 to 16777216"),
        ("--packets 99999999999999999999", "--packets '99999999999999999999': give a whole number from 16 to 16777216"),
        ("--horizon-us -5", "--horizon-us '-5': give a whole number from 0 to 1000000"),
        ("--frame-byte 9000", "--frame-byte: not an option (softswitch --help lists them)"),
        ("--spin=yes", f"--spin: does not take a value {HELP}"),
        ("--packets", f"--packets: its value is missing {HELP}"),
        ("--control /tmp/x --port 1=a stray", "stray: not an option (softswitch --help lists them)"),
    ],
)
def test_options__bad_ones_are_refused_with_one_line(words: str, message: str) -> None:
    done = start(*words.split())
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{PREFIX}{message}\n")


def test_options__help_prints_the_usage() -> None:
    done = start("--help")
    assert done.returncode == 0
    assert done.stdout.startswith("usage: softswitch --control PATH")
