"""Run by Alembic: applies the revisions on the connection that ``measure.tables.opening`` hands
over.
"""

from alembic import context

from tilewright.measure.tables.schema import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
with context.begin_transaction():
    context.run_migrations()
