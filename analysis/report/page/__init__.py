# SPDX-License-Identifier: MIT
"""The layout, style sheet and scripts of all pages.

Style sheet and scripts are embedded, so a page is one file and opens offline. Its Content-Security-Policy forbids
fetching and allows only the embedded scripts, by digest. Every value is escaped.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from analysis.wording.formats import count, number, of, percent, si, text

HERE = Path(__file__).parent
SHARED = ("zoom.js", "scroll.js")


def render(template: Path, scripts: tuple[str, ...] = (), **values: Any) -> str:
    """Renders `template`, which extends page.html.j2, with `values`. `scripts` are files in this directory, in addition
    to the scripts of all pages. A lone surrogate, which JSON allows and UTF-8 does not, becomes a question mark. Raises
    jinja2.TemplateError if the template uses an undefined value.
    """
    loader = jinja2.Environment(
        loader=jinja2.FileSystemLoader([HERE, template.parent]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    loader.filters.update(count=count, number=number, of=of, percent=percent, si=si, text=text)
    embedded = [(HERE / name).read_text(encoding="utf-8") for name in SHARED + scripts]
    # The only unescaped text: it comes from files in this directory.
    page = loader.get_template(template.name).render(
        style=Markup((HERE / "style.css").read_text(encoding="utf-8")),
        scripts=[Markup(script) for script in embedded],
        policy=_policy(embedded),
        **values,
    )
    return page.encode(errors="replace").decode()


def _policy(scripts: list[str]) -> str:
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {allowed}"
