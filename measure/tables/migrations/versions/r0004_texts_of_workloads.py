"""Keeps the text and operations of each workload, so that a list need not read descriptions."""

import sqlalchemy as sa
from alembic import op

from tilewright.measure.records.fields import Fields
from tilewright.measure.records.jsonl import parse_json
from tilewright.measure.tables.described import described_workload
from tilewright.spaces.errors import InputError

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the columns; where a description is malformed they stay empty, which readers tell."""
    op.add_column("workloads", sa.Column("text", sa.Text, nullable=False, server_default=""))
    op.add_column("workloads", sa.Column("flops", sa.Double, nullable=False, server_default="0"))
    connection = op.get_bind()
    update = sa.text("UPDATE workloads SET text = :text, flops = :flops WHERE id = :id")
    rows = connection.execute(sa.text("SELECT id, description FROM workloads")).all()
    for id, description in rows:
        try:
            workload = described_workload(Fields({"workload": parse_json(description)}))
        except InputError:
            continue
        told = {"id": id, "text": str(workload), "flops": float(workload.flops)}
        connection.execute(update, told)
