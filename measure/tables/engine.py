"""Connections to databases: what is set up for each, and what drivers complain about."""

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

from tilewright.measure.tables.patience import (
    LOCKED_SECONDS,
    LockedError,
    OutOfReachError,
    attempt_seconds,
)
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.validation.text import spelled_out

CONNECT_SECONDS = 30
"""How long a server has to answer."""


@contextmanager
def usable(engine: Engine) -> Iterator[None]:
    """Turns what a database driver complains about into an :class:`InputError` of one line, an
    :class:`UnavailableError` where it may pass."""
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
    """Tell whether a PostgreSQL server does not answer at present. An ended session has an error
    code; a refused connection is told by the server's words, if there are any.
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
    """A connection, committed at the end; :class:`InputError` for what a driver complains about."""
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
    """The same database, for transactions that write.

    SQLite must take the write lock at their start: a reader that turns writer while another
    process writes is refused at once instead of waiting.
    """
    return engine.execution_options(writes=True)


def for_one_query(engine: Engine) -> Engine:
    """The same database, for transactions of a single query: PostgreSQL does without the two
    further exchanges that begin and end one."""
    if engine.dialect.name != "postgresql":
        return engine
    return engine.execution_options(isolation_level="AUTOCOMMIT")


def url_of(location: str | Path) -> URL:
    """The URL of a path or of another spelling; :class:`InputError` if it is none, or of a database
    that there is no support for."""
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


_POOL = {"max_overflow": -1}  # whoever waits for a database holds up nobody else
_SERVER_POOL: dict[str, Any] = {
    **_POOL,
    "pool_pre_ping": True,  # a server that starts again closes what is in the pool
    "connect_args": {"connect_timeout": CONNECT_SECONDS},
}
_ALLOWED = "sqlite:///tuning.db, postgresql+psycopg://user@host/name"


_ENDING = {"57P01", "57P02", "57P03"}  # the server shuts down, crashed, or does not listen yet
_PASSING = ("starting up", "shutting down", "recovery", "not yet accepting", "terminating")
_LASTING = ("resolve host", "translate host name", "password", "certificate", "authentication")


class _Engines:
    """The engines of this process, one a database, shared by all who have it open.

    Whoever opens a database again gets its engine, which knows the statements that it has compiled.
    Its connections are closed when nobody has it open any more: what is in use when a pool is
    disposed of stays open until the garbage collector finds it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._users: WeakKeyDictionary[Engine, int] = WeakKeyDictionary()
        self._inherited: list[Pool] = []

    def take(self, url: URL, mode: str = "") -> Engine:
        """The engine of a database, in use until it is released; ``mode`` holds the parameters of
        SQLite's file URI."""
        with self._lock:
            engine = _made(url, mode, _file(url))
            self._users[engine] = self._users.get(engine, 0) + 1
        return engine

    def release(self, engine: Engine) -> None:
        """Close its connections if nobody else has it in use."""
        with self._lock:
            self._users[engine] -= 1
            if not self._users[engine]:
                engine.dispose()

    def begin_child(self) -> None:
        """In a forked child: use none of the parent's connections, and close none of them."""
        self._lock = Lock()
        _made.cache_clear()
        for engine in self._users:
            self._inherited.append(engine.pool)
            engine.dispose(close=False)


engines = _Engines()
os.register_at_fork(after_in_child=engines.begin_child)


def _file(url: URL) -> tuple[str, int]:
    """Identify the file at a path: another may replace it, and relative paths move."""
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
    """Plan each statement once: planning takes longer than what is asked of the indexes."""
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
