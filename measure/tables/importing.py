"""Takes an export into the tables: what it holds is kept, what cannot be true is told of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path

from sqlalchemy import Engine

from tilewright.measure.tables.engine import transaction
from tilewright.measure.tables.inserting import insert_rows, pieces
from tilewright.measure.tables.parsing import Chunk, parsed
from tilewright.measure.tables.retries import retried
from tilewright.spaces.errors import InputError

CHUNKS = 16
"""Chunks of an import that are kept together: a page of an index is then written for many rows."""


def take(engine: Engine, path: Path, report: Callable[[str], None]) -> int:
    """Keep the runs and records of an export that are not there yet; the number of records. See
    :meth:`measure.database.Database.import_jsonl`."""
    added, refused = 0, defaultdict[str, list[int]](list)
    with closing(parsed(path)) as chunks:
        for some in pieces(chunks, CHUNKS):
            added += _keep(engine, some)
            for reason, lines in chain(*(chunk.refused.items() for chunk in some)):
                refused[reason] += lines
            if some[-1].torn is not None:
                report(f"line {some[-1].torn} of {path} is torn and was left out")
            if some[-1].malformed:
                raise InputError(some[-1].malformed)
    for reason, lines in refused.items():
        report(
            f"{len(lines)} of the records of {path} were refused: {reason} "
            f"(the first in line {lines[0]})"
        )
    return added


@retried
def _keep(engine: Engine, chunks: Sequence[Chunk]) -> int:
    """Keep what these hold, all of it or nothing; how many records were new."""
    held = [chunk.held() for chunk in chunks]
    runs = [run for found, _ in held for run in found]
    with transaction(engine) as connection:
        return insert_rows(connection, [row for _, rows in held for row in rows], runs)
