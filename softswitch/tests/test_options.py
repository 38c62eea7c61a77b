# SPDX-License-Identifier: MIT
"""Wrong command lines are refused, each with one line that names the option."""

import subprocess

from hosts.tests.processes import refused

from .core_driver import BUILD, make

REFUSED = {  # command line -> what its line of error begins with
    "": "--control PATH is missing",
    "--control /tmp/x": "--port N=INTERFACE is missing",
    "--control /tmp/x --port 1": "--port 1:",
    "--control /tmp/x --port 511=a": "--port 511=a:",
    "--control /tmp/x --port 1=": "--port 1=:",
    "--control /tmp/x --port 1=an_interface_name_too_long": "--port 1=an_interface_name_too_long:",
    "--control /tmp/x --port 1=a --port 1=b": "--port 1=b:",
    "--control /tmp/x --port 1=a --port 2=a": "--port 2=a:",
    "--control /tmp/x --port 1=a --tap 1=": "--tap 1=:",
    "--control /tmp/x --port 1=a --tap a=b": "--tap a=b:",
    "--control /tmp/x --port 1=a --tap 1=a --tap 1=b --tap 1=c": "--tap 1=c: at most 2",
    "--frame-bytes 9k": "--frame-bytes '9k':",
    "--packets 0": "--packets '0':",
    "--horizon-us -5": "--horizon-us '-5':",
    "--frame-byte 9000": "--frame-byte:",
    "--spin=yes": "--spin:",
    "--packets": "--packets:",
    "--control /tmp/x --port 1=a stray": "stray:",
}


def test_options__bad_ones_are_refused_with_one_line() -> None:
    make("PIPELINE=test", "all")
    for words, says in REFUSED.items():
        assert refused(BUILD / "softswitch-test", *words.split()).startswith(f"softswitch: {says}"), words
    usage = subprocess.run([BUILD / "softswitch-test", "--help"], capture_output=True, text=True, check=True).stdout
    assert usage.startswith("usage: softswitch --control PATH")
