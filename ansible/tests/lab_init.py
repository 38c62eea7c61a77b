# SPDX-License-Identifier: MIT
"""PID 1 of the tests' cell: mounts a private /run, builds the lab's network, prints `ready`, ends when stdin closes."""

import signal
import subprocess
import sys

from experiments.spec import topology

subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tests", "/run"], check=True)
topology.NETNS.mkdir()
topology.build(topology.Network(1500))
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel then reaps the orphans that PID 1 inherits
print("ready", flush=True)
sys.stdin.read()
