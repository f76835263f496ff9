"""Decisions are recorded under the names of today, see ``spaces.earlier_names``."""

from __future__ import annotations

from alembic import op

from tilewright.measure.tables.migrations.rewriting import rewrite_schedules
from tilewright.spaces.earlier_names import present_schedule

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Rename the decisions of all schedules; malformed rows stay as they are."""
    rewrite_schedules(op.get_bind(), present_schedule)
