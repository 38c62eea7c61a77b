# SPDX-License-Identifier: MIT
"""P4 programs of users: a policy of two controls, put into our program (link.py), a whole program, or p4c's JSON.

`read` takes what a user named. Compilations are cached by their content: the sources and the version of the compiler.
`p4src/aqm/build/NAME.json` has our own policies compiled, for machines without p4c; `read` puts them into our program.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from lib import files, regular, units, user_cache
from lib.terminal import located, one_line
from p4src.compile import link, v1model
from p4src.compile.sources import (
    MOST_BYTES,
    CannotCompile,
    digest,
    find_compiler,
    normalise,
    sources,
    without_comments,
    write_changed,
)
from p4src.compile.v1model import COMPILERS, P4C_PAGE

ROOT = Path(__file__).parents[2]
V1MODEL = ROOT / "p4src/v1model"
PROGRAM, ALONE = V1MODEL / "with_policy.p4", V1MODEL / "policy_alone.p4"
BUILD = ROOT / "p4src/build"
OURS = BUILD / "bufferscope.json"
PARTS = (PROGRAM, ALONE)
POLICIES = ROOT / "p4src/aqm"
TEMPLATE = "template"
MOST_ERRORS = 3
# Keys of the JSON; BMv2 ignores all but the first.
META, POLICY, COMPOSED_WITH, ALONE_KEY, SCHEDULER = "__meta__", "policy", "composed_with", "alone", "scheduler"
PLACES = (".arrival_policy.", ".departure_policy.")  # in the names of the tables of a policy
CONTROLS = {
    name: f"control {name}(in policy_input_t seen, inout policy_verdict_t verdict)" for name in ("Arrival", "Departure")
}
# The end of a parameter's name -> its dimension, and base units in one of its units.
UNITS = {"_ns": ("time", 1), "_us": ("time", 1000), "_bytes": ("bytes", 1), "_packets": ("packets", 1),
         "_bps": ("rate", 1)}  # fmt: skip
HOW = "give a policy (docs/your-aqm.md): my_aqm.p4, p4c's my_aqm.json, or one of ours: "
LONGEST_S = 600  # of a compilation
SCHEDULERS = {"strict": 32, "drr": 32, "fq": 1024}  # most queues of each (softswitch/runtime/scheduler.h)
QUANTA = range(64, 1_000_001)  # of a queue, in bytes (softswitch/runtime/scheduler.c)
SCHEDULER_FORM = '@scheduler("drr", QUEUES, QUANTUM, ...), with strict, drr or fq'
_SCHEDULER = re.compile(r"@scheduler\b\s*(\(\s*\"(\w+)\"((?:\s*,\s*\d+)+)\s*\))?")
_ARGUMENTS = r"\(\s*in\s+policy_input_t\s+\w+\s*,\s*inout\s+policy_verdict_t\s+\w+\s*\)"


@dataclass(frozen=True)
class Parameter:
    """An argument of the default action of a table without key in a policy. `tables`: (table, action) of each such
    argument with this name.
    """

    bits: int
    default: int
    tables: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class P4Program:
    """A compiled program. `text` is p4c's JSON, `digest` its SHA-256, `source` the .p4 file if it is known."""

    name: str
    text: str
    source: Path | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def scheduler(self) -> str | None:
        """Of a policy with several queues."""
        found = self.json.get(META, {}).get(SCHEDULER)
        return found and str(found[0])

    @cached_property
    def parameters(self) -> Mapping[str, Parameter] | None:
        """Of a policy; None for a whole program."""
        return parameters(self.json) if is_policy(self.json) else None


def committed() -> list[str]:
    return sorted(path.stem for path in (POLICIES / "build").glob("*.json"))


# Of the shelf's parameters, by program: the least value, and the most or the parameter that is larger. Other parameters
# take what their bits hold.
LIMITS: dict[str, dict[str, tuple[int, int | str]]] = {
    "red": {
        "max_th_packets": (1, 2**24), "min_th_packets": (0, "max_th_packets"), "max_p_permille": (1, 1000),
        "w_q_shift": (1, 16), "packet_time_ns": (1, 10**9),
    },
    "codel": {"interval_ns": (1, 10**9)},
    "fq_codel": {"interval_ns": (1, 10**9)},
    "pie": {"t_update_ns": (1, 10**9), "mean_pktsize_bytes": (1, 65535)},
    "pi2": {"t_update_ns": (1, 10**9), "k": (1, 255)},
    "dualpi2": {"t_update_ns": (1, 10**9), "k": (1, 255), "p_max": (1, 2**32 - 1)},
}  # fmt: skip


def shelf() -> list[str]:
    """Our own AQMs (docs/aqm-shelf.md), which MODE names."""
    return [name for name in committed() if name != TEMPLATE]


def outside(program: P4Program, values: Mapping[str, int]) -> Iterator[str]:
    """What is wrong with the values of a program of the shelf's parameters, as `values` says it."""
    if program.source is None or program.source.parent != POLICIES:
        return
    for name, (least, most) in LIMITS.get(program.name, {}).items():
        value, top = values[name], values[most] - 1 if isinstance(most, str) else most
        if not least <= value <= top:
            known = f", below {most}" if isinstance(most, str) else ""
            yield f"makes {name} {value}; allowed: {least} to {top}{known}"


def read(word: str) -> P4Program:
    """The program that a user named: a committed policy, a .p4 file, or p4c's JSON. Raises CannotCompile."""
    path = regular.expanded(word)
    if word in committed():
        return _committed(word)
    if path.suffix == ".p4":
        program = compile_p4(path)
        check_json(program.text)  # P4C may be the compiler of another architecture
        return program
    if path.suffix != ".json":
        raise CannotCompile(f"is no P4 program; {HOW}{', '.join(committed())}")
    try:
        text = regular.read_bytes(path, MOST_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise CannotCompile(f"cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from None
    content = check_json(text)
    return _composed(path.stem, content) if content.get(META, {}).get(ALONE_KEY) else P4Program(path.stem, text)


def _committed(name: str) -> P4Program:
    """The committed compilation of our policy; compiled again if its sources changed and p4c is here."""
    source = POLICIES / f"{name}.p4"
    content = json.loads((POLICIES / f"build/{name}.json").read_text(encoding="utf-8"))
    is_current = content[META][COMPOSED_WITH] == sources_digest(source)
    return _composed(name, content, source) if is_current else compile_p4(source)


def _composed(name: str, content: Any, source: Path | None = None) -> P4Program:
    """The program of p4c's output for it: a policy alone is put into our program. Raises CannotCompile."""
    if content[META].get(ALONE_KEY):
        of_policy = {key: value for key, value in content[META].items() if key != ALONE_KEY}
        content = link.link(_with_hooks(), content)
        content[META] |= of_policy
    return P4Program(name, json.dumps(content, indent=1) + "\n", source)


def check_json(text: str) -> Any:
    """The content of p4c's BMv2 JSON of a v1model program. Raises CannotCompile if the text is something else."""
    try:
        program = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CannotCompile(f"is not JSON ({error}); give the output of p4c-bm2-ss") from None
    parts = {"header_types", "headers", "pipelines", "actions"}
    if not isinstance(program, dict) or not parts <= program.keys():
        raise CannotCompile("is not a P4 program in JSON; give the output of p4c-bm2-ss")
    try:
        is_v1model = any(header["name"] == "standard_metadata" for header in program["headers"])
        values(parameters(program), {})
        if is_policy(program):
            outdated(program)
            requests(program, 0)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        reason = f"{type(error).__name__}: {one_line(error)}"
        raise CannotCompile(f"is not what p4c-bm2-ss writes ({reason}); compile it again") from None
    if not is_v1model:
        raise CannotCompile("is of another architecture than v1model; compile the program with p4c-bm2-ss for v1model")
    return program


def is_policy(program: Mapping[str, Any]) -> bool:
    """Whether the program is ours with a user's policy; else it is a whole program of the user's."""
    return POLICY in program.get(META, {})


def outdated(program: Mapping[str, Any]) -> bool:
    """Whether a policy was composed with another version of our program."""
    return str(program[META][COMPOSED_WITH]).partition("+")[0] != _ours()


def sources_digest(policy: Path) -> str:
    """Of our program, of the linker, and of the policy with the files that it includes."""
    return f"{_ours()}+{_digest((policy,))}"


@cache
def _ours() -> str:
    return hashlib.sha256(_digest(PARTS).encode() + Path(link.__file__).read_bytes()).hexdigest()[:16]


def _digest(programs: tuple[Path, ...]) -> str:
    """Without comments and places: equal on every machine."""
    names = [f"{digest(each, each.resolve().parent)}\n" for each in programs]
    return hashlib.sha256("".join(names).encode()).hexdigest()[:16]


def compile_p4(path: Path) -> P4Program:
    """Compiles the program in `path`; a policy is composed with our program. Raises CannotCompile with p4c's errors in
    the user's own file.
    """
    return _composed(path.stem, _output(path), path)


def _output(path: Path) -> Any:
    """p4c's output for a program of a user's."""
    try:
        regular.check(path)
        text = "\n".join(without_comments(regular.read_text(each)) for each in sources(path))
    except (OSError, UnicodeDecodeError) as error:
        raise CannotCompile(f"cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from None
    is_whole = re.search(r"\bmain\s*;", text) is not None
    for name, form in CONTROLS.items():
        found = re.search(rf"\bcontrol\s+{name}\s*({_ARGUMENTS})?", text)
        if not is_whole and not (found and found[1]):
            problem = f"has a control {name} with other parameters" if found else f"has no control {name}"
            raise CannotCompile(f"{problem}; it needs: {form}")
    scheduler = _scheduler(text)
    try:
        compiler = find_compiler("P4C", COMPILERS, P4C_PAGE)
    except CannotCompile as error:
        raise CannotCompile(f"needs p4c: {error}; or give p4c's JSON of it, or {', '.join(committed())}") from None
    try:
        return _cached(compiler, path, is_whole, scheduler)
    except OSError as error:
        raise CannotCompile(f"cannot be compiled: {located(error, compiler)}") from None


def _cached(compiler: str, path: Path, is_whole: bool, scheduler: list[str | int] | None) -> Any:
    """p4c's output in the user's cache, made if it is missing. Raises CannotCompile, OSError."""
    made_of = f"whole+{_digest((path,))}" if is_whole else sources_digest(path)
    key = hashlib.sha256(f"{path.name} {made_of} {_version(compiler)}".encode()).hexdigest()
    kept = user_cache.directory("p4") / f"{key[:32]}.json"
    if not kept.exists():
        program = _compile(compiler, path, is_whole)
        if not is_whole:
            program[META] |= {POLICY: path.stem, COMPOSED_WITH: made_of, ALONE_KEY: True, SCHEDULER: scheduler}
        kept.parent.mkdir(parents=True, exist_ok=True)
        files.write_text(kept, json.dumps(program, indent=1) + "\n")
    return json.loads(kept.read_text(encoding="utf-8"))


def _scheduler(text: str) -> list[str | int] | None:
    """Kind, number of queues and quanta of a policy's @scheduler; None: the port has one queue."""
    found = _SCHEDULER.search(text)
    if not found:
        return None
    kind, numbers = found[2], [int(word) for word in (found[3] or "").split(",") if word.strip()]
    fits = kind in SCHEDULERS and 1 <= numbers[0] <= SCHEDULERS[kind] and len(numbers) - 1 <= numbers[0]
    if not fits or not all(quantum in QUANTA for quantum in numbers[1:]):
        most = ", ".join(f"{queues} queues with {name}" for name, queues in SCHEDULERS.items())
        raise CannotCompile(f"has a @scheduler that cannot be read; allowed: {SCHEDULER_FORM}, up to {most}, "
                            f"quanta of {QUANTA[0]} to {QUANTA[-1]} bytes")  # fmt: skip
    return [kind, *numbers]


def write(path: Path, directory: Path) -> list[tuple[Path, bool]]:
    """Compiles a policy of ours into DIR/NAME.json and NAME.sha256; returns (file, whether it changed)."""
    text = json.dumps(_output(path), indent=1) + "\n"
    directory.mkdir(parents=True, exist_ok=True)
    contents = {".json": text, ".sha256": f"{hashlib.sha256(text.encode()).hexdigest()}\n"}
    files_of = [(directory / (path.stem + suffix), content) for suffix, content in contents.items()]
    return [(file, write_changed(file, content)) for file, content in files_of]


def stored(program: P4Program, directory: Path) -> Path:
    """Writes DIRECTORY/NAME-DIGEST.json and .sha256, of which softswitch/Makefile builds a switch. Returns the JSON."""
    path = directory / f"{program.name}-{program.digest[:16]}.json"
    directory.mkdir(parents=True, exist_ok=True)
    write_changed(path.with_suffix(".sha256"), f"{program.digest}\n")
    write_changed(path, program.text)
    return path


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    """Raises CannotCompile if the compiler does not end, OSError if it cannot be started."""
    try:
        return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        raise CannotCompile(f"cannot be compiled: {command[0]} did not end within {LONGEST_S} s") from None


def _version(compiler: str) -> str:
    done = _run(compiler, "--version")
    return " ".join((done.stdout + done.stderr).split())


def _compile(compiler: str, path: Path, is_whole: bool) -> Any:
    with tempfile.TemporaryDirectory() as directory:
        alone, compiled = Path(directory) / path.name, Path(directory) / "program.json"
        alone.write_text(f'#define POLICY_FILE "{path.resolve()}"\n#include "{ALONE}"\n', encoding="utf-8")
        main = path.resolve() if is_whole else alone
        done = _run(compiler, "--Wdisable=unused", "-o", str(compiled), str(main))
        if done.returncode or not compiled.exists():
            raise CannotCompile(f"does not compile: {_errors(done.stderr, path) or done.returncode}")
        return normalise(json.loads(compiled.read_text(encoding="utf-8")), ROOT)


def _with_hooks() -> Any:
    """Our program with the hooks of a policy, compiled again if its sources changed."""
    if v1model.check(PROGRAM, BUILD, ROOT):
        v1model.compile_p4(PROGRAM, BUILD, ROOT, warnings=False)
    program = json.loads((BUILD / f"{PROGRAM.stem}.json").read_text(encoding="utf-8"))
    return program | {"program": "p4src/v1model/bufferscope.p4"}


def _errors(text: str, path: Path) -> str:
    """p4c's errors in one line, those in the user's own file first, with the file's name as the user gave it. Lines
    below an error of types have its cause.
    """
    lines = [line.replace(str(path.resolve()), str(path)) for line in text.splitlines()]
    errors: list[str] = []
    for line, after in itertools.pairwise([*lines, ""]):
        if "---- Actual error:" in line and errors:
            errors[-1] += f": {after.strip()}"
        elif re.search(r"\berror\b", line) and "overlimit" not in line:
            errors.append(line)
    errors.sort(key=lambda error: not error.startswith(str(path)))
    more = f" (and {len(errors) - MOST_ERRORS} more)" if len(errors) > MOST_ERRORS else ""
    return "; ".join(errors[:MOST_ERRORS]) + more


def default_actions(program: Mapping[str, Any], values: Mapping[str, int]) -> dict[tuple[str, str], dict[str, int]]:
    """(table, action) -> arguments, of the default actions that give a policy's parameters these values."""
    actions: dict[tuple[str, str], dict[str, int]] = {}
    for name, known in parameters(program).items():
        for place in known.tables:
            actions.setdefault(place, {})[name] = values.get(name, known.default)
    return actions


def values(
    known: Mapping[str, Parameter], given: Mapping[str, str], of: Mapping[str, int] | None = None
) -> tuple[dict[str, int], list[str]]:
    """The values of all parameters (`of`: without those given; default: the program's), and what is wrong with
    `given`: NAME -> text, as in target=5ms for target_ns.
    """
    result, problems = {name: parameter.default for name, parameter in known.items()} | dict(of or {}), []
    for name, text in given.items():
        found = next((each for each in (name, *(name + end for end in UNITS)) if each in known), None)
        if not found:
            problems.append(f"sets {name}, which is no parameter; allowed: {', '.join(known) or 'none'}")
            continue
        try:
            result[found] = _value(found, known[found].bits, name, text)
        except ValueError as error:
            problems.append(f"sets {name} to {text}, which {error}")
    return result, problems


def _value(name: str, bits: int, given: str, text: str) -> int:
    """The value of parameter `name`, which the user calls `given`. Raises ValueError."""
    dimension, size = next((UNITS[end] for end in UNITS if name.endswith(end)), (None, 1))
    if re.fullmatch(r"[0-9]+|0x[0-9a-fA-F]+", text) and (dimension is None or given == name):
        number = int(text, 16 if text.startswith("0x") else 10)
    elif dimension is None:
        raise ValueError(f"is not a whole number; allowed: 0 to {2**bits - 1}")
    else:
        number = units.nearest(units.parse(text, (dimension,)).amount / size)
    if not 0 <= number < 2**bits:
        raise ValueError(f"does not fit in the {bits} bits of {name}; allowed: 0 to {2**bits - 1}")
    return number


def requests(program: Mapping[str, Any], port: int) -> list[tuple[str | int, ...]]:
    """Requests to the soft switch (docs/control-protocol.md) that give the port a policy's queues and scheduler."""
    kind, queues, *quanta = program[META].get(SCHEDULER) or ("fifo", 1)
    words: list[tuple[str | int, ...]] = []
    if kind != "fifo":
        words.append(("queue", "scheduler", port, kind, "queues", queues))
    if quanta:
        words.append(("queue", "set", port, "all", "quantum", quanta[-1]))
        words += [("queue", "set", port, queue, "quantum", quantum) for queue, quantum in enumerate(quanta[:-1])]
    return words


def parameters(program: Mapping[str, Any]) -> dict[str, Parameter]:
    """Name -> parameter of a policy. Empty for other programs, and for policies without parameters."""
    actions = {action["id"]: action for action in program["actions"]}
    found: dict[str, Parameter] = {}
    for table in (table for pipeline in program["pipelines"] for table in pipeline["tables"]):
        entry = table.get("default_entry")
        if table["key"] or not entry or entry["action_const"] or not any(place in table["name"] for place in PLACES):
            continue
        action = actions[entry["action_id"]]
        for argument, value in zip(action["runtime_data"], entry["action_data"], strict=True):
            name, known = argument["name"], found.get(argument["name"])
            place = (table["name"], action["name"])
            found[name] = Parameter(
                min(argument["bitwidth"], known.bits) if known else argument["bitwidth"],
                known.default if known else int(value, 0),
                (*(known.tables if known else ()), place),
            )
    return found
