# SPDX-License-Identifier: MIT
"""The table of commands. Each command is a function of a module. The module is imported only when the command runs, or
when --help or completion needs its keys. The module's model Asked has the keys that the command takes (lib/keys.py).
The function takes this model and returns the exit status.
"""

from __future__ import annotations

import importlib
from typing import NamedTuple

from lib.keys import Key, Keys, NoKeys, table


class Command(NamedTuple):
    """`first`: keys of the first words; these words may omit their key. `others`: a key that the module does not list
    is refused (`refused`), read by the module itself (`module`: the function takes the words and their errors), or
    ignored in a call by make (`make`), because another goal of make may use it. `starts_programs`: the command starts
    programs that make temporary files.
    """

    name: str
    about: str
    module: str
    example: str = ""  # words after the name
    function: str = "run"
    has_keys: bool = True
    first: tuple[str, ...] = ()
    others: str = "refused"
    starts_programs: bool = False
    of_checkout: bool = False  # changes the checkout's files, which an installed copy never does

    def model(self) -> type[Keys]:
        """Imports the module."""
        model: type[Keys] = importlib.import_module(self.module).Asked if self.has_keys else NoKeys
        return model

    def read_keys(self) -> dict[str, Key]:
        """Imports the module."""
        return table(self.model())


_ALL = (
    Command(
        "experiment", "run one experiment", "experiments.commands.experiment", "CC=cubic FLOWS=16 BUF=0.5bdp",
        others="module", starts_programs=True,
    ),
    Command(
        "show", "print in SI units what an experiment would run, and run nothing", "experiments.commands.experiment",
        "CC=reno FLOWS=1 BUF=250us", "show", others="module",
    ),
    Command(
        "sweep", "run a sweep, or resume it", "experiments.sweep.command",
        "experiments/specs/spang2021/twenty-packets.yaml SMOKE=1", first=("spec",), others="module",
        starts_programs=True,
    ),
    Command(
        "figures", "run the missing part of a paper's sweeps, and draw its figures", "experiments.commands.figures",
        "spang2021 FIGURE=5a SMOKE=1", "run_command", first=("paper",), starts_programs=True,
    ),
    Command(
        "results", "write a page of all runs and sweeps: results/index.html", "analysis.report.results_page", "results",
        first=("results",),
    ),
    Command("runs", "list the analysed runs, newest last", "bufferscope.run_list", "cc=cubic flows=16 --valid"),
    Command(
        "rm", "remove runs and sweeps, or their large files, after saying what that frees", "bufferscope.remove",
        "OLDER_THAN=30d KEEP=summary", first=("run",),
    ),
    Command(
        "replay", "derive every file of a run from its raw files again, or pass its arrivals through another queue",
        "experiments.commands.replay", "results/latest BUF=0.25bdp", first=("run",),
    ),
    Command(
        "export", "write a run in another format", "analysis.exporting.command",
        "results/latest/rep-1 FORMAT=pcapng OUTPUT=cards.pcapng", first=("run",),
    ),
    Command(
        "import", "convert another tool's captures into a run", "analysis.importing.command",
        "FROM=trace-directory OUTPUT=results/theirs RATE=10gbit RTT=1.2ms", first=("from",), starts_programs=True,
    ),
    Command(
        "sweep-report", "make the page of a sweep", "analysis.report.sweep_report.command",
        "results/spang2021-twenty-packets-smoke", first=("sweep",),
    ),
    Command(
        "advise", "recommend a buffer for a link, from rules, stored runs or a measurement",
        "experiments.commands.advise", "RATE=100gbit RTT=100ms FLOWS=10000 CC=reno UTIL=0.99", starts_programs=True,
    ),
    Command(
        "compare", "show the numbers of runs and sweeps side by side, and draw their queues", "bufferscope.compare",
        "results/a results/b,results/c", first=("run", "with"),
    ),
    Command(
        "pack", "put a run or a sweep into one file, with the program that made it", "bufferscope.pack",
        "results/latest OUTPUT=mine.packed", first=("run",), starts_programs=True,
    ),
    Command(
        "verify", "run a packed run again, confined, and say whether it gives the same bytes", "bufferscope.verify",
        "mine.packed", first=("file",), starts_programs=True,
    ),
    Command(
        "unpack", "unpack a packed run, and run nothing of it", "bufferscope.unpack", "mine.packed", first=("file",),
    ),
    Command(
        "cc", "list the congestion controls of each clock, and their parameters", "experiments.commands.algorithms",
        "", "show", has_keys=False, starts_programs=True,
    ),
    Command(
        "leftovers", "list what killed commands left, and remove it with REMOVE=1", "experiments.machine.leftovers",
    ),
    Command("doctor", "say what this machine can do, and what adds the rest", "experiments.commands.doctor",
            has_keys=False, starts_programs=True),
    Command("parameters", "explain every parameter of experiment", "bufferscope.help_text", "", "parameters",
            has_keys=False),
    Command(
        "advise-parameters", "explain every parameter of advise", "bufferscope.help_text", "", "advise_parameters",
        has_keys=False,
    ),
    Command(
        "deploy", "install packages and programs on a target's machines or labs", "experiments.setup.deploy",
        "TARGET=bmv2", "deploy", others="module", starts_programs=True,
    ),
    Command(
        "kernel", "build the kernel of the virtual-time lab", "virtual.kernel.command",
        "KERNEL_PACKAGE=linux-source-6.12", others="make", starts_programs=True,
    ),
    Command(
        "p4", "compile the P4 program again, and list the changed files; or check a program of your own",
        "experiments.commands.p4", "check my_aqm.p4", first=("do", "p4"), starts_programs=True,
    ),
    Command(
        "stf", "play p4c's STF programs for v1model, compiled by your p4c", "softswitch.stf.command",
        "p4c/testdata/p4_16_samples", first=("programs",), starts_programs=True,
    ),
    Command(
        "bench", "measure the documentation's claims", "bench.command", "switch,targets SHORT=1", first=("parts",),
        starts_programs=True, of_checkout=True,
    ),
    Command(
        "image", "make an OCI archive with everything that a run in virtual time needs, for podman and Docker",
        "bufferscope.image", first=("output",), starts_programs=True, of_checkout=True,
    ),
    Command(
        "completion", "print a shell's completion of commands, keys and values", "bufferscope.completion", "bash",
        first=("shell",),
    ),
    Command(
        "job", "run one job of a sweep, as the sweep itself starts it", "experiments.sweep.job",
        "SWEEP=results/spang2021-twenty-packets-smoke NAME=reno-n8-b20-be46b5a93b-r1", "command", starts_programs=True,
    ),
)  # fmt: skip
COMMANDS = {command.name: command for command in _ALL}
