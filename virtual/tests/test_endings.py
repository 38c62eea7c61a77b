# SPDX-License-Identifier: MIT
"""The explanation why a machine ended or hangs: the cause and the machine's activity, in one plain line."""

import os
import signal
import subprocess
import sys
import time

import pytest

from virtual import endings
from virtual.endings import Silence, last_activity, why_it_ended

TALK = '[    1.000001] bufferscope: {"phase":"making the network"}\n[    2.0] bufferscope: {"end_of":"no phase"}\n'


def test_why_it_ended__is_one_line_of_plain_words() -> None:
    panic = "Kernel panic - not syncing: "
    for status, console, words in (
        (
            1,
            f"{TALK}{panic}x\nmore\n",
            ("status 1 while making the network,", "last lines: Kernel panic - not syncing: x"),
        ),
        (-11, "a\n\nb\n", ("signal 11 (SIGSEGV), before", "its last lines: a / b")),
        (-9, TALK, ("signal 9 (SIGKILL) while making the network", "ran out of memory; it gave no reason")),
        (
            -6,
            f"{TALK}[ 0.0] {panic}Kernel mode signal 7\n",
            ("making the network because this computer has no memory left", "(SIGBUS)", "swapon"),
        ),
        (-7, "x\n", ("ended because this computer has no memory left for it (SIGBUS)",)),
    ):
        said = why_it_ended(status, console)
        assert [word for word in words if word not in said] == [], said
        assert "\n" not in said
    assert last_activity({"sample": {"drops": 1}, "traffic_s": 0.25}) == " at 0.25 virtual s of the traffic"
    assert last_activity({}) == last_activity({"end": 0}) == ""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endings, "HANG_S", 0.3)
    monkeypatch.setattr(endings, "LOOK_S", 0.05)


def reason(program: str, stop: bool = False) -> str:
    with subprocess.Popen([sys.executable, "-c", program], start_new_session=True) as process:
        try:
            silence = Silence(process.pid)
            if stop:
                process.send_signal(signal.SIGSTOP)
            end_s = time.monotonic() + 60
            while time.monotonic() < end_s:
                verdict = silence.too_long()
                if verdict:
                    return verdict
                time.sleep(0.02)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    return "nothing"


def test_silence__of_a_machine_that_computes_is_a_loop(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endings, "HANG_S", 1.5)  # longer than the program may wait for a processor
    assert " s: a program in it polls the clock instead of sleeping" in reason(
        "import os, time\nif os.fork():\n time.sleep(600)\nwhile 1: pass"  # the session's processes count
    )


def test_silence__of_one_that_sleeps_is_no_loop(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endings, "IDLE_SHARE", 0.5)  # the program's start takes some processor time
    monkeypatch.setattr(endings, "HANG_S", 3.0)
    assert "was idle all the time" in reason("import time; time.sleep(60)")


def test_silence__of_one_that_was_stopped_says_so(quick: None) -> None:
    assert "was stopped (SIGSTOP, or a debugger) and not continued" in reason("while 1: pass", stop=True)


def test_silence__is_not_counted_while_others_have_the_processor(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    silence = Silence(os.getpid())
    readings = iter([7.0, 7.1])
    monkeypatch.setattr(endings, "cpu_s", lambda pid: next(readings))
    time.sleep(0.1)
    assert silence.too_long() is None
    time.sleep(0.5)  # it gets 0.1 s of processor time in 0.5 s or more
    assert silence.too_long() is None
    assert not [*readings]
