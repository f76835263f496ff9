"""Makes the first tables: workloads, targets and measurements."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the first tables."""
    op.create_table(
        "workloads",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("key", sa.Text, nullable=False, unique=True),
        sa.Column("operator", sa.String(64), nullable=False, index=True),
        sa.Column("description", sa.Text, nullable=False),
    )
    op.create_table(
        "targets",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("fingerprint", sa.String(64), nullable=False, unique=True),
        sa.Column("description", sa.Text, nullable=False),
    )
    op.create_table(
        "measurements",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("key", sa.String(64), nullable=False, unique=True),
        sa.Column("workload_id", _ID, sa.ForeignKey("workloads.id"), nullable=False),
        sa.Column("target_id", _ID, sa.ForeignKey("targets.id"), nullable=False),
        sa.Column("space_version", sa.Text, nullable=False),
        sa.Column("schedule_digest", sa.String(64), nullable=False),
        sa.Column("schedule", sa.Text, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("round", sa.String(16), nullable=False),
        sa.Column("rank_score", sa.Double),
        sa.Column("score", sa.Double),
        sa.Column("samples", sa.Text, nullable=False),
        sa.Column("reference_samples", sa.Text, nullable=False),
        sa.Column("clock", sa.String(16), nullable=False),
        sa.Column("error_kind", sa.String(32)),
        sa.Column("error_text", sa.Text, nullable=False),
        sa.Column("build_seconds", sa.Double, nullable=False),
        sa.Column("run_seconds", sa.Double, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("recorded_at", sa.Double, nullable=False),
        sa.Column("session", sa.Text, nullable=False),
        sa.Column("info", sa.Text, nullable=False),
    )
    op.create_index("best_known", "measurements", ["workload_id", "target_id", "rank_score", "id"])
    op.create_index(
        "attempts_of_schedule",
        "measurements",
        ["workload_id", "target_id", "schedule_digest", "round"],
    )
