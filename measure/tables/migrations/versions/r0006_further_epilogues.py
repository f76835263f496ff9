"""Identifies a program that is a product with an epilogue as that product.

Epilogues have known all functions and selections since.
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
from tilewright.spaces.workloads.workload import PROGRAM

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Give such rows their keys and texts of today; malformed ones stay as they are."""
    connection = op.get_bind()
    query = "SELECT id, key, description FROM workloads WHERE key LIKE :programs ORDER BY id"
    update = sa.text("UPDATE workloads SET text = :text, flops = :flops WHERE id = :id")
    found = []
    programs = connection.execute(sa.text(query), {"programs": f"{PROGRAM} %"})
    for id, key, description in programs.all():
        try:
            workload = described_workload(Fields({"workload": parse_json(description)}))
        except (InputError, TypeError):  # a column of another type included
            continue
        if workload.key != key:
            found.append((id, workload.key, family(workload)))
            told = {"id": id, "text": str(workload), "flops": float(workload.flops)}
            connection.execute(update, told)
    rekey(connection, found)
