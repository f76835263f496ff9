"""Opens a tuning database, and brings its tables to this version."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, func, inspect, select, text

from tilewright.measure.tables.engine import engines, for_writing, name, url_of, usable
from tilewright.measure.tables.file import EmptyDatabaseError, check_file
from tilewright.measure.tables.retries import OutOfReachError, retried
from tilewright.measure.tables.schema import HEAD, VERSION_TABLE, make_tables, metadata
from tilewright.spaces.errors import InputError, shown

_LOCK = 0x74696C65  # any number, the same in every version: one process migrates at a time


def open_engine(location: str | Path, create: bool = True) -> Engine:
    """Return the engine of the database at a path (SQLite) or SQLAlchemy URL, at the present
    schema.

    It is in use until it is released.

    A missing or empty database is made, unless ``create`` is false: then it need only be read,
    and may lie where nothing can be written. :class:`EmptyDatabaseError` where there is none,
    :class:`InputError` where it is foreign, newer than this program, or cannot be used; that of a
    server that never answered is no :class:`OutOfReachError`, for its address may be wrong.
    """
    try:
        return _opened(location, create)
    except OutOfReachError as error:
        raise InputError(str(error)) from error.__cause__


@retried
def _opened(location: str | Path, create: bool) -> Engine:
    url = url_of(location)
    if url.get_backend_name() == "postgresql":
        return _prepared(engines.take(url), create)
    check_file(url.database, location, create)
    try:
        return _prepared(engines.take(url), create)
    except InputError as error:
        if create or not _for_want_of_writing(error):
            raise
    return _read_only(url)


def _read_only(url: URL) -> Engine:
    """Return the engine of an SQLite file where nothing can be written.

    Readers beside a writer see what it writes. Where there is none the file does not change, and
    SQLite can do without the files that it keeps beside it.
    """
    try:
        return _prepared(engines.take(url, "mode=ro"), create=False)
    except InputError as error:
        if not _for_want_of_writing(error):
            raise
    log = Path(f"{url.database}-wal")
    if log.exists() and log.stat().st_size:
        raise InputError(
            f"database {url.database} cannot be read here: {log} holds what was written last, and "
            "nothing can be written beside it; copy both to where you may write"
        )
    return _prepared(engines.take(url, "mode=ro&immutable=1"), create=False)


def _prepared(engine: Engine, create: bool) -> Engine:
    """``engine``, once its database is at the present schema; else it is released."""
    try:
        with usable(engine):
            _prepare(engine, create)
    except BaseException:
        engines.release(engine)
        raise
    return engine


def _for_want_of_writing(error: InputError) -> bool:
    """Tell whether SQLite refused because it could not write or create a file."""
    reason = error.__cause__
    code = getattr(getattr(reason, "orig", reason), "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)


def _prepare(engine: Engine, create: bool) -> None:
    """Bring the tables to this version; where ``create`` is true, see that they can be written."""
    with engine.begin() as connection:
        version = _version(engine, connection, create)
    if version == HEAD:
        if create:
            with for_writing(engine).begin() as connection:
                _check_rights(engine, connection)
        return
    if engine.get_execution_options().get("read_only"):
        raise InputError(
            f"database {name(engine)} has schema {version!r}, and cannot be brought to {HEAD!r} "
            "where nothing can be written: copy it to where you may write"
        )
    if engine.dialect.name == "sqlite":
        _write_ahead(engine)
    with for_writing(engine).begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
        version = _version(engine, connection, create)  # another process may have been faster
        if version is None:
            make_tables(connection)
        elif version != HEAD:
            upgrade(engine, connection, version)


def _check_rights(engine: Engine, connection: Connection) -> None:
    """:class:`InputError` if PostgreSQL lets us only read. SQLite has said so already."""
    if engine.dialect.name != "postgresql":
        return
    mode, user, may = connection.execute(text(_RIGHTS)).one()
    if mode == "on":
        raise InputError(f"database {name(engine)} can only be read: its server is read-only")
    if not may:
        raise InputError(
            f"database {name(engine)} can only be read by {user}, who may not INSERT into its "
            "tables; docs/how-to/share-a-database.md has the rights that jobs need"
        )


_RIGHTS = """
    SELECT current_setting('transaction_read_only'), current_user,
    has_table_privilege('runs', 'INSERT') AND has_table_privilege('measurements', 'INSERT')
"""


def _write_ahead(engine: Engine) -> None:
    """Let readers and a writer work at a time; it stays in the file. Not allowed inside a
    transaction."""
    raw = engine.raw_connection()
    try:
        raw.execute("PRAGMA journal_mode = WAL")
    finally:
        raw.close()


def _version(engine: Engine, connection: Connection, create: bool) -> str | None:
    """Return the schema's revision, None for an empty database; :class:`InputError` if foreign."""
    tables = inspect(connection).get_table_names()
    if VERSION_TABLE in tables:
        _refuse_programs(engine, connection)
        return connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    if tables:
        raise InputError(f"database {name(engine)} is not a tuning database of tilewright")
    if not create:
        raise EmptyDatabaseError(
            f"database {name(engine)} is empty: nothing was recorded in it yet"
        )
    return None


def _refuse_programs(engine: Engine, connection: Connection) -> None:
    """A stranger's database may bring code of its own, which would change what is written."""
    query = text(SQLITE_PROGRAMS if engine.dialect.name == "sqlite" else _POSTGRESQL_PROGRAMS)
    found = connection.execute(query).first()
    if found is not None:
        raise InputError(
            f"database {name(engine)} has a {found[0]} {shown(found[1])}, which tilewright did "
            "not make; allowed: tables alone (export from a copy that has none)"
        )


SQLITE_PROGRAMS = """
    SELECT CASE WHEN type = 'table' THEN 'virtual table' ELSE type END, name FROM sqlite_master
    WHERE type IN ('trigger', 'view') OR sql LIKE 'CREATE VIRTUAL%'
"""
_POSTGRESQL_PROGRAMS = f"""
    SELECT 'trigger, rule or view on', c.relname
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = current_schema()
    AND c.relname IN ({", ".join(f"'{table}'" for table in (*metadata.tables, VERSION_TABLE))})
    AND (c.relkind NOT IN ('r', 'p') OR c.relhasrules OR EXISTS (
        SELECT 1 FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal))
"""


def upgrade(engine: Engine, connection: Connection, version: str | None) -> None:
    """Bring the tables of a ``version`` to this one; from None on, all revisions make them."""
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    scripts = Path(__file__).parent / "migrations"
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    config.attributes["connection"] = connection
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if version is not None and version not in known:
        raise InputError(
            f"database {name(engine)} has schema {version!r:.40}, this program knows up to "
            f"{HEAD!r}: it was made by a newer tilewright"
        )
    try:
        command.upgrade(config, "head")
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(
            f"database {name(engine)} of schema {version} has a malformed row, and cannot be "
            f"brought to schema {HEAD}: {error!r:.100}"
        ) from error
