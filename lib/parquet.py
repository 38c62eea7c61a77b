# SPDX-License-Identifier: MIT
"""Reads Parquet files that may be damaged: some damage makes polars panic instead of raising one of its errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from lib import regular

SLAB_ROWS = 1 << 20  # the row group of our tables


@contextmanager
def reading() -> Iterator[None]:
    """Turns a panic of polars, which no `except Exception` catches, into a PolarsError."""
    try:
        yield
    except pl.exceptions.PanicException as error:
        raise pl.exceptions.ComputeError(f"damaged Parquet: {str(error).splitlines()[0]}") from None


def slabs(path: Path, columns: list[str] | None = None) -> Iterator[pl.DataFrame]:
    """Columns (None: all) of a table, SLAB_ROWS at a time, then the rest, at least once. Raises as `read` does."""
    regular.check(path)
    with reading():
        table = pl.scan_parquet(path).select(columns or pl.all())
        for first in range(0, max(int(table.select(pl.len()).collect().item()), 1), SLAB_ROWS):
            yield table.slice(first, SLAB_ROWS).collect()


def read(path: Path, **options: Any) -> pl.DataFrame:
    """Raises pl.exceptions.PolarsError, or OSError, also if `path` is not a regular file."""
    regular.check(path)
    with reading():
        return pl.read_parquet(path, **options)
