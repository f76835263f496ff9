"""Brings the tables of an older tuning database to the present schema, by Alembic."""
