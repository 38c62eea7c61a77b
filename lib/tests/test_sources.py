# SPDX-License-Identifier: MIT
"""The list of the program's own files."""

from lib import sources
from lib.places import CHECKOUT


def test_everything__without_git_is_what_git_tracks_and_more() -> None:
    """An unpacked archive has no git; a wheel and a packed run made of it would lack what is not listed."""
    tracked, walked = sources.everything(), dict(sources._walked(CHECKOUT, ""))
    assert sorted(tracked.keys() - walked.keys()) == []
    assert not [name for name in walked if name.startswith(("build/", "results/", ".venv/")) or "__pycache__" in name]
