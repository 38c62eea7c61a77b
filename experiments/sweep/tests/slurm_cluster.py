# SPDX-License-Identifier: MIT
"""A Slurm cluster of two nodes on this machine, from Debian's packages: munged, slurmctld and a slurmd for each node,
with configuration, keys and state in a directory of the test. Each node has one processor.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from hosts.tests.patience import wait_until
from hosts.tests.processes import free_port, state

NODES = ("one", "two")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol")
START_S = 30.0
CONFIGURATION = """\
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={home}/munge.sock,cred_expire=3
CredType=cred/munge
SlurmctldPort={controller}
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool-%n
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd-%n.pid
SlurmctldLogFile={home}/slurmctld.log
SlurmdLogFile={home}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdTimeout=5
KillWait=2
MaxArraySize={most}
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=one NodeHostname=localhost NodeAddr=127.0.0.1 Port={one} CPUs=1 RealMemory=11000 State=UNKNOWN
NodeName=two NodeHostname=localhost NodeAddr=127.0.0.1 Port={two} CPUs=1 RealMemory=11000 State=UNKNOWN
PartitionName=all Nodes=one,two Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str:
    """The programs of Slurm that are not installed; '' if none is missing."""
    return ", ".join(name for name in PROGRAMS if shutil.which(name) is None)


class Cluster:
    """A running cluster. Slurm's commands need `environment`."""

    def __init__(self, home: Path, most: int) -> None:
        self.home = home
        ports = {name: free_port() for name in ("controller", *NODES)}
        (home / "slurm.conf").write_text(CONFIGURATION.format(home=home, most=most, **ports))
        (home / "state").mkdir()
        key = home / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self.environment = os.environ | {"SLURM_CONF": str(home / "slurm.conf")}

    def start(self) -> None:
        self._run(
            "munged", "--force", f"--key-file={self.home}/munge.key", f"--socket={self.home}/munge.sock",
            f"--pid-file={self.home}/munged.pid", f"--log-file={self.home}/munged.log", f"--seed-file={self.home}/seed",
        )  # fmt: skip
        self._run("slurmctld")
        for node in NODES:
            self.start_node(node)
        deadline = time.monotonic() + START_S
        while self._run("sinfo", "--noheader", "--Node", "--format=%N %t").split() != ["one", "idle", "two", "idle"]:
            assert time.monotonic() < deadline, (self.home / "slurmctld.log").read_text()[-2000:]
            time.sleep(0.2)

    def start_node(self, node: str) -> None:
        self._run("slurmd", "-N", node)

    def jobs_on(self, node: str) -> list[str]:
        """Numbers of the jobs that run on a node."""
        said = self._run("squeue", "--noheader", "--array", f"--nodelist={node}", "--states=RUNNING", "--format=%A")
        return said.split()

    def kill_node(self, node: str) -> list[str]:
        """SIGKILL to the node's slurmd and all of its jobs, as if the machine lost power. Returns the jobs."""
        os.kill(int((self.home / f"slurmd-{node}.pid").read_text()), signal.SIGKILL)
        jobs = self.jobs_on(node)
        for job in jobs:
            found = subprocess.run(
                ["pgrep", "-f", rf"slurmstepd: \[{job}\."], capture_output=True, text=True, check=False
            )
            for step in found.stdout.split():
                _kill_tree(int(step))
        return jobs

    def stop(self) -> None:
        self._run("scancel", "--user=root", check=False)
        for name in ("slurmd-one", "slurmd-two", "slurmctld", "munged"):
            with contextlib.suppress(OSError, ValueError):
                pid = int((self.home / f"{name}.pid").read_text())
                os.kill(pid, signal.SIGTERM)
                wait_until(lambda pid=pid: state(pid) == "Z", START_S)  # type: ignore[misc]

    def _run(self, *command: str, check: bool = True) -> str:
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=START_S, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout


@contextlib.contextmanager
def cluster(home: Path, most: int = 1001) -> Iterator[Cluster]:
    """A cluster with MaxArraySize=`most`: the index of an array's task is less than `most`."""
    home.mkdir(mode=0o755)
    made = Cluster(home, most)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def _kill_tree(root: int) -> None:
    """SIGKILL to a process and all its descendants, children first. A parent that survived would clean up."""
    for task in Path(f"/proc/{root}/task").glob("*"):
        with contextlib.suppress(OSError):
            for child in (task / "children").read_text().split():
                _kill_tree(int(child))
    with contextlib.suppress(ProcessLookupError):
        os.kill(root, signal.SIGKILL)
