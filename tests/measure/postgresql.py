"""A PostgreSQL server of one's own: from its binaries, as an unprivileged user, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path

import psutil
from sqlalchemy.engine import make_url

from tilewright.measure.database import Database
from tilewright.measure.tables.schema import metadata

START_SECONDS = 250
USER = "tilewright"


def binaries() -> Path | None:
    """The folder of ``initdb`` and ``postgres``: Debian keeps them off the path."""
    found = [shutil.which("initdb")]
    if config := shutil.which("pg_config"):
        asked = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=False)
        found.append(f"{asked.stdout.strip()}/initdb")
    newest = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=_version, reverse=True)
    for path in (*found, *newest):
        if path is not None and (Path(path).resolve().parent / "postgres").exists():
            return Path(path).resolve().parent
    return None


def _version(path: Path) -> int:
    name = path.parent.parent.name
    return int(name) if name.isdigit() else 0


@dataclass
class Server:
    """A server at a socket in its own folder; elsewhere only if its settings say so."""

    binaries: Path
    folder: Path
    settings: Sequence[str] = ("listen_addresses=", "fsync=off")
    port: int = 5432
    _numbers: Iterator[int] = field(default_factory=count)
    _running: subprocess.Popen[bytes] | None = None

    def lay_out(self) -> None:
        """Make what it runs on in its folder, which it then owns."""
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
        options = ["--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"]
        command = [self.binaries / "initdb", "-D", self.folder / "data", "-U", USER, *options]
        subprocess.run(command, check=True, capture_output=True, **_user(self.folder))

    def start(self) -> None:
        """Start it on what is in its folder, and wait until it answers."""
        command = [self.binaries / "postgres", "-D", self.folder / "data"]
        own = (f"unix_socket_directories={self.folder}", f"port={self.port}")
        for setting in (*own, *self.settings):
            command += ["-c", setting]
        with open(self.folder / "log", "ab") as log:
            self._running = subprocess.Popen(command, stdout=log, stderr=log, **_user(self.folder))
        self._await()

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End it: at once, where nothing of it is needed again, or by ``SIGINT`` in order."""
        assert self._running is not None
        self._running.send_signal(how)
        self._running.wait()

    def kill(self) -> None:
        """SIGKILL to each of its processes."""
        assert self._running is not None
        parent = psutil.Process(self._running.pid)
        parent.suspend()  # or it would start others
        for process in (*parent.children(recursive=True), parent):
            process.kill()
        self._running.wait()

    def empty_tables(self) -> str:
        """The URL of a database, always the same, that has our tables and nothing in them."""
        tables = ", ".join(table.name for table in metadata.sorted_tables)
        self.execute(f"TRUNCATE {tables} RESTART IDENTITY", make_url(self._tables).database)
        return self._tables

    @cached_property
    def _tables(self) -> str:
        location = self.new_database()
        Database(location).close()
        return location

    def new_database(self, encoding: str = "UTF8") -> str:
        """The URL of a new empty database."""
        name = f"db{next(self._numbers)}"
        self.execute(
            f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' "
            "TEMPLATE template0"
        )
        return self.url(name)

    def url(self, name: str, user: str = USER) -> str:
        return f"postgresql+psycopg://{user}@/{name}?host={self.folder}&port={self.port}"

    def execute(self, statement: str, name: str = "postgres") -> None:
        import psycopg

        at = {"host": str(self.folder), "port": self.port, "user": USER, "dbname": name}
        with psycopg.connect(**at, autocommit=True) as connection:
            connection.execute(statement)

    def ask_for_password(self, user: str) -> None:
        """From now on ``user`` has to give one."""
        rules = self.folder / "data/pg_hba.conf"
        rules.write_text(f"local all {user} scram-sha-256\n{rules.read_text()}")
        self.execute("SELECT pg_reload_conf()")

    def _await(self) -> None:
        import psycopg

        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                return self.execute("SELECT 1")
            except psycopg.OperationalError:
                if self._running.poll() is not None or time.monotonic() > deadline:
                    log = (self.folder / "log").read_text()
                    raise RuntimeError(f"the PostgreSQL server does not start: {log}") from None
                time.sleep(0.05)


@contextmanager
def server(
    binaries: Path, settings: Sequence[str] = Server.settings, port: int = Server.port
) -> Iterator[Server]:
    """A server as long as the block lasts. It refuses to run as root, so root lends it a user."""
    folder = Path(tempfile.mkdtemp(prefix="tw-postgres-"))  # socket paths are short
    made = Server(binaries, folder, settings, port)
    try:
        made.lay_out()
        made.start()
        try:
            yield made
        finally:
            made.stop()
    finally:
        shutil.rmtree(folder)


def _user(folder: Path) -> dict[str, object]:
    """The owner of the folder, as who its programs run."""
    if os.geteuid() != 0:
        return {"cwd": folder}
    owner = folder.stat()
    return {"cwd": folder, "user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}
