# SPDX-License-Identifier: MIT
"""PID 1 of a test's cell: makes the lab's network in a private /run, says so, and ends with whoever holds its stdin."""

import signal
import subprocess
import sys

from experiments import topology

subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tests", "/run"], check=True)
topology.NETNS.mkdir()
topology.build(mtu_bytes=1500)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whatever detaches itself in here is reaped by the kernel
print("ready", flush=True)
sys.stdin.read()
