"""A PostgreSQL server of one's own: from its binaries, as an unprivileged user, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

START_SECONDS = 60
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
    """A running server; it listens at a socket in its own folder and nowhere else."""

    binaries: Path
    folder: Path
    _numbers: Iterator[int] = field(default_factory=count)

    def new_database(self, encoding: str = "UTF8") -> str:
        """The URL of a new empty database."""
        name = f"db{next(self._numbers)}"
        self.execute(
            f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' "
            "TEMPLATE template0"
        )
        return self.url(name)

    def url(self, name: str) -> str:
        return f"postgresql+psycopg://{USER}@/{name}?host={self.folder}"

    def execute(self, statement: str, name: str = "postgres") -> None:
        import psycopg

        at = {"host": str(self.folder), "user": USER, "dbname": name}
        with psycopg.connect(**at, autocommit=True) as connection:
            connection.execute(statement)


@contextmanager
def server(binaries: Path) -> Iterator[Server]:
    """A server as long as the block lasts. It refuses to run as root, so root lends it a user."""
    folder = Path(tempfile.mkdtemp(prefix="tw-postgres-"))  # socket paths are short
    as_user: dict[str, object] = {"cwd": folder}
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        as_user |= {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    try:
        options = ["--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"]
        command = [binaries / "initdb", "-D", folder / "data", "-U", USER, *options]
        subprocess.run(command, check=True, capture_output=True, **as_user)
        settings = ["listen_addresses=", f"unix_socket_directories={folder}", "fsync=off"]
        command = [binaries / "postgres", "-D", folder / "data"]
        command += [word for setting in settings for word in ("-c", setting)]
        with open(folder / "log", "wb") as log:
            running = subprocess.Popen(command, stdout=log, stderr=log, **as_user)
        try:
            found = Server(binaries, folder)
            _await(found, running)
            yield found
        finally:
            running.send_signal(signal.SIGQUIT)  # at once: nothing of it is needed again
            running.wait()
    finally:
        shutil.rmtree(folder)


def _await(server: Server, running: subprocess.Popen[bytes]) -> None:
    import psycopg

    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            return server.execute("SELECT 1")
        except psycopg.OperationalError:
            if running.poll() is not None or time.monotonic() > deadline:
                log = (server.folder / "log").read_text()
                raise RuntimeError(f"the PostgreSQL server does not start: {log}") from None
            time.sleep(0.05)
