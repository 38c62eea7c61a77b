# SPDX-License-Identifier: MIT
"""Prints a shell's completion script, generated from the table of commands, so that a Tab starts no Python."""

from __future__ import annotations

from collections.abc import Iterator

from bufferscope.commands import COMMANDS
from lib.keys import Keys, field
from lib.words import PATHS

_BASH = """\
# bash completion of bufferscope: source <(bufferscope completion bash)
_bufferscope() {{
  local line="${{COMP_LINE:0:COMP_POINT}}" word key command keys values first=()
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
    key="${{first[${{#words[@]}} - 3]}}"
  fi
  key="${{key#--}}" key="${{key^^}}"
  case "$command ${{key//-/_}}" in
{values}
    *) return ;;
  esac
  COMPREPLY=($(compgen -W "$values" -- "$word"))
}}
complete -F _bufferscope bufferscope"""
_ZSH = """\
# zsh completion of bufferscope: source <(bufferscope completion zsh)
(($+functions[compdef])) || {{ autoload -Uz compinit && compinit; }}
_bufferscope() {{
  local word=$words[CURRENT] command=$words[2] key
  local -a keys values first
  if ((CURRENT == 2)); then
    compadd -- {commands} help --help
    return
  fi
  case $command in
{keys}
  esac
  if [[ $word == *=* ]]; then
    key=${{word%%=*}}
    compset -P '*='
  elif [[ $words[CURRENT-1] == --* && $words[CURRENT-1] != *=* ]]; then
    key=$words[CURRENT-1]
  elif [[ $word == --* ]]; then
    compadd -- --${{^${{(L)keys}}//_/-}} --help --make
    return
  else
    compadd -S = -M 'm:{{a-z}}={{A-Z}}' -- $keys && return
    key=$first[CURRENT-2]
  fi
  key=${{(U)${{key#--}}//-/_}}
  case "$command $key" in
{values}
    *) return ;;
  esac
  compadd -- $values
}}
compdef _bufferscope bufferscope"""
SCRIPTS = {"bash": _BASH, "zsh": _ZSH}
FILES = {"bash": 'compopt -o filenames; COMPREPLY=($(compgen -f -- "$word"))', "zsh": "_files"}


class Asked(Keys):
    shell: str = field(
        f"the shell: {', '.join(SCRIPTS)}; use it as: source <(bufferscope completion bash)", default=None,
        values=tuple(SCRIPTS),
    )  # fmt: skip


def run(asked: Asked) -> int:
    """Prints the script. Returns the exit status."""
    keys, values = "\n".join(_keys(asked.shell)), "\n".join(_values(asked.shell))
    print(SCRIPTS[asked.shell].format(commands=" ".join(COMMANDS), keys=keys, values=values))
    return 0


def _list(shell: str, words: tuple[str, ...]) -> str:
    """Words as a value of the script: in bash a text, which the script splits, in zsh an array."""
    text = " ".join(words)
    return f'"{text}"' if shell == "bash" else f"({text})"


def _keys(shell: str) -> Iterator[str]:
    """A branch for each command: its keys, and those of its first words."""
    for name, command in COMMANDS.items():
        if table := command.read_keys():
            keys, first = (tuple(key.upper() for key in part) for part in (table, command.first))
            yield f"    {name}) first=({' '.join(first)}) keys={_list(shell, keys)} ;;"


def _values(shell: str) -> Iterator[str]:
    """A branch for each key that has values, and one branch per command for the keys that name files."""
    for name, command in COMMANDS.items():
        table = command.read_keys()
        for key, row in table.items():
            if row.values and row.values != PATHS:
                yield f'    "{name} {key.upper()}") values={_list(shell, row.values)} ;;'
        if paths := "|".join(f'"{name} {key.upper()}"' for key, row in table.items() if row.values == PATHS):
            yield f"    {paths}) {FILES[shell]}; return ;;"
