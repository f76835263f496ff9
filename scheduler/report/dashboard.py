"""Serve the report of a database as a page that is renewed while results arrive.

The server only reads. It answers whoever knows the token of the printed address, and no page of
another site: the headers ``Host`` and ``Origin`` must name it.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import socket
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilewright.measure.database import Database
from tilewright.measure.tables.retries import UnavailableError, waiting
from tilewright.scheduler.extras import extra
from tilewright.scheduler.report.material import read_materials
from tilewright.scheduler.report.page import Live, check_library, report_page
from tilewright.scheduler.tuning.runs.sessions import sessions
from tilewright.spaces.errors import InputError

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

LOOPBACK = "127.0.0.1"
REST = 5.0
"""Says how many times as long as making a page took it is shown, before another is made."""
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
LOG = logging.getLogger("tilewright.dashboard")


def check_libraries() -> None:
    """Raise :class:`InputError` where a library is missing."""
    check_library()
    for library in ("starlette", "uvicorn"):
        extra(library, "dashboard", "the dashboard")


class Pages:
    """Makes the page of a database anew when there is something new, one at a time.

    Making it takes processor time from what is being measured, so it rests between.
    """

    def __init__(self, database: Database, db: str, words: Sequence[str]) -> None:
        self._database, self._db, self._words = database, db, words
        self._lock = threading.Lock()
        self._page, self._state = "", ""
        self._next = 0.0  # when another may be made

    def state(self) -> str:
        """Return a text that is another one when the page is to be renewed."""
        if time.monotonic() < self._next:
            return self._state
        return self._now()

    def page(self) -> str:
        """Return the page as it is now, or was a moment ago."""
        with self._lock:
            state, begun = self.state(), time.monotonic()
            if state != self._state or not self._page:
                materials = read_materials(self._database, self._words)
                live = Live(sessions(self._database), state)
                self._page = report_page(materials, self._db, live=live)
                self._state = state
                self._next = time.monotonic() + REST * (time.monotonic() - begun)
            return self._page

    def _now(self) -> str:
        counts = self._database.stats()
        told = (counts.runs, counts.measurements, counts.failures, counts.lost)
        return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


def application(pages: Pages, token: str, hosts: Sequence[str]) -> Starlette:
    """Return the application that serves ``pages`` at ``hosts`` (``name:port``) to whoever has the
    ``token``."""
    from starlette.applications import Starlette
    from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse
    from starlette.routing import Route

    def refusal(request: Request) -> Response | None:
        """Return the answer to a request that is refused, or None."""
        origin = request.headers.get("origin")
        if request.headers.get("host") not in hosts or (
            origin is not None and origin.partition("://")[2] not in hosts
        ):
            why = "it is of another site"
        elif not secrets.compare_digest(request.query_params.get("token", "").encode(), given):
            why = "its token is wrong"
        else:
            return None
        LOG.warning("refused a request: %s", why)
        return PlainTextResponse(f"refused: {why}\n", 403, HEADERS)

    def answered(request: Request, make: Any) -> Response:
        if (refused := refusal(request)) is not None:
            return refused
        try:
            with waiting(0.0):
                made: Response = make()
        except UnavailableError as error:
            return PlainTextResponse(f"{error}\n", 503, HEADERS)
        return made

    def page(request: Request) -> Response:
        return answered(request, lambda: HTMLResponse(pages.page(), headers=HEADERS))

    def state(request: Request) -> Response:
        return answered(request, lambda: JSONResponse({"state": pages.state()}, headers=HEADERS))

    given = token.encode()
    return Starlette(routes=[Route("/", page), Route("/state", state)])


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens there; :class:`InputError` if there can be none."""
    try:
        return socket.create_server((host, port))
    except (OSError, OverflowError) as error:
        raise InputError(
            f"cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}; "
            "allowed: another --port, or 0 for a free one"
        ) from None


def address_of(listening: socket.socket, host: str, token: str) -> str:
    """Return the address that a browser opens."""
    return f"http://{host}:{listening.getsockname()[1]}/?token={token}"


def serve(listening: socket.socket, host: str, pages: Pages, token: str) -> None:
    """Answer requests until the process is told to end."""
    import uvicorn

    port = listening.getsockname()[1]
    names = {host, LOOPBACK, "localhost"}
    app = application(pages, token, [f"{name}:{port}" for name in sorted(names)])
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
    uvicorn.Server(config).run(sockets=[listening])
