"""Connect to databases: set up each connection, and turn errors of drivers into our own."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import quote
from weakref import WeakKeyDictionary

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    Pool,
    create_engine,
    event,
    make_url,
)
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from tilewright.measure.tables.retries import (
    LOCKED_SECONDS,
    LockedError,
    OutOfReachError,
    attempt_seconds,
)
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.validation.text import spelled_out

CONNECT_SECONDS = 30
"""Seconds that a server may take to accept a connection."""


@contextmanager
def usable(engine: Engine) -> Iterator[None]:
    """Turn a driver's error into an :class:`InputError` of one line. It is an
    :class:`UnavailableError` if waiting may help."""
    try:
        yield
    except (SQLAlchemyError, engine.dialect.loaded_dbapi.Error, UnicodeDecodeError) as error:
        original = getattr(error, "orig", None) or error
        reason = spelled_out(str(original).strip().partition("\n")[0])
        raise _kind(engine, original)(
            f"database {name(engine)} cannot be used: {reason}"
        ) from error


def _kind(engine: Engine, error: BaseException) -> type[InputError]:
    """Choose the class of our error for an error of the database driver."""
    if not isinstance(error, engine.dialect.loaded_dbapi.OperationalError):
        return InputError
    if isinstance(error, sqlite3.OperationalError):
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        return LockedError if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) else InputError
    return OutOfReachError if _is_outage(error) else InputError


def _is_outage(error: BaseException) -> bool:
    """Tell whether a PostgreSQL server is out of reach for the moment.

    The error of an ended session has a code; that of a refused connection has at most a message.
    """
    code = getattr(error, "sqlstate", None)
    if code is not None:
        return code in _ENDING or code.startswith("08")
    words = str(error)
    if "FATAL" in words:
        return any(passing in words for passing in _PASSING)
    return not any(lasting in words for lasting in _LASTING)


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """Open a connection and commit at the end; :class:`InputError` for an error of the driver."""
    with usable(engine), engine.begin() as connection:
        yield connection


def name(engine: Engine) -> str:
    """Name the database in messages: a file's path, or the URL without its password."""
    url = engine.url
    if url.get_backend_name() == "sqlite" and url.database:
        return url.database
    secrets = [word for word in url.query if "password" in word]
    return url.difference_update_query(secrets).render_as_string(hide_password=True)


def for_writing(engine: Engine) -> Engine:
    """Return the engine with the option for transactions that write.

    Such a transaction takes SQLite's write lock at its start. SQLite would refuse a reader that
    begins to write while another process writes, instead of letting it wait.
    """
    return engine.execution_options(writes=True)


def for_one_query(engine: Engine) -> Engine:
    """Return the engine with the option for transactions of a single query. It saves PostgreSQL the
    two messages that begin and end a transaction."""
    if engine.dialect.name != "postgresql":
        return engine
    return engine.execution_options(isolation_level="AUTOCOMMIT")


def url_of(location: str | Path) -> URL:
    """Parse a path or a URL.

    :class:`InputError` if it is neither, or names a database system that is not supported.
    """
    if not isinstance(location, str | Path):
        raise InputError(f"{shown(location)} is no database; allowed: a path or a URL")
    if "://" not in str(location):
        return URL.create("sqlite", database=str(location))
    try:
        url = make_url(str(location))
    except (ArgumentError, ValueError):
        raise InputError(f"that is no database URL; allowed: a path, {_ALLOWED}") from None
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if url.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
        raise InputError(f"no support for database {url.drivername!r:.40}; allowed: {_ALLOWED}")
    return url


_POOL = {"max_overflow": -1}  # a thread that waits for the database blocks no other thread
_SERVER_POOL: dict[str, Any] = {
    **_POOL,
    "pool_pre_ping": True,  # a server that restarts closes the connections of the pool
    "connect_args": {"connect_timeout": CONNECT_SECONDS},
}
_ALLOWED = "sqlite:///tuning.db, postgresql+psycopg://user@host/name"


_ENDING = {"57P01", "57P02", "57P03"}  # the server shuts down, crashed, or does not listen yet
_PASSING = ("starting up", "shutting down", "recovery", "not yet accepting", "terminating")
_LASTING = ("resolve host", "translate host name", "password", "certificate", "authentication")


class _Engines:
    """The engines of this process: one for each database, shared by all its users.

    A database that is opened again gets the engine that is there, with its compiled statements.
    The last user's release closes the connections. Earlier would not do: a connection in use
    stays open after its pool was disposed of, until it is garbage.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._users: WeakKeyDictionary[Engine, int] = WeakKeyDictionary()
        self._inherited: list[Pool] = []

    def take(self, url: URL, mode: str = "") -> Engine:
        """Return the engine of a database and count one more user. ``mode`` holds the parameters of
        SQLite's file URI."""
        with self._lock:
            engine = _made(url, mode, _file(url))
            self._users[engine] = self._users.get(engine, 0) + 1
        return engine

    def release(self, engine: Engine) -> None:
        """Count one user less, and close the connections after the last."""
        with self._lock:
            self._users[engine] -= 1
            if not self._users[engine]:
                engine.dispose()

    def begin_child(self) -> None:
        """Forget the parent's connections in a forked child, without closing them."""
        self._lock = Lock()
        _made.cache_clear()
        for engine in self._users:
            self._inherited.append(engine.pool)
            engine.dispose(close=False)


engines = _Engines()
os.register_at_fork(after_in_child=engines.begin_child)


def _file(url: URL) -> tuple[str, int]:
    """Identify the file at a path by its absolute path and inode, since another may replace it."""
    path = os.path.abspath(url.database or "")
    try:
        return path, os.stat(path).st_ino
    except (OSError, ValueError):
        return path, 0


@lru_cache(maxsize=16)
def _made(url: URL, mode: str, file: tuple[str, int]) -> Engine:
    if url.get_backend_name() == "postgresql":
        return _postgresql(url)
    options: dict[str, Any] = {"connect_args": {"timeout": LOCKED_SECONDS}, **_POOL}
    if mode:
        uri = f"file:{quote(str(url.database))}?{mode}"
        how: dict[str, Any] = {"uri": True, "timeout": LOCKED_SECONDS, "check_same_thread": False}
        options = {"creator": lambda: sqlite3.connect(uri, **how)}
    engine = create_engine(url, **options).execution_options(read_only=bool(mode))
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _postgresql(url: URL) -> Engine:
    try:
        engine = create_engine(url, **_SERVER_POOL)
    except ImportError:
        raise InputError(
            "a PostgreSQL database needs psycopg: pip install 'tilewright[postgres]'"
        ) from None
    event.listen(engine, "connect", _check_encoding, insert=True)  # before SQLAlchemy asks
    event.listen(engine, "connect", _set_up_postgresql)
    return engine


def _set_up_postgresql(connection: Any, _record: object) -> None:
    """Let the server plan each statement once: planning takes longer than our look-ups do."""
    connection.execute("SET plan_cache_mode = force_generic_plan")
    connection.commit()


def _check_encoding(connection: Any, _record: object) -> None:
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise InputError(
            f"database {connection.info.dbname} has encoding {encoding}; allowed: UTF8 "
            "(CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0)"
        )


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver's own BEGIN comes too late: _begin_sqlite
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA cache_size = -65536")  # KiB at most, of pages that indexes share


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {1000 * attempt_seconds():.0f}")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
