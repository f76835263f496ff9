"""The databases of the experiment: files of SQLite, or a PostgreSQL server of its own."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tests.measure import postgresql

SETTINGS = ("listen_addresses=127.0.0.1", "max_wal_size=4GB")


class Storage(Protocol):
    """Databases by their names; ``folder`` is for files that go with them."""

    folder: Path
    kind: str

    def location(self, name: str) -> str:
        """Return the location of the database of that name."""
        ...

    def clear(self, name: str) -> str:
        """Return the same, which has nothing in it now."""
        ...


class Files:
    """Each database is a file."""

    kind = "sqlite"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def location(self, name: str) -> str:
        """See :class:`Storage`."""
        return str(self.folder / f"{name}.db")

    def clear(self, name: str) -> str:
        """See :class:`Storage`."""
        for path in self.folder.glob(f"{name}.db*"):
            path.unlink()
        return self.location(name)


class OnServer:
    """Each is a database of one server, over TCP on the loopback device."""

    kind = "postgresql"

    def __init__(self, folder: Path, server: postgresql.Server) -> None:
        self.folder = folder
        self._server = server

    def location(self, name: str) -> str:
        """See :class:`Storage`."""
        port = self._server.port
        return f"postgresql+psycopg://{postgresql.USER}@127.0.0.1:{port}/{name}"

    def clear(self, name: str) -> str:
        """See :class:`Storage`."""
        self._server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        self._server.execute(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0")
        return self.location(name)


@contextmanager
def sqlite(folder: Path) -> Iterator[Storage]:
    """Give files in ``folder``."""
    yield Files(folder)


@contextmanager
def postgres(folder: Path) -> Iterator[Storage]:
    """Run a server that keeps its data in ``folder``, as long as the block lasts."""
    programs = postgresql.binaries()
    if programs is None:
        raise SystemExit("no PostgreSQL server here: SQLite's figures alone were written")
    server = postgresql.Server(programs, folder / "server", SETTINGS, _free_port())
    if not server.folder.exists():
        server.folder.mkdir()
        server.lay_out()
    server.start()
    try:
        yield OnServer(folder, server)
    finally:
        server.stop(signal.SIGINT)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
