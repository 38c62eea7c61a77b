# SPDX-License-Identifier: MIT
"""Messages show the host and the name of a database, never its password, whatever the form of the address."""

import pytest

from analysis.importing import address
from bufferscope.__main__ import main
from lib.errors import InputError

SECRET = "hunter2"
NOWHERE = "host=/nowhere"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"postgresql:///db?user=x&password={SECRET}", "postgresql:///db"),
        (f"postgresql://x:{SECRET}@h:5433/db", "postgresql://h/db"),
        (f"postgres://x:{SECRET}@h1:1,h2:2/db", "postgresql://h1,h2/db"),
        (f"postgresql://x:%40%2F{SECRET}@[::1]/db", "postgresql://::1/db"),
        (f"postgresql://x:{SECRET}?#[@h/db", "postgresql://h/db"),
        (f"postgresql://%2Frun%2Fpg/db?sslpassword={SECRET}", "postgresql:///run/pg/db"),
        (f"postgresql://h/a%2Fb%0Ac?passfile={SECRET}", "postgresql://h/a%2Fb%0Ac"),
        (f"postgresql://x:{SECRET}@h/db?hostaddr=127.0.0.1&dbname=other", "postgresql://h/other"),
        ("postgresql://", "postgresql:///"),
    ],
)
def test_shown__is_host_and_database(url, shown):
    assert address.shown(url) == shown


@pytest.mark.parametrize(
    "source",
    [
        f"postgresql:///db?user=x&password={SECRET}&{NOWHERE}",
        f"postgresql://x:{SECRET}@/db?{NOWHERE}",
        f"postgresql://x:1,{SECRET}@/db?{NOWHERE}",  # FROM is split at commas, but not within a URL
        f"postgresql://x:@{SECRET}@h/db",
        f"postgresql://x:{SECRET}/@h/db",
        f"postgresql://x:p/{SECRET}@h/db",
        f"postgresql://x:1/{SECRET}@h/db",
        f"postgresql:///db?password=a&{SECRET}",
        f"postgresql:///db?password=a&{SECRET}=b",
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
    ],
)
def test_import__never_repeats_a_password(source, tmp_path, capsys):
    assert main(["import", f"FROM={source}", f"OUTPUT={tmp_path}/out"]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("error: ")
    assert SECRET not in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("source", ["/nowhere/trace.tr", "passwords.tr", "a=b.tr", "rate=10gbit.pcap"])
def test_files__that_are_not_there_are_still_named(source):
    address.check_no_address(source)
    with pytest.raises(InputError, match="reads like a database's address"):
        address.check_no_address(f"{source} password={SECRET}")


def test_file__whose_name_reads_like_an_address_is_a_file(tmp_path):
    (path := tmp_path / "password=x").write_text("")
    address.check_no_address(str(path))
