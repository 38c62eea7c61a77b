# SPDX-License-Identifier: MIT
"""What may be shown and stored of a database's address: host and name, nothing else, since a password can stand in
several places of it. What libpq does not take as it was meant is refused without being repeated.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from lib.errors import InputError

SCHEMES = ("postgresql://", "postgres://")
ALLOWED = (
    "postgresql://user:password@host:port/database, with %40 for @, %2F for / and %25 for % in user and password; "
    "it is not repeated here, since it may hold a password"
)
_URL = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*://")
_PASSWORD = re.compile(r"(passw\w*|pwd)\s*=|:[^/]*@", re.IGNORECASE)
_PORTS = re.compile(r"[0-9]{0,5}(,[0-9]{0,5})*")


def shown(url: str) -> str:
    """postgresql://host/database of a URL of PostgreSQL. Raises InputError, without a word of the URL."""
    try:
        found = {key: str(value) for key, value in conninfo_to_dict(url).items()}
    except (psycopg.Error, UnicodeError):
        raise InputError(f"FROM is no address that PostgreSQL understands; allowed: {ALLOWED}") from None
    hosts, name = [found.get("host", ""), found.get("hostaddr", "")], found.get("dbname", "")
    # What of an unescaped password the URL's parser took for something else: libpq would repeat it in its errors
    if "@" in "".join((*hosts, name)) or "=" in name or not _PORTS.fullmatch(found.get("port", "")):
        raise InputError(f"FROM has a host, port or database that cannot be one; allowed: {ALLOWED}")
    return f"postgresql://{quote(hosts[0] or hosts[1], safe='/,:[]')}/{quote(name, safe='')}"


def check_no_address(source: str) -> None:
    """Raises InputError if what is no file reads like an address: libpq's key=value, or a URL of another scheme."""
    reads_like_one = bool(_URL.match(source) or _PASSWORD.search(source))
    with suppress(psycopg.Error, UnicodeError):
        reads_like_one = reads_like_one or ("=" in source and bool(conninfo_to_dict(source)))
    with suppress(OSError):  # of a name that is too long for a file
        reads_like_one = reads_like_one and not Path(source).exists()
    if reads_like_one:
        raise InputError(f"FROM reads like a database's address, of a form that is not known; allowed: {ALLOWED}")
