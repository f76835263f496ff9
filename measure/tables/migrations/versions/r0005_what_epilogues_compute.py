"""Identifies a product by what its epilogue computes, and no longer by how that is written.

Rows of ``workloads`` that were one product in several spellings become one, the first of them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from tilewright.measure.records.fields import Fields
from tilewright.measure.records.jsonl import parse_json
from tilewright.measure.tables.described import described_workload
from tilewright.measure.tables.migrations.rekeying import rekey
from tilewright.measure.tables.similarity.distance import family
from tilewright.spaces.errors import InputError

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Give all rows their keys of today; malformed ones stay as they are."""
    connection = op.get_bind()
    rekey(connection, _spelt(connection))


def _spelt(connection: sa.Connection) -> list[tuple[int, str, str]]:
    """Return the workloads whose keys are their texts and are to be so no longer: their ids, with
    the keys and families of today."""
    rows = connection.execute(sa.text("SELECT id, key, description FROM workloads ORDER BY id"))
    found = []
    for id, key, description in rows.all():
        try:
            workload = described_workload(Fields({"workload": parse_json(description)}))
        except (InputError, TypeError):  # a column of another type included
            continue
        if str(workload) == key != workload.key:
            found.append((id, workload.key, family(workload)))
    return found
