# SPDX-License-Identifier: MIT
"""Messages show the host and the name of a database, never its password, whatever the form of the address."""

import pytest

from analysis.importing import address
from analysis.tests.imports import refused
from lib.errors import InputError

SECRET = "hunter2"
NOWHERE = "host=/nowhere"


def test_shown__is_host_and_database():
    for url, shown in (
        (f"///db?user=x&password={SECRET}", "/db"),
        (f"//x:{SECRET}@h:5433/db", "h/db"),
        (f"//x:{SECRET}@h1:1,h2:2/db", "h1,h2/db"),
        (f"//x:%40%2F{SECRET}@[::1]/db", "::1/db"),
        (f"//x:{SECRET}?#[@h/db", "h/db"),
        (f"//%2Frun%2Fpg/db?sslpassword={SECRET}", "/run/pg/db"),
        (f"//h/a%2Fb%0Ac?passfile={SECRET}", "h/a%2Fb%0Ac"),
        (f"//x:{SECRET}@h/db?hostaddr=127.0.0.1&dbname=other", "h/other"),
        ("//", "/"),
    ):
        assert address.shown(f"postgresql:{url}") == f"postgresql://{shown}"


def test_import__never_repeats_a_password(tmp_path, capsys):
    for source in (
        f"postgresql:///db?user=x&password={SECRET}&{NOWHERE}",
        f"postgresql://x:1,{SECRET}@/db?{NOWHERE}",  # FROM is split at commas, but not within a URL
        f"postgresql://x:@{SECRET}@h/db",
        f"postgresql://x:{SECRET}/@h/db",
        f"postgresql://x:1/{SECRET}@h/db",
        f"postgresql:///db?password=a&{SECRET}",
        f"postgresql:///db?password={SECRET}%zz",
        f"postgresql://x:{SECRET} @h/db",
        f"postgresql://x:{SECRET}\udcff@h/db",
        f"postgresq://x:{SECRET}@h/db",
        f"POSTGRESQL://x:{SECRET}@h/db",
        f"host=h user=x password={SECRET} dbname=db",
        f"user=x passwort={SECRET}",
        f"mysql://x:{SECRET}@h/{'db' * 4096}",  # longer than a file's name may be
        f"x.tr,dbname=db password='{SECRET}'",
        f"user:{SECRET}@host/db",
        f"postgresql:/user:{SECRET}@host/db",
        f"postgresql://h/dbname=x%20password={SECRET}",
    ):
        assert SECRET not in refused(source, tmp_path / "out", capsys)
        assert not list(tmp_path.iterdir())


def test_files__that_are_not_there_are_still_named(tmp_path):
    for source in ("/nowhere/trace.tr", "passwords.tr", "a=b.tr", "rate=10gbit.pcap"):
        address.check_no_address(source)
        with pytest.raises(InputError, match="reads like a database's address"):
            address.check_no_address(f"{source} password={SECRET}")
    (path := tmp_path / "password=x").write_text("")  # a file that is there may have any name
    address.check_no_address(str(path))
