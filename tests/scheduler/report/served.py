"""A dashboard for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from tests.pages import PATHS


class Server:
    """A dashboard in a process of its own."""

    def __init__(self, db: Path | str, *more: str) -> None:
        self.db = db
        command = [sys.executable, "-m", "tilewright", "dashboard", "--db", str(db), *more]
        path = os.pathsep.join([PATHS, *sys.path])
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": path}, **pipes)
        words = self.process.stdout.readline().split()
        assert words[:1] == ["open"], self.process.communicate()
        self.address = urlsplit(words[1])
        self.token = self.address.query.removeprefix("token=")

    def get(self, path: str, token: str | None = None, **headers: str) -> tuple[int, str, dict]:
        connection = HTTPConnection(self.address.hostname, self.address.port, timeout=60)
        token = self.token if token is None else token
        connection.request("GET", f"{path}?token={token}", headers=headers)
        answer = connection.getresponse()
        found = answer.status, answer.read().decode(), dict(answer.getheaders())
        connection.close()
        return found
