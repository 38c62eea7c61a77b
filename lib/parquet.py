# SPDX-License-Identifier: MIT
"""Reads Parquet files that may be damaged: some damage makes polars panic instead of raising one of its errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from lib import regular


@contextmanager
def reading() -> Iterator[None]:
    """Turns a panic of polars, which no `except Exception` catches, into a PolarsError."""
    try:
        yield
    except pl.exceptions.PanicException as error:
        raise pl.exceptions.ComputeError(f"damaged Parquet: {str(error).splitlines()[0]}") from None


def read(path: Path, **options: Any) -> pl.DataFrame:
    """Raises pl.exceptions.PolarsError, or OSError, also if `path` is not a regular file."""
    regular.check(path)
    with reading():
        return pl.read_parquet(path, **options)
