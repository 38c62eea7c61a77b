# SPDX-License-Identifier: MIT
"""What our pages share: one layout, style sheet and script, embedded in each, so that a page is one file.

A page opens offline and fetches nothing: its own Content-Security-Policy forbids it, and lets only the scripts run that
were put in here (by their digests). Every value is escaped.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from analysis.amounts import count, number, percent, si

HERE = Path(__file__).parent
SHARED = ("zoom.js",)


def render(template: Path, scripts: tuple[str, ...] = (), **values: Any) -> str:
    """The page that `template`, which extends page.html.j2, makes of `values`. `scripts` are files in this directory,
    besides those that all pages have. What UTF-8 cannot write (half a pair of surrogates, which JSON can) is a question
    mark. Raises jinja2.TemplateError if the template asks for what was not given.
    """
    loader = jinja2.Environment(
        loader=jinja2.FileSystemLoader([HERE, template.parent]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    loader.filters.update(count=count, number=number, percent=percent, si=si)
    texts = [(HERE / name).read_text(encoding="utf-8") for name in SHARED + scripts]
    # These are our own files: the only text that is not escaped.
    text = loader.get_template(template.name).render(
        style=Markup((HERE / "style.css").read_text(encoding="utf-8")),
        scripts=[Markup(text) for text in texts],
        policy=_policy(texts),
        **values,
    )
    return text.encode(errors="replace").decode()


def _policy(scripts: list[str]) -> str:
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {allowed}"
