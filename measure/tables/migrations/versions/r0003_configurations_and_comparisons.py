"""Keeps all that a run was told, and adds an index that finds a pair's last comparison."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Give the column its wider name, and make the index."""
    op.alter_column("runs", "budget", new_column_name="configuration")
    final = sa.text("round = 'final'")
    op.create_index(
        "comparisons",
        "measurements",
        ["pair_id", "id"],
        sqlite_where=final,
        postgresql_where=final,
    )
