# SPDX-License-Identifier: MIT
"""Unpacks a job's archive from a lab: the files and directories of a run, by their names and up to a bound, and
nothing else. A lab is another machine and this process may be root, so links, devices and foreign paths are refused,
and modes and owners are ignored.
"""

from __future__ import annotations

import os
import re
import shutil
import tarfile
from pathlib import Path

from experiments.spec import congestion
from hosts.traffic.user_program import CLIENT, SERVER, STREAMS
from lib import files
from lib.errors import RunError
from runs import thinned
from runs.names import REPETITION, SWEEP_RUNS

MOST_MEMBERS = 10_000
RAW = "|".join(name.rpartition(".")[2] for name in thinned.RAW)
STEM = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,100}"
ALLOWED = re.compile(
    rf"""job\.log
      | {REPETITION}(/(logs|figures|{congestion.DIRECTORY}))?
      | {REPETITION}/(ABORTED|THINNED|{STEM}\.({RAW}|json|yaml|parquet|html))
      | {REPETITION}/({SERVER}|{CLIENT})\.({"|".join(STREAMS)})
      | {REPETITION}/{congestion.DIRECTORY}/{STEM}\.c
      | {REPETITION}/logs/{STEM}\.(log|json)
      | {REPETITION}/figures/{STEM}\.(png|svg)
    """,
    re.VERBOSE,
)
# Unfinished files of a job that was killed: temporary files, and files of Ansible.
UNFINISHED = re.compile(rf"{REPETITION}/(.*/)?\..*|{REPETITION}/logs/ansible(/.*)?")


def unpack(packed: Path, name: str, into: Path, most_bytes: int) -> None:
    """Unpacks the job `name` into `into`/runs/`name`, which it makes anew. Raises RunError with the problem."""
    prefix = f"{SWEEP_RUNS}/{name}"
    shutil.rmtree(into / prefix, ignore_errors=True)
    if not hasattr(tarfile, "data_filter"):
        raise RunError("this Python unpacks no archive safely: use Python 3.11.4 or newer for sweeps on labs")
    try:
        archive_file = os.fdopen(files.open_regular(packed, os.O_RDONLY), "rb")
        with archive_file, tarfile.open(fileobj=archive_file, mode="r:") as archive:
            total = 0
            for count, member in enumerate(archive, 1):
                total += member.size
                if count > MOST_MEMBERS or total > most_bytes:
                    raise ValueError(f"larger than a run of this experiment can be: {count} files, {total} bytes")
                if is_wanted(member, prefix):
                    archive.extract(member, into, set_attrs=False, filter="data")
    # tarfile raises TypeError for a truncated header
    except (tarfile.TarError, EOFError, OSError, ValueError, TypeError) as error:
        raise RunError(f"{packed} is not what a lab packs: {error}") from None
    if not (into / prefix / REPETITION).is_dir():
        raise RunError(f"{packed} is not what a lab packs: no {prefix}/{REPETITION}")


def is_wanted(member: tarfile.TarInfo, prefix: str) -> bool:
    """True for a file or directory of a run, False for an unfinished file. Raises ValueError for any other member."""
    if not (member.isreg() or member.isdir()):
        raise ValueError(f"{member.name!a} is neither a file nor a directory")
    if member.name == prefix:
        return True
    inside = member.name.removeprefix(f"{prefix}/")
    if inside == member.name or ".." in inside.split("/"):
        raise ValueError(f"{member.name!a} is not in {prefix}")
    if UNFINISHED.fullmatch(inside):
        return False
    if not ALLOWED.fullmatch(inside):
        raise ValueError(f"{member.name!a} is not a file of a run")
    return True
