# SPDX-License-Identifier: MIT
"""Reduces a database's address to host and name. Only host and name may be shown and stored: a password can be in
several places of an address. If libpq would misread an address, the address is refused, and the message does not
repeat it.
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
    "this message does not repeat FROM's value, which may hold a password"
)
_URL = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*://")
_PASSWORD = re.compile(r"(passw\w*|pwd)\s*=|:[^/]*@", re.IGNORECASE)
_PORTS = re.compile(r"[0-9]{0,5}(,[0-9]{0,5})*")


def shown(url: str) -> str:
    """postgresql://host/database for a PostgreSQL URL. Raises InputError, whose text does not repeat the URL."""
    try:
        parts = {key: str(value) for key, value in conninfo_to_dict(url).items()}
    except (psycopg.Error, UnicodeError):
        raise InputError(f"FROM is not an address that PostgreSQL understands; allowed: {ALLOWED}") from None
    hosts, name = [parts.get("host", ""), parts.get("hostaddr", "")], parts.get("dbname", "")
    # An unescaped '@' or '/' in a password moves a piece of the password into host, port or database name. libpq's
    # errors would repeat that piece.
    if "@" in "".join((*hosts, name)) or "=" in name or not _PORTS.fullmatch(parts.get("port", "")):
        raise InputError(
            "FROM has '@' in its host or database, '=' in its database, or a port that is not a number: probably a "
            f"piece of an unescaped password; allowed: {ALLOWED}"
        )
    return f"postgresql://{quote(hosts[0] or hosts[1], safe='/,:[]')}/{quote(name, safe='')}"


def check_no_address(source: str) -> None:
    """Raises InputError if a source looks like an address (libpq's key=value, a URL, or text with a password) and no
    file has this name.
    """
    is_address = bool(_URL.match(source) or _PASSWORD.search(source))
    with suppress(psycopg.Error, UnicodeError):
        is_address = is_address or ("=" in source and bool(conninfo_to_dict(source)))
    with suppress(OSError):  # raised for a name too long for a file
        is_address = is_address and not Path(source).exists()
    if is_address:
        raise InputError(f"FROM reads like a database's address in an unknown form; allowed: {ALLOWED}")
