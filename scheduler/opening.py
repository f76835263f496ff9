"""Databases and cost models as users name them: as objects, or by a path or URL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.costmodel.interfaces import CostModel
from tilewright.measure.tables.file import check_file, is_path
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.settings import Default, default_database

if TYPE_CHECKING:
    from tilewright.measure.database import Database


@contextmanager
def opened(given: Database | str | Path, create: bool = True) -> Iterator[Database]:
    """Give ``given`` itself, which stays open, or the database at that path or URL until the end.

    One that is missing is made if ``create`` is true. Raises :class:`InputError` otherwise, and
    for what is neither a database nor the name of one.
    """
    if given is Default.DATABASE:
        given = default_database()
    if is_path(given):
        check_file(str(given), given, create)
    from tilewright.measure.database import Database  # takes a while

    if isinstance(given, Database):
        yield given
    elif isinstance(given, str | Path):
        with Database(given, create) as database:
            yield database
    else:
        raise InputError(f"{shown(given)} is no database; allowed: a Database, a path or a URL")


def as_model(given: CostModel | str | Path) -> CostModel:
    """Return ``given`` itself, or the model at that path; :class:`InputError` if there is none."""
    if isinstance(given, str | Path):
        from tilewright.costmodel.model import XGBoostModel

        return XGBoostModel.load(Path(given))
    if not hasattr(given, "predict"):
        raise InputError(f"{shown(given)} is no cost model; allowed: a CostModel or a path")
    return given
