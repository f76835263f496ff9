"""Identifies programs that differ in groups of maxima, factors of indices or places of a minus.

Rows of ``workloads`` that were one program in several spellings become one, the first of them.
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

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Give all rows their keys of today; malformed ones stay as they are."""
    connection = op.get_bind()
    rows = connection.execute(sa.text("SELECT id, key, description FROM workloads ORDER BY id"))
    found = []
    for id, key, description in rows.all():
        try:
            workload = described_workload(Fields({"workload": parse_json(description)}))
        except (InputError, TypeError):  # a column of another type included
            continue
        if _is_earlier(key, workload.key):
            found.append((id, workload.key, family(workload)))
    rekey(connection, found)


def _is_earlier(key: str, today: str) -> bool:
    """Tell whether a key differs only in the digest at its end."""
    return key != today and key.rpartition(" ")[0] == today.rpartition(" ")[0]
