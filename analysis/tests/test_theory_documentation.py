# SPDX-License-Identifier: MIT
"""docs/theory.md lists every public function of analysis/theory/ except those of checks.py, and no other function."""

import importlib
import inspect
import pkgutil
import re

from analysis import theory
from bufferscope.__main__ import main
from experiments.host import CHECKOUT

PAPERS = re.compile(r"(?:Spang|Appenzeller|Enachescu|Prasad) et al\.|Prasad, Dovrolis, Thottan 2007")
PLACES = re.compile(
    r"[Ee]quations? \d|[Tt]heorems? \d|[Ll]emma \d|[Tt]able \d|[Ff]igure \d|[Aa]ssumption \d|[Aa]ppendix [A-Z]|"
    r"sections? [\dIV]|\bIV-A\b|(?:paper,|al\.,|its) \d\.\d"
)
OTHER_SOURCES = re.compile(r"Pollaczek-Khinchine|Ramaswami 1988|Cooper 1981|hosts/traffic/schedule\.h")
TEXT = (CHECKOUT / "docs/theory.md").read_text()


def public_functions():
    for module_info in pkgutil.iter_modules(theory.__path__):
        if module_info.name == "checks":
            continue
        module = importlib.import_module(f"analysis.theory.{module_info.name}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and not name.startswith("_"):
                yield f"{module_info.name}.{name}", function


def test_documentation__lists_every_function_once():
    table = TEXT[TEXT.index("## Every function") : TEXT.index("## Numbers in print")]
    listed = re.findall(r"`([a-z0-9_]+\.[a-z0-9_]+)`", table)
    assert len(listed) == len(set(listed))
    assert set(listed) == {name for name, _ in public_functions()}


def test_every_function__documents_its_equation_and_its_refusals():
    for name, function in public_functions():
        assert function.__doc__, name
        assert re.search(r"[=/(]", function.__doc__), name
        module = inspect.getmodule(function)
        assert module, name
        assert "ValueError" in function.__doc__ + (module.__doc__ or ""), name


def test_every_function__names_its_source():
    """A paper and a place in it, or another work. Functions may leave the paper to their module's docstring."""
    for name, function in public_functions():
        text = " ".join((function.__doc__ or "").split())
        if OTHER_SOURCES.search(text):
            continue
        papers = PAPERS.findall(text) or set(PAPERS.findall((inspect.getmodule(function) or function).__doc__ or ""))
        assert papers, name
        assert PAPERS.search(text) or len(papers) == 1, name
        assert PLACES.search(text), name


def test_documentation__example_of_advise_works(capsys):
    command = re.search(r"^    make advise (.*)$", TEXT, re.MULTILINE)
    assert command
    assert main(["advise", *command[1].split()]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for amount in ("BDP 1.25 GB = 10 Gbit on the wire", "12.31 MB 98.45 Mbit 8128p 1 ms", "242.2 kbit 20p 2.461 µs"):
        assert amount in said
