"""Opens a tuning database: connection set-up, and bringing its tables to this version."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    create_engine,
    event,
    func,
    inspect,
    make_url,
    select,
    text,
)
from sqlalchemy.exc import ArgumentError, DBAPIError

from measure.schema import HEAD, VERSION_TABLE
from spaces.errors import InputError, shown

BUSY_SECONDS = 60
"""How long a writer waits for another one before it gives up."""


def open_engine(location: str | Path, create: bool = True) -> Engine:
    """The engine of the database at a path (SQLite) or SQLAlchemy URL, at the present schema.

    A missing or empty database is made, unless ``create`` is false. :class:`InputError` where
    there is none, or it is foreign, newer than this program, or cannot be used.
    """
    url = _url(location)
    if url.get_backend_name() == "sqlite":
        if url.database in (None, "", ":memory:"):
            raise InputError(f"database {location} would be lost on exit; give the path of a file")
        if "\0" in url.database:
            raise InputError(f"no file can be named {shown(url.database)}, with a zero byte in it")
        if not create and not Path(url.database).exists():
            raise InputError(f"there is no database at {url.database}")
    engine = _engine(url)
    try:
        with usable(engine):
            _prepare(engine, create)
    except BaseException:
        engine.dispose()
        raise
    return engine


@contextmanager
def usable(engine: Engine) -> Iterator[None]:
    """Turns what a database driver complains about into an :class:`InputError` of one line."""
    try:
        yield
    except DBAPIError as error:
        reason = str(error.orig).strip().partition("\n")[0]
        raise InputError(f"database {name(engine)} cannot be used: {reason}") from error


def name(engine: Engine) -> str:
    """What to call the database in messages: a file's path, or the URL without its password."""
    url = engine.url
    if url.get_backend_name() == "sqlite" and url.database:
        return url.database
    return url.render_as_string(hide_password=True)


def for_writing(engine: Engine) -> Engine:
    """The same database, for transactions that write.

    SQLite must take the write lock at their start: a reader that turns writer while another
    process writes is refused at once instead of waiting.
    """
    return engine.execution_options(writes=True)


def _url(location: str | Path) -> URL:
    if "://" not in str(location):
        return URL.create("sqlite", database=str(location))
    try:
        url = make_url(str(location))
    except (ArgumentError, ValueError):
        raise InputError(f"{location} is no database URL; allowed: a path, {_ALLOWED}") from None
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise InputError(f"no support for database {url.drivername!r}; allowed: {_ALLOWED}")
    return url


_LOCK = 0x74696C65  # any number, the same in every version: one process migrates at a time
_ALLOWED = "sqlite:///tuning.db, postgresql+psycopg://user@host/name"


def _engine(url: URL) -> Engine:
    sqlite = url.get_backend_name() == "sqlite"
    try:
        engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS} if sqlite else {})
    except (ArgumentError, ImportError) as error:
        raise InputError(f"no driver for database URL {url.drivername!r}: {error}") from None
    if sqlite:
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver's own BEGIN comes too late: _begin_sqlite
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _prepare(engine: Engine, create: bool) -> None:
    with engine.begin() as connection:
        version = _version(engine, connection, create)
    if version == HEAD:
        return
    if engine.dialect.name == "sqlite":
        _write_ahead(engine)
    with for_writing(engine).begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
        version = _version(engine, connection, create)  # another process may have been faster
        if version != HEAD:
            _upgrade(engine, connection, version)


def _write_ahead(engine: Engine) -> None:
    """Let readers and a writer work at a time; it stays in the file.

    Not allowed inside a transaction. SQLite reads before it writes this, and refuses a reader
    that turns writer while another process does the same, so waiting is up to us.
    """
    raw, deadline = engine.raw_connection(), time.monotonic() + BUSY_SECONDS
    try:
        while True:
            try:
                raw.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise InputError(f"database {name(engine)} cannot be used: {error}") from error
                time.sleep(0.01)
    finally:
        raw.close()


def _version(engine: Engine, connection: Connection, create: bool) -> str | None:
    """The schema's revision, None for an empty database; :class:`InputError` if foreign."""
    tables = inspect(connection).get_table_names()
    if VERSION_TABLE in tables:
        return connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    if tables or not create:
        raise InputError(f"database {name(engine)} is not a tuning database of tilewright")
    return None


def _upgrade(engine: Engine, connection: Connection, version: str | None) -> None:
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
