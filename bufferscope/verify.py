# SPDX-License-Identifier: MIT
"""The command `verify`: runs the experiments of a packed run again, and says whether they give the same bytes.

The packed programs are a stranger's, and so are congestion controls, P4 and commands of its experiments. Nothing runs
before the user agrees, and then confined (experiments/machine/confined.py). Afterwards only the digests of the raw
files and the numbers of the summary are read, no link is followed.
"""

from __future__ import annotations

import io
import os
import platform
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

from bufferscope import compare, pack
from bufferscope.unpack import Packed
from experiments.machine import confined
from experiments.run import runner
from lib import regular
from lib.errors import InputError, RunError
from lib.exit_codes import Exit
from lib.keys import field, flag
from lib.terminal import agreed, complain, counted, say
from lib.values import whole_number
from runs import packed, record
from runs.names import ENVIRONMENT
from runs.spec_file import load_spec
from runs.thinned import THINNED

RAN, MADE = "again", "results"
LAST_LINES, MOST_SAID = 5, 8192  # of what a program says: lines, bytes
PACKED, OWN = "packed", "own"


class Asked(Packed):
    with_: str | None = field(
        "packed: run the programs in the file; own: this machine's programs, which may give other numbers (default: "
        "packed if the file has programs)", values=(PACKED, OWN),
    )  # fmt: skip
    runs: int = field("how many runs of a sweep are repeated, evenly chosen", whole_number(1, 10_000), default="3")
    yes: bool = flag("1: run what is packed without asking")
    show: bool = flag("1: check the file, say what would run, and run nothing")


def run(asked: Asked) -> int:
    """Returns the exit status: DONE if every repeated run gave the same bytes, else DOUBTFUL. Raises InputError,
    RunError.
    """
    scratch = tempfile.TemporaryDirectory(prefix="bufferscope-verify-", dir=os.environ.get("TMPDIR", "/var/tmp"))
    with scratch as name, runner.Ending():
        Path(name).chmod(0o755)
        place = Path(name, "packed")
        content = packed.unpack(asked.file, place, asked.most, f"{pack.PROGRAM}/build/")
        about = content.about
        repetitions = [place / each for each in _named(about.get("repetitions"), content)]
        for each in repetitions:
            _check(each)
        has_programs = about.get("programs") == pack.PROGRAM
        what = f"{counted(len(repetitions), 'run')} of {str(about.get('name'))[:100]}"
        say(f"{asked.file}: {what}, whole; every raw file that it has is as recorded")
        chosen = asked.with_ or (PACKED if has_programs else OWN)
        repeated = repetitions[:: max(1, -(-len(repetitions) // asked.runs))]
        if problem := _problem(chosen, repeated, about, has_programs):
            raise RunError(problem)
        whose = "the file's programs" if chosen == PACKED else "this machine's programs"
        say(f"runs again {counted(len(repeated), 'run')} with {whose}, confined: no privileges, network or other files")
        if asked.show:
            return 0
        _agree(asked.yes, chosen)
        if chosen == OWN:
            _place_own(place / "own")
        program = place / (pack.PROGRAM if chosen == PACKED else "own")
        recorded = [_raw_files(each) for each in repeated]  # before a program can change them
        return _compared(repeated, recorded, [_again(each, place, program) for each in repeated], place)


def _raw_files(repetition: Path) -> dict[str, str]:
    """The digests of a run's raw files, as its record has them. Raises RunError."""
    try:
        found = record.read(repetition)
    except (OSError, ValueError) as error:
        raise RunError(f"{repetition.parent.name}: {error}") from None
    if found is None or found.raw is None:
        raise RunError(f"{repetition.parent.name}: has no record of its raw files")
    return {name: digest for name, digest in found.raw.items() if name != ENVIRONMENT}


def _named(paths: object, content: packed.Content) -> list[str]:
    """The repetitions that the packer names, which must be among the files. Raises InputError."""
    if strange := {path.split("/")[0] for path in content.files} - {MADE, pack.PROGRAM}:
        raise InputError(f"the file has {min(strange)!a}, which is neither of a run nor of its programs")
    directories = {str(Path(path).parent) for path in content.files if Path(path).name == ENVIRONMENT}
    in_runs = isinstance(paths, list) and all(isinstance(path, str) and path.startswith(f"{MADE}/") for path in paths)
    if not isinstance(paths, list) or not paths or not in_runs or not directories.issuperset(paths):
        raise InputError("the file does not say which runs it has")
    return sorted(set(paths))


def _check(repetition: Path) -> None:
    """Raises InputError for a run whose files are not those of its record."""
    if problem := record.unrecorded(repetition):
        raise InputError(problem)
    if damage := record.damage(repetition, all_raw=not (repetition / THINNED).exists()):
        raise InputError(f"{repetition.name}: {record.lines(damage)}")


def _problem(chosen: str, repeated: list[Path], about: object, has_programs: bool) -> str:
    """Why the runs cannot be repeated here; '' if they can."""
    if chosen == PACKED:
        if not has_programs:
            return "the file has no programs; allowed: WITH=own, which runs this machine's"
        assert isinstance(about, dict)
        if about.get("processor") != platform.machine():
            return (
                f"its programs are for {str(about.get('processor'))!a}, this machine is {platform.machine()}: WITH=own"
            )
        return ""
    for each in repeated:
        spec = load_spec(each)
        if spec.imported or spec.clock != "virtual" or spec.switch == "ns3" or spec.target != "soft":
            return (
                f"{each.parent.name}: was not made in virtual time by our switch, so nobody repeats it to the byte; "
                "the file is whole, and bufferscope unpack gives its files"
            )
        if spec.congestion_sources or spec.p4:
            return f"{each.parent.name}: has code of its packer's, which only WITH=packed runs, confined"
    return ""


def _agree(yes: bool, chosen: str) -> None:
    """Raises RunError without the user's yes."""
    answer = yes or agreed("Run it?")
    if answer is False:
        raise RunError("nothing was run")
    if answer:
        return
    what = "a stranger's programs" if chosen == PACKED else "a stranger's experiment"
    raise RunError(f"running {what} needs a yes: add YES=1 if you want it; SHOW=1 only checks the file")


def _place_own(place: Path) -> None:
    """Copies this machine's programs as a packed run has them. Raises InputError, RunError."""
    from experiments.lab import virtual as virtual_lab
    from experiments.setup import deploy

    deploy.ensure()
    virtual_lab.prepare()
    for path, source in pack.program(set()):
        target = place / Path(path).relative_to(pack.PROGRAM)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source if isinstance(source, bytes) else source.read_bytes())
        if path.startswith(f"{pack.PROGRAM}/build/") or os.access(source, os.X_OK):
            target.chmod(0o755)


def _again(repetition: Path, place: Path, program: Path) -> Path:
    """Repeats the run with the programs; returns its new repetition. Raises RunError."""
    confined.give(place)
    results = place / RAN / repetition.relative_to(place / MADE)
    words = ["experiment", f"SPEC={repetition}", f"RESULTS={results}", "YES=1"]
    python_path = os.pathsep.join([str(program), *confined.packages()])
    environment = {"PYTHONPATH": python_path, "BUFFERSCOPE_CACHE": str(place / "cache"), "TMPDIR": "/tmp"}
    command = confined.command([sys.executable, "-P", "-m", "bufferscope", *words], place, environment)
    tail = b""  # a program may say without end
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as done:
        assert isinstance(done.stdout, io.BufferedReader)
        try:
            while said := done.stdout.read1(1 << 16):
                tail = (tail + said)[-MOST_SAID:]
        except BaseException:
            done.kill()  # and all that it started, which are in its PID namespace
            raise
    made = [each for run in results.glob("*") if not run.is_symlink() for each in run.glob("rep-*")]
    if done.returncode not in (Exit.DONE, Exit.DOUBTFUL) or len(made) != 1 or not (made[0] / ENVIRONMENT).is_file():
        lines = [line[:300] for line in tail.decode(errors="replace").splitlines() if line.strip()][-LAST_LINES:]
        raise RunError(f"{repetition.parent.name}: could not be run again (status {done.returncode})", *lines)
    for path in results.rglob("*"):
        if not (stat.S_ISREG(path.lstat().st_mode) or stat.S_ISDIR(path.lstat().st_mode) or path.name == "latest"):
            raise RunError(f"{repetition.parent.name}: its programs made {path.name!a}, which is no file")
    return made[0]


def _compared(repeated: list[Path], recorded: list[dict[str, str]], again: list[Path], place: Path) -> int:
    """Prints what is the same, and the numbers that differ. Returns the exit status. Raises RunError."""
    same = 0
    for before, then, now in zip(repeated, recorded, again, strict=True):
        name = str(before.relative_to(place / MADE))
        names = sorted(then.keys() | _raw_files(now).keys())
        try:
            made = {file: record.digest(now / file) for file in names if _is_file(now / file)}
        except (OSError, ValueError) as error:
            raise RunError(f"{name}: {error}") from None
        differing = [file for file in names if file not in then or made.get(file) != then[file]]
        if not differing:
            same += 1
            say(f"{name}: the same bytes in {counted(len(names), 'raw file')}")
            continue
        say(f"{name}: {len(differing)} of {counted(len(names), 'raw file')} differ: {', '.join(differing)}")
        try:
            for line in compare.lines(compare.read(before), compare.read(now)):
                say(f"  {line}")
        except InputError as error:
            complain(f"  no numbers: {error}")
    return Exit.DONE if same == len(repeated) else Exit.DOUBTFUL


def _is_file(path: Path) -> bool:
    try:
        regular.check(path)
    except OSError:
        return False
    return not path.is_symlink()
