# SPDX-License-Identifier: MIT
"""A shell's completion, written from the table of commands: a Tab starts no Python."""

from __future__ import annotations

from typing import Any

from bufferscope.commands import COMMANDS
from lib.errors import BadValue, SpecError
from lib.words import PATHS, Key, require

SHELLS = ("bash",)
KEYS = {"shell": Key(f"which shell: {', '.join(SHELLS)}; use it as: source <(bufferscope completion bash)", "", SHELLS)}
_SCRIPT = """\
# bash completion of bufferscope: source <(bufferscope completion bash)
_bufferscope() {{
  local line="${{COMP_LINE:0:COMP_POINT}}" word key command keys values first
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  word="${{words[-1]}}" command="${{words[1]}}" COMPREPLY=()
  if ((${{#words[@]}} <= 2)); then
    COMPREPLY=($(compgen -W "{commands} help --help" -- "$word"))
    return
  fi
  case $command in
{keys}
  esac
  if [[ $word == *=* ]]; then
    key="${{word%%=*}}" word="${{word#*=}}"
  elif [[ ${{words[-2]}} == --* && ${{words[-2]}} != *=* ]]; then
    key="${{words[-2]}}"
  elif [[ $word == --* ]]; then
    keys="${{keys,,}}"
    COMPREPLY=($(compgen -P -- -W "${{keys//_/-}} help make" -- "${{word#--}}"))
    return
  else
    COMPREPLY=($(compgen -S = -W "$keys" -- "${{word^^}}"))
    [[ ${{#COMPREPLY[@]}} -gt 0 ]] && compopt -o nospace && return
    ((${{#words[@]}} == 3)) && key="$first"
  fi
  key="${{key#--}}" key="${{key^^}}"
  case "$command ${{key//-/_}}" in
{values}
    *) return ;;
  esac
  COMPREPLY=($(compgen -W "$values" -- "$word"))
}}
complete -F _bufferscope bufferscope"""


def run(given: dict[str, Any], errors: list[BadValue]) -> int:
    """Prints the script. Returns the exit status. Raises SpecError."""
    allowed = f"allowed: {', '.join(SHELLS)}"
    require(given, errors, shell=allowed)
    if given.get("shell", SHELLS[0]) not in SHELLS:
        errors.append(BadValue("SHELL", given["shell"], f"is not known; {allowed}"))
    if errors:
        raise SpecError(errors)
    tables = {name: command.read_keys() for name, command in COMMANDS.items()}
    keys = [
        f'    {name}) first="{COMMANDS[name].first.upper()}" keys="{" ".join(table).upper()}" ;;'
        for name, table in tables.items()
        if table
    ]
    values = []
    for name, table in tables.items():
        values += [
            f'    "{name} {key.upper()}") values="{" ".join(row.values)}" ;;'
            for key, row in table.items()
            if row.values and row.values != PATHS
        ]
        paths = "|".join(f'"{name} {key.upper()}"' for key, row in table.items() if row.values == PATHS)
        values += [f'    {paths}) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;'] * bool(paths)
    print(_SCRIPT.format(commands=" ".join(COMMANDS), keys="\n".join(keys), values="\n".join(values)))
    return 0
